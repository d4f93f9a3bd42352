#!/bin/sh
# Names the code that the simulator runs: the trees of its crates in git, and the lock file.
set -eu
cd "$(dirname "$0")/.."
if [ -n "$(git status --porcelain -- crates/model crates/policy crates/protocol crates/cache crates/sim Cargo.lock)" ]; then
    echo "the simulated code has changed since HEAD: commit first, or what is kept tells nothing" >&2
    exit 1
fi
for part in crates/model crates/policy crates/protocol crates/cache crates/sim Cargo.lock; do
    git rev-parse --short=10 "HEAD:$part"
done | paste -sd-
