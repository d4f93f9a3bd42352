#!/usr/bin/env bash
# What `make test` needs beside Rust: strace, for the trace of system calls; zsh and fish, for their completions; a PostgreSQL
# server, for the web cache; Chromium, for the page of its operator. Installs what is missing, where that is possible. Each test
# that needs one of them says so itself where it is not there.
set -euo pipefail
missing=()
for program in strace zsh fish; do
  command -v "$program" >/dev/null 2>&1 || missing+=("$program")
done
compgen -G "/usr/lib/postgresql/*/bin/postgres" >/dev/null || missing+=(postgresql)
command -v chromium chromium-browser google-chrome >/dev/null 2>&1 || missing+=(chromium)
[ "${#missing[@]}" = 0 ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "installing ${missing[*]}" >&2
  apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null && exit 0
fi
echo "missing: ${missing[*]}. The tests that need them skip" >&2
