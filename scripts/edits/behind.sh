# What scripts that put an application behind `thorp web` have in common. They source it after `set -euo pipefail`.
#
# It sets `run` (a directory that is removed at the end), `as` (the user of the database) and `programs` (those of PostgreSQL).
programs=$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -1) ||
  { echo "no PostgreSQL server is installed: install Debian's package postgresql" >&2; exit 1; }
programs=$(dirname "$programs")
run=$(mktemp -d)
pids=()
stop() {
  local code=$?
  [ "$code" = 0 ] || [ ! -e "$run/web.log" ] || { echo "what the proxy has logged last:" >&2; tail -20 "$run/web.log" >&2; }
  # The proxy first: it takes its name out of the database.
  for pid in "${pids[@]}"; do kill -- "-$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
  rm -rf "$run"
}
trap stop EXIT
# Each with a group of its own, so that it ends with all that it started.
begin() { setsid "$@" & pids=("$!" "${pids[@]}"); }
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
database=$(port) origin=$(port) proxy=$(port)
# PostgreSQL refuses to run as root.
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
sql() { psql -qAt -h 127.0.0.1 -p "$database" -U postgres "$@"; }

# A database of this name.
begin_database() {
  chmod 755 "$run" && mkdir "$run/database"
  [ "$(id -u)" != 0 ] || chown 65534:65534 "$run/database"
  "${as[@]}" "$programs/initdb" --auth=trust --username=postgres --no-sync --pgdata="$run/database/data" >/dev/null
  begin "${as[@]}" "$programs/postgres" -D "$run/database/data" -k "$run/database" -p "$database" \
    -c listen_addresses=127.0.0.1 -c wal_level=logical -c restart_after_crash=off >"$run/database.log" 2>&1
  until sql -c 'SELECT 1' >/dev/null 2>&1; do sleep 0.1; done
  sql -c "CREATE DATABASE $1"
}

# The proxy, until answers are kept: begin_proxy THORP DATABASE RECIPE
begin_proxy() {
  begin "$1" web --origin "http://127.0.0.1:$origin" --postgres "postgresql://postgres@127.0.0.1:$database/$2" \
    --recipe "$3" --listen "127.0.0.1:$proxy" >"$run/web.log" 2>&1
  until grep -q '^live' "$run/web.log"; do
    kill -0 "${pids[0]}" 2>/dev/null || { cat "$run/web.log" >&2; exit 1; }
    sleep 0.1
  done
}
