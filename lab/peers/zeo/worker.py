"""A ZEO client that obeys: one command a line on standard input, one line of JSON for each on standard output.

    build SIZE      makes the module (tiny, small, medium)
    run T1|T2b      one transaction; again, if it conflicts
    sync            sees what others have committed
    quit

The caches are as ZODB's and ZEO's documentation advise for a working set that fits: the object cache has room for all
objects of the module, the client's cache of records for all its bytes.
"""

import argparse
import json
import sys
import time

import transaction
import ZEO
import ZODB
from ZEO.Exceptions import ClientDisconnected
from ZODB.POSException import ConflictError

import oo7


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, help="HOST:PORT of the ZEO server")
    parser.add_argument("--objects", type=int, default=1_000_000, help="objects in the object cache")
    parser.add_argument("--bytes", type=int, default=256 << 20, help="bytes in the client's cache of records")
    parser.add_argument("--prefetch", action="store_true", help="ask for a composite's objects before they are read")
    return parser.parse_args()


def connect(asked):
    host, port = asked.server.rsplit(":", 1)
    storage = ZEO.client((host, int(port)), cache_size=asked.bytes, wait_timeout=60)
    database = ZODB.DB(storage, cache_size=asked.objects, cache_size_bytes=0)
    return database, database.open()


def run(connection, traversal, prefetch):
    attempts = 0
    begun = time.perf_counter()
    while True:
        attempts += 1
        transaction.begin()
        try:
            done = oo7.traverse(connection.root()["oo7"], traversal, prefetch)
            walked = time.perf_counter()
            transaction.commit()
            break
        except ConflictError:
            transaction.abort()
    ended = time.perf_counter()
    return done | {"attempts": attempts, "total_s": ended - begun, "commit_s": ended - walked}


def main():
    asked = options()
    try:
        database, connection = connect(asked)
    except ClientDisconnected as error:
        sys.exit(f"no ZEO server answers at {asked.server}: {error}")
    prefetch = connection.prefetch if asked.prefetch else None
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        match line.split():
            case ["build", size]:
                begun = time.perf_counter()
                transaction.begin()
                oo7.build(connection.root(), oo7.Config.named(size), transaction.commit)
                answer = {"built": size, "total_s": time.perf_counter() - begun}
            case ["run", ("T1" | "T2b") as traversal]:
                answer = run(connection, traversal, prefetch)
            case ["sync"]:
                connection.sync()
                answer = {"synced": True}
            case ["quit"]:
                break
            case _:
                answer = {"error": f"not a command: {line.strip()}"}
        print(json.dumps(answer), flush=True)
    connection.close()
    database.close()


if __name__ == "__main__":
    main()
