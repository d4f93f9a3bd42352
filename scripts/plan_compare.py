"""Counts with libCacheSim what `hits` counted: plan_compare.py TRACE COUNTS, where a line of COUNTS is POLICY PAGES MISSES."""

import sys

import libcachesim

POLICIES = {
    "LRU": libcachesim.LRU,
    "FIFO": libcachesim.FIFO,
    "CLOCK": libcachesim.Clock,
    "S3-FIFO": libcachesim.S3FIFO,
    "SIEVE": libcachesim.Sieve,
}


def misses(policy, trace, pages):
    """How many requests a cache of so many objects, all of size 1, misses there."""
    told = libcachesim.ReaderInitParam(ignore_obj_size=True)
    reader = libcachesim.TraceReader(trace, libcachesim.TraceType.ORACLE_GENERAL_TRACE, told)
    cache = POLICIES[policy](cache_size=pages)
    return sum(not cache.get(request) for request in reader)


def main(trace, counts):
    differ = 0
    print(f"{'policy':8} {'pages':>8} {'thorp':>10} {'libCacheSim':>12}")
    for line in open(counts, encoding="utf-8"):
        policy, pages, here = line.split()
        if policy in POLICIES:
            there = misses(policy, trace, int(pages))
            differ += there != int(here)
            print(f"{policy:8} {pages:>8} {here:>10} {there:>12} {'' if there == int(here) else 'DIFFERENT'}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
