#!/usr/bin/env bash
# What `make test` needs beside Rust: strace, for the trace of system calls. Installs it where that is possible; the test
# that needs it says so itself where it is not.
set -euo pipefail
if ! command -v strace >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing strace" >&2
    apt-get update -qq >/dev/null && apt-get install -y -qq strace >/dev/null ||
      echo "strace could not be installed: the trace of system calls will not be taken" >&2
  else
    echo "strace is missing: the trace of system calls will not be taken" >&2
  fi
fi
