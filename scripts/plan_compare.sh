#!/bin/sh
# Compares how many requests each policy misses here and in libCacheSim, for the same trace and the same numbers of pages:
#   scripts/plan_compare.sh TRACE.oracleGeneral.bin CAPACITY...
# Needs python3 with venv and pip; libcachesim is installed into .venv-libcachesim, once. Exit code 1 if any count differs.
# S3-FIFO needs 20 pages at least: libCacheSim takes nothing into a small queue of one.
set -eu
cd "$(dirname "$0")/.."
trace=${1:?"which trace, in the format oracleGeneral?"}
shift
venv=.venv-libcachesim
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import libcachesim' 2>/dev/null ||
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check libcachesim==0.3.5

here=$(mktemp)
trap 'rm -f "$here"' EXIT
cargo run --quiet --profile sim -p thorp-plan --example hits -- "$trace" "$@" 2>/dev/null >"$here"
"$venv/bin/python" scripts/plan_compare.py "$trace" "$here"
