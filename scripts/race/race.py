#!/usr/bin/env python3
"""Counters in PostgreSQL, pages that show them, and a cache in front: how many answers are stale? By `scripts/peers.sh THORP`.

Each counter has one writer. A page shows 1 to 16 counters. An answer is stale if it shows less than a value that was acknowledged, or shown
to anybody, before its request began. With --purge, a writer purges each page of its counter after the commit, and the update counts as
acknowledged when the cache has confirmed all purges. So the cache has the best case: nobody waits for less.
"""

import argparse
import asyncio
import json
import random
import sys
import time

import psycopg

COUNTERS = 64
SIZES = (1, 2, 4, 8, 16)
# What a page costs at the origin behind its read of the database, in seconds at most.
RENDER_SECONDS_MAX = 0.004


def pages():
    """The pages, each a path and its counters."""
    for size in SIZES:
        for first in range(0, COUNTERS, size):
            shown = range(first, first + size)
            yield "/" + "/".join(map(str, shown)), tuple(shown)


PAGES = list(pages())


class Connection:
    """One connection of a client to the cache. It connects again after a failure."""

    def __init__(self, port):
        self.port, self.reader, self.writer = port, None, None

    async def ask(self, method, path, fields=""):
        for is_last in (False, True):
            try:
                if self.writer is None:
                    self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
                self.writer.write(f"{method} {path} HTTP/1.1\r\nHost: race\r\n{fields}\r\n".encode())
                return await asyncio.wait_for(self._answer(), 20)
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
                self.close()
                if is_last:
                    raise

    async def _answer(self):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status, length = int(head.split()[1]), 0
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        if "chunked" in fields.get("transfer-encoding", ""):
            body = await self._chunks()
        else:
            length = int(fields.get("content-length", 0))
            body = await self.reader.readexactly(length)
        if "close" in fields.get("connection", ""):
            self.close()
        return status, fields, body.decode()

    async def _chunks(self):
        body = b""
        while True:
            size = int((await self.reader.readline()).split(b";")[0], 16)
            body += (await self.reader.readexactly(size + 2))[:-2]
            if size == 0:
                return body

    def close(self):
        if self.writer is not None:
            self.writer.close()
            self.writer = None


class Origin:
    """An application: it reads the counters of a page, and needs a moment to write the page."""

    def __init__(self, database):
        self.database = database
        self.idle = asyncio.Queue()

    async def start(self, port):
        for _ in range(8):
            self.idle.put_nowait(await psycopg.AsyncConnection.connect(self.database, autocommit=True))
        return await asyncio.start_server(self._serve, "127.0.0.1", port)

    async def _serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                method, path, _ = head.split(b"\r\n")[0].decode().split()
                shown = [int(number) for number in path.strip("/").split("/") if number.isdigit()]
                body = json.dumps(await self._read(shown)).encode() if method == "GET" else b""
                keys = " ".join(f"counter:{number}" for number in shown)
                fields = f"Cache-Control: max-age=3600\r\nxkey: {keys}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
                writer.write(f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n".encode() + body)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The cache has closed its connection, or all is over.
            pass
        finally:
            writer.close()

    async def _read(self, shown):
        session = await self.idle.get()
        try:
            found = await (await session.execute("SELECT id, value FROM counter WHERE id = ANY(%s)", [shown])).fetchall()
        finally:
            self.idle.put_nowait(session)
        await asyncio.sleep(random.random() * RENDER_SECONDS_MAX)
        return {str(number): value for number, value in found}


class Race:
    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + options.seconds
        # The least value that a read which begins now must show, and the last one that was acknowledged.
        self.least, self.acknowledged = [0] * COUNTERS, [0] * COUNTERS
        self.reads = self.hits = self.stale = self.stale_acknowledged = self.updates = self.failures = self.purges = 0

    async def run(self):
        origin = Origin(self.options.database)
        async with await origin.start(self.options.origin_port):
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            self.end = time.monotonic() + self.options.seconds
            writers = [self._write(number) for number in range(self.options.writers)]
            readers = [self._read(number) for number in range(self.options.readers)]
            await asyncio.gather(*writers, *readers)

    async def _write(self, writer):
        session = await psycopg.AsyncConnection.connect(self.options.database, autocommit=True)
        cache, choices = Connection(self.options.port), random.Random(f"writer {writer}")
        own = range(writer, COUNTERS, self.options.writers)
        values = dict.fromkeys(own, 0)
        while time.monotonic() < self.end:
            counter = choices.choice(own)
            values[counter] += 1
            await session.execute("UPDATE counter SET value = %s WHERE id = %s", [values[counter], counter])
            await self._purge(cache, counter)
            self.acknowledged[counter] = values[counter]
            self.least[counter] = max(self.least[counter], values[counter])
            self.updates += 1
            await asyncio.sleep(self.options.update_every_ms / 1000)
        cache.close()
        await session.close()

    async def _purge(self, cache, counter):
        if self.options.purge == "keys":
            await self._purge_one(cache, "/", "PURGE", f"xkey-purge: counter:{counter}\r\n")
        elif self.options.purge != "no":
            how = {"pages": ("PURGE", ""), "refresh": ("GET", "refresh: 1\r\n")}[self.options.purge]
            for path, shown in PAGES:
                if counter in shown:
                    await self._purge_one(cache, path, *how)

    async def _purge_one(self, cache, path, method, fields):
        status, _, _ = await cache.ask(method, path, fields)
        # 404 and 412: there was nothing to purge.
        self.purges += status == 200
        self.failures += status not in (200, 404, 412)

    async def _read(self, reader):
        cache, choices = Connection(self.options.port), random.Random(f"reader {reader}")
        while time.monotonic() < self.end:
            path, shown = choices.choice(PAGES)
            least = [self.least[counter] for counter in shown]
            acknowledged = [self.acknowledged[counter] for counter in shown]
            status, fields, body = await cache.ask("GET", path)
            if status != 200:
                self.failures += 1
                continue
            values = json.loads(body)
            found = [values[str(counter)] for counter in shown]
            self.reads += 1
            self.hits += any(word in fields.get(self.options.hit_field, "") for word in self.options.hit_words)
            self.stale += any(value < wanted for value, wanted in zip(found, least))
            self.stale_acknowledged += any(value < wanted for value, wanted in zip(found, acknowledged))
            for counter, value in zip(shown, found):
                self.least[counter] = max(self.least[counter], value)
        cache.close()

    def line(self):
        return {
            "bench": "web_peers",
            "cache": self.options.name,
            "seconds": self.options.seconds,
            "updates": self.updates,
            "purges": self.purges,
            "reads": self.reads,
            "hits": self.hits,
            "stale": self.stale,
            "stale_acknowledged": self.stale_acknowledged,
            "failures": self.failures,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True, help="what the report calls the cache")
    parser.add_argument("--database", required=True, help="PostgreSQL with a table `counter`")
    parser.add_argument("--port", type=int, required=True, help="of the cache")
    parser.add_argument("--origin-port", type=int, required=True, help="where this program answers as the origin")
    parser.add_argument("--purge", choices=["no", "keys", "pages", "refresh"], default="no")
    parser.add_argument("--hit-field", default="cache-status")
    parser.add_argument("--hit-words", nargs="+", default=["; hit"], help="in that field, of an answer from the cache")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--readers", type=int, default=16)
    parser.add_argument("--update-every-ms", type=int, default=10)
    race = Race(parser.parse_args())
    asyncio.run(race.run())
    print(json.dumps(race.line()))
    return 1 if race.reads == 0 or race.failures else 0


if __name__ == "__main__":
    sys.exit(main())
