#!/bin/sh
# Runs http-cache-tests 0.4.5 against `thorp web` as a plain cache, on loopback. The first argument is the program.
# It prints each failure and the counts, and fails if fewer tests pass than have to. docs/http-cache-tests.md has the reasons.

set -eu

thorp=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
place=${CARGO_TARGET_DIR:-$here/../target}/http-cache-tests
suite=$place/node_modules/http-cache-tests
# The suite takes 20 seconds: most of its tests wait for three, 100 tests at a time.
seconds_max=600

mkdir -p "$place"
place=$(cd "$place" && pwd)
suite=$place/node_modules/http-cache-tests
if [ ! -d "$suite" ]; then
	npm install --prefix "$place" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error http-cache-tests@0.4.5
fi

origin=
proxy=
end() {
	status=$?
	for process in $proxy $origin; do
		kill "$process" 2>/dev/null || true
		wait "$process" 2>/dev/null || true
	done
	exit $status
}
trap end EXIT
trap 'exit 1' INT TERM

# The suite's origin would listen on all addresses, and on a port that is given.
cat > "$place/loopback.mjs" <<'END'
import net from 'node:net'
import fs from 'node:fs'
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function () {
  this.once('listening', () => fs.writeFileSync(process.env.PORT_FILE, String(this.address().port)))
  return listen.call(this, 0, '127.0.0.1')
}
END

# Waits for a file with something in it.
await() {
	tries=0
	until [ -s "$1" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 100 ] || { echo "$2 does not start: see $place" >&2; exit 1; }
		sleep 0.1
	done
}

rm -f "$place/origin.port" "$place/proxy.json" "$place/results.json"
(cd "$suite" && exec env PORT_FILE="$place/origin.port" npm_config_protocol=http npm_config_port=0 \
	npm_config_pidfile="$place/origin.pid" node --no-warnings --import "$place/loopback.mjs" server/server.mjs) \
	> "$place/origin.log" 2>&1 &
origin=$!
await "$place/origin.port" "the origin"

"$thorp" web --json --origin "http://127.0.0.1:$(cat "$place/origin.port")" --listen 127.0.0.1:0 \
	> "$place/proxy.json" 2> "$place/proxy.log" &
proxy=$!
await "$place/proxy.json" "the proxy"
address=$(node -e 'console.log(JSON.parse(require("fs").readFileSync(process.argv[1])).address)' "$place/proxy.json")

(cd "$suite" && exec env npm_config_base="http://$address" npm_package_config_id= \
	timeout "$seconds_max" node --no-warnings cli.mjs) > "$place/results.json" 2> "$place/client.log" || {
	echo "the suite has not come to its end: see $place" >&2
	exit 1
}
node "$here/http_cache_tests.mjs" "$suite" "$here/../docs/http-cache-tests.md" < "$place/results.json"
