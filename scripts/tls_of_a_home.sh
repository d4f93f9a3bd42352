#!/bin/sh
# Starts a home, and has its port judged by testssl.sh (Debian's package of that name) with the village's authority added.
# Fails on a finding that is worse than low, but for two that every private authority has: cert_trust, because the
# certificate names a node and no host, and cert_revocation, because revocations travel in the village.
# Usage: tls_of_a_home.sh THORP
set -eu

thorp=$1
testssl=$(command -v testssl || command -v testssl.sh) || {
    echo "testssl.sh is not there: install the package testssl.sh" >&2
    exit 2
}
dir=$(mktemp -d)
mkfifo "$dir/hold"
# The home ends when this closes, at the latest with this script.
exec 3<>"$dir/hold"
trap 'exec 3>&-; wait; rm -rf "$dir"' EXIT

timeout 600 "$thorp" home --name=alps --dir="$dir/alps" --listen=127.0.0.1:0 --http=127.0.0.1:0 --until-stdin-closes \
    <"$dir/hold" 3>&- >"$dir/said" 2>/dev/null &
for _ in $(seq 100); do
    grep -q '^ready' "$dir/said" && break
    sleep 0.1
done
address=$(sed -n 's|.*listens on tcp://||p' "$dir/said")
[ -n "$address" ] || {
    echo "the home does not start" >&2
    exit 1
}

# testssl.sh brings no certificate of its own: it asks whether it should go on although it is turned away in the end.
yes yes | timeout 500 "$testssl" --quiet --color 0 --warnings off \
    --add-ca "$dir/alps/authority/authority.pem" --jsonfile "$dir/found.json" "$address" >"$dir/report" || true

python3 - "$dir/found.json" <<'END'
import json
import sys

found = json.load(open(sys.argv[1]))
judged = [one for one in found if one["severity"] in ("OK", "LOW", "MEDIUM", "HIGH", "CRITICAL")]
allowed = ("cert_trust", "cert_revocation")
worse = [one for one in judged if one["severity"] not in ("OK", "LOW")]
for one in worse:
    print(one["severity"], one["id"], one["finding"], "(allowed)" if one["id"] in allowed else "")
print(f"testssl.sh judged {len(judged)} things")
# Fewer things mean that it did not get as far as the vulnerabilities.
sys.exit(len(judged) < 30 or any(one["id"] not in allowed for one in worse))
END
