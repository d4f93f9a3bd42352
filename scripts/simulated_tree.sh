#!/bin/sh
# Names the code that the simulator runs: the trees of its crates in git, and the lock file.
set -eu
cd "$(dirname "$0")/.."
simulated="crates/model crates/policy crates/protocol crates/cache crates/session crates/sim Cargo.lock"
# shellcheck disable=SC2086 # one argument for each path
if [ -n "$(git status --porcelain -- $simulated)" ]; then
    echo "the simulated code has changed since HEAD: commit first, or what is kept tells nothing" >&2
    exit 1
fi
for part in $simulated; do
    git rev-parse --short=10 "HEAD:$part"
done | paste -sd-
