#!/bin/sh
# Makes .venv with ifcopenshell, the reader that checks the demo's export, unless it is there already, and prints its
# Python's path. Exit code 1, and what went wrong, if it cannot be installed.
set -eu
cd "$(dirname "$0")/.."
venv=.venv
wanted=ifcopenshell==0.9.0.post1

if ! "$venv/bin/python" -c 'import ifcopenshell' 2>/dev/null; then
    echo "installing $wanted into $venv (once)" >&2
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    if ! { python3 -m venv "$venv" && "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wanted"; } >"$log" 2>&1; then
        cat "$log" >&2
        echo "$wanted could not be installed: python3 with venv and pip, and a package index, are needed." >&2
        echo "  -> install them, or name a Python that has ifcopenshell: make demo PYTHON=/path/to/python" >&2
        exit 1
    fi
fi
echo "$PWD/$venv/bin/python"
