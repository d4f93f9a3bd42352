"""Random edits of an application behind `thorp web`. After each edit, the answers of the proxy are compared with those of the origin.

An application is a class with these parts:

- `name` and `version`: what the report calls it;
- `paths`: the fixed set of pages;
- `noise`: pairs of a pattern and a text. What a pattern finds differs between two answers of the origin itself, so it is replaced in both;
- `edit(random, number)`: makes one edit and returns its kind and a description. It raises `Refused` if the application refuses the edit;
- `settle()`: waits until the application has ended the work that it does after its answers.

A page that differs is fetched three times more: from the origin, the proxy and the origin. It is *different* if the origin has answered the
same twice and the proxy something else. Otherwise the first difference is *passing*. No difference of either kind is allowed.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import http.client
import json
import random
import re
import sys
import time
import urllib.parse

# Fields of an answer that are compared, beside its status and its body.
FIELDS = ("content-type", "content-language", "location", "link")
# How many differences are printed. One that stays is printed once.
PRINTED_MAX = 40
# A page may take so long, in seconds.
PAGE_SECONDS_MAX = 60


class Refused(Exception):
    """The application refuses an edit, as a move onto a page that exists."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What is compared, and what the proxy says of its cache."""

    lines: tuple
    cache: str

    def same_as(self, other):
        return self.lines == other.lines


class Servers:
    """The proxy and the origin. Both get the same `Host`, because an application writes it into its pages."""

    def __init__(self, proxy, origin, noise):
        self.host = urllib.parse.urlsplit(proxy).netloc
        self.origin_at = urllib.parse.urlsplit(origin).netloc
        self.noise = [(re.compile(pattern, re.DOTALL), text) for pattern, text in noise]

    def proxy(self, path):
        return self._get(self.host, path)

    def origin(self, path):
        return self._get(self.origin_at, path)

    def _get(self, address, path):
        connection = http.client.HTTPConnection(address, timeout=PAGE_SECONDS_MAX)
        try:
            connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", self.host)
            connection.putheader("User-Agent", "edits")
            connection.endheaders()
            answer = connection.getresponse()
            body = answer.read().decode("utf-8", "replace")
        finally:
            connection.close()
        for pattern, text in self.noise:
            body = pattern.sub(text, body)
        fields = [f"{name}: {answer.getheader(name)}" for name in FIELDS]
        if answer.getheader("set-cookie"):
            fields.append("set-cookie")
        lines = (f"status: {answer.status}", *fields, *body.split("\n"))
        return Answer(lines, answer.getheader("cache-status") or "")


@dataclasses.dataclass
class Compared:
    """One page after one edit."""

    path: str
    verdict: str
    cache: str
    origin: Answer
    first: str


def compare(servers, path):
    proxy, origin = servers.proxy(path), servers.origin(path)
    if proxy.same_as(origin):
        return Compared(path, "same", proxy.cache, origin, "")
    first = first_difference(proxy, origin)
    before, again, after = servers.origin(path), servers.proxy(path), servers.origin(path)
    verdict = "different" if before.same_as(after) and not again.same_as(after) else "passing"
    return Compared(path, verdict, proxy.cache, origin, first)


def first_difference(proxy, origin):
    pairs = zip(proxy.lines, origin.lines)
    for number, (left, right) in enumerate(pairs):
        if left != right:
            start = next((at for at, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))
            part = slice(max(start - 60, 0), start + 100)
            return f"line {number}\n    proxy:  {left[part]}\n    origin: {right[part]}"
    return f"{len(proxy.lines)} lines from the proxy, {len(origin.lines)} from the origin"


class Report:
    """What was counted."""

    def __init__(self):
        self.kinds = collections.Counter()
        self.verdicts = collections.Counter()
        self.hits = self.reads = self.changed = self.refused = self.printed = 0
        self.last = {}
        self.wrong = set()

    def take(self, number, what, compared):
        for page in compared:
            self.reads += 1
            self.hits += page.cache.endswith("hit")
            self.changed += page.path in self.last and not self.last[page.path].same_as(page.origin)
            self.last[page.path] = page.origin
            self.verdicts[page.verdict] += 1
            is_new = page.path not in self.wrong
            if page.verdict == "same":
                self.wrong.discard(page.path)
            elif is_new:
                self.wrong.add(page.path)
                self._print(f"{page.verdict}: {page.path} ({page.cache}) after edit {number}, {what}: {page.first}")

    def _print(self, difference):
        self.printed += 1
        if self.printed <= PRINTED_MAX:
            print(difference, flush=True)

    def line(self, application, options, edits, seconds):
        different, passing = self.verdicts["different"], self.verdicts["passing"]
        return {
            "bench": "web_edits",
            "application": application.name,
            "version": application.version,
            "seed": options.seed,
            "pages": len(application.paths),
            "edits": edits,
            "refused": self.refused,
            "kinds": dict(sorted(self.kinds.items())),
            "compared": self.reads,
            "changed": self.changed,
            "different": different,
            "passing": passing,
            "hits": self.hits,
            "hit_percent": round(100 * self.hits / max(self.reads, 1), 1),
            "seconds": round(seconds),
            "met": edits > 0 and self.changed > 0 and different == 0 and passing == 0,
        }


def options(about):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--proxy", required=True, metavar="URL", help="the proxy")
    parser.add_argument("--edits", type=int, default=1000, help="how many edits")
    parser.add_argument("--seed", type=int, default=1, help="where the random choices begin")
    parser.add_argument("--minutes", type=float, default=90, help="end after so long, with fewer edits")
    parser.add_argument("--expect-differences", action="store_true", help="a broken recipe has to be noticed: fail if nothing differs")
    return parser.parse_args()


def run(application, servers, options):
    """Edits and compares. Returns the exit code."""
    choices, report = random.Random(options.seed), Report()
    begin, edits, tries = time.monotonic(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        while edits < options.edits and time.monotonic() - begin < options.minutes * 60:
            tries += 1
            try:
                kind, what = application.edit(choices, tries)
            except Refused:
                report.refused += 1
                continue
            application.settle()
            edits += 1
            report.kinds[kind] += 1
            report.take(edits, what, pool.map(lambda path: compare(servers, path), application.paths))
            if options.expect_differences and report.verdicts["different"]:
                break
            if edits % 50 == 0:
                print(f"{edits} edits, {report.hits} hits of {report.reads}, {dict(report.verdicts)}", file=sys.stderr, flush=True)
    told = report.line(application, options, edits, time.monotonic() - begin)
    if options.expect_differences:
        told["expected"] = "differences"
        told["met"] = told["different"] > 0
    print(json.dumps(told))
    return 0 if told["met"] else 1
