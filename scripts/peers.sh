#!/usr/bin/env bash
# Stale answers of `thorp web` and of other caches, counted in the same way, all on loopback: scripts/peers.sh THORP [SECONDS]
#
# THORP is the thorp command. The others are Debian 12's packages of Varnish with xkey, nginx, and Traffic Server. They are unpacked into
# target/peers and not installed. Each is purged after each update; nginx fetches the pages anew. Needs apt-get, gcc (Varnish compiles its
# settings), Python 3.10 or later, and the programs of a PostgreSQL server. What was started is stopped at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
thorp=$(realpath "$1") seconds=${2:-30}
place=$PWD/${BUILT:-target}/peers
here=$PWD/scripts/race
source scripts/edits/behind.sh

packages="varnish libvarnishapi3 varnish-modules libjemalloc2 nginx trafficserver libhwloc15 libpcre3 libyaml-cpp0.7"
if [ ! -e "$place/unpacked" ]; then
  rm -rf "$place" && mkdir -p "$place/debs" "$place/root"
  (cd "$place/debs" && apt-get download -qq $packages) || { echo "Debian's packages cannot be had here: this needs Debian 12" >&2; exit 1; }
  for package in "$place"/debs/*.deb; do dpkg -x "$package" "$place/root"; done
  python3 -m venv "$place/python"
  "$place/python/bin/pip" install --quiet --disable-pip-version-check 'psycopg[binary]==3.3.9'
  touch "$place/unpacked"
fi
root=$place/root
libraries=$(echo "$root"/usr/lib/*-linux-gnu)
# For the other caches alone.
theirs=(env "LD_LIBRARY_PATH=$libraries:$libraries/varnish:$root/usr/lib/trafficserver:$(echo "$root"/lib/*-linux-gnu)")

begin_database race
address="postgresql://postgres@127.0.0.1:$database/race"
# --- One cache after the other ---
fill() { sed -e "s|ORIGIN|$origin|g" -e "s|LISTEN|$proxy|g" -e "s|RUN|$1|g" "$2"; }

begin_thorp() {
  begin "$thorp" web --origin "http://127.0.0.1:$origin" --postgres "$address" --recipe "$here/counters.toml" \
    --listen "127.0.0.1:$proxy" >"$1/log" 2>&1
  until grep -q '^live' "$1/log"; do kill -0 "${pids[0]}" || { cat "$1/log" >&2; exit 1; }; sleep 0.1; done
}
begin_varnish() {
  fill "$1" "$here/xkey.vcl" >"$1/xkey.vcl"
  begin "${theirs[@]}" "$root/usr/sbin/varnishd" -F -n "$1/work" -a "127.0.0.1:$proxy" -f "$1/xkey.vcl" -j none -s malloc,64m \
    -p "vmod_path=$libraries/varnish/vmods" -p "vcl_path=$root/usr/share/varnish/vcl" >"$1/log" 2>&1
}
begin_nginx() {
  fill "$1" "$here/nginx.conf" >"$1/nginx.conf"
  # Its workers run as another user.
  chmod 777 "$1"
  begin "${theirs[@]}" "$root/usr/sbin/nginx" -p "$1" -c "$1/nginx.conf" -e "$1/error.log" >"$1/log" 2>&1
}
begin_trafficserver() {
  cp -r "$root/etc/trafficserver" "$1/etc" && mkdir "$1/log.d" "$1/cache" "$1/state"
  cat >"$1/runroot.yaml" <<PLACES
prefix: $root/usr
exec_prefix: $root/usr
bindir: $root/usr/bin
sbindir: $root/usr/bin
sysconfdir: $1/etc
datadir: $1
includedir: $root/usr/include
libdir: $root/usr/lib/trafficserver
libexecdir: $root/usr/lib/trafficserver/modules
localstatedir: $1/state
runtimedir: $1/state
logdir: $1/log.d
cachedir: $1/cache
PLACES
  echo "map / http://127.0.0.1:$origin/" >>"$1/etc/remap.config"
  echo "$1/cache 64M" >"$1/etc/storage.config"
  cat >>"$1/etc/records.config" <<RECORDS
CONFIG proxy.config.http.server_ports STRING $proxy:ip-in=127.0.0.1
CONFIG proxy.config.http.insert_response_via_str INT 2
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.body_factory.template_sets_dir STRING $1/etc/body_factory
RECORDS
  begin "${theirs[@]}" "$root/usr/bin/traffic_server" --run-root="$1/runroot.yaml" >"$1/log" 2>&1
}
# The cache ends, and the next one takes its place: race NAME ARGUMENT...
race() {
  local name=$1 own=$run/$1
  shift
  mkdir "$own"
  sql -d race -c 'SET client_min_messages = warning' -c 'DROP TABLE IF EXISTS counter' -c 'CREATE TABLE counter (id int PRIMARY KEY, value bigint NOT NULL)' \
    -c 'INSERT INTO counter SELECT id, 0 FROM generate_series(0, 63) id'
  [ "$name" != thorp ] || sql -d race -c 'CREATE PUBLICATION thorp FOR ALL TABLES'
  proxy=$(port) origin=$(port)
  "begin_$name" "$own"
  coproc ORIGIN_AND_CLIENTS { "$place/python/bin/python" "$here/race.py" --name "$name" --database "$address" --port "$proxy" \
    --origin-port "$origin" --seconds "$seconds" "$@"; }
  local program=$ORIGIN_AND_CLIENTS_PID from=${ORIGIN_AND_CLIENTS[0]} to=${ORIGIN_AND_CLIENTS[1]} line
  read -r line <&"$from"
  until curl -s -o /dev/null "http://127.0.0.1:$proxy/1"; do
    kill -0 "${pids[0]}" 2>/dev/null || { cat "$own/log" >&2; exit 1; }
    sleep 0.1
  done
  echo go >&"$to"
  read -r line <&"$from" || { cat "$own/log" >&2; exit 1; }
  echo "$line" | tee -a "$run/lines"
  wait "$program" || { echo "$name: some requests failed" >&2; cat "$own/log" >&2; exit 1; }
  kill -- "-${pids[0]}" && wait "${pids[0]}" 2>/dev/null || true
  pids=("${pids[@]:1}")
  [ "$name" != thorp ] || sql -d race -c 'DROP PUBLICATION thorp' -c "SELECT pg_drop_replication_slot('thorp')" >/dev/null
}

race thorp
race varnish --purge keys
race nginx --purge refresh
race trafficserver --purge pages --hit-field via --hit-words "[ch" "[cr"
# Of thorp web none may be stale.
grep -q '"cache": "thorp".*"stale": 0,' "$run/lines"
