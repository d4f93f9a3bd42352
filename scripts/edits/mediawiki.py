#!/usr/bin/env python3
"""Random edits of MediaWiki through its API, by `scripts/wiki.sh THORP scripts/edits/mediawiki.py --edits 1000`.

Edits, templates, moves, deletions, talk pages, categories, protection, hidden log entries and the words of the skin change what forty
articles show. Jobs run in one edit of four: until they run, MediaWiki itself shows pages of before.
"""

import http.cookiejar
import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import uuid
import zlib

import compare

# What MediaWiki writes anew into each page: an id of the request, and how long it took.
NOISE = [
    (r'"wgRequestId":"[^"]*"', '"wgRequestId":""'),
    (r'"wgBackendResponseTime":\d+', '"wgBackendResponseTime":0'),
    # A page that is not there has no parser cache: its words are parsed for each answer.
    (r'"wgPageParseReport":\{.*?\}\}\);', '"wgPageParseReport":{}});'),
    (r"(Saved in parser cache with key [^>]* and timestamp) \d+", r"\1"),
    (r"<!-- \nNewPP limit report.*?-->", ""),
    (r"<!--\nTransclusion expansion time report.*?-->", ""),
]

TITLES = [f"A{number}" for number in range(24)] + [f"M{number}" for number in range(5)]
ODD_TITLES = ["Ünï_cödé", "C++/sub", "What?", "AC&DC", "Main_Page"]
# MediaWiki sends the readers of these on to A1, or says that there is no such page.
ODD_PATHS = ["/wiki/a1", "/wiki/A1_", "/wiki//A1", "/wiki/A%31", "/wiki/A1%20", "/wiki/A1%E2%80%8E"]
FILES = [f"F{number}.png" for number in range(3)]
TEMPLATES = [f"Template:T{number}" for number in range(4)]
CATEGORIES = [f"Category:C{number}" for number in range(4)]
MESSAGES = ["Sidebar", "Sitenotice", "Common.css", "Tagline", "Noarticletext", "Lastmodifiedat", "Aboutpage"]
ELSEWHERE = ["Project:About", "User:Admin", "User_talk:Admin", "User_talk:127.0.0.1", "Help:Contents"]
# After its answer MediaWiki goes on for a while. It may take so long, in seconds.
SETTLED_SECONDS_MAX = 30


class MediaWiki:
    name = "mediawiki"
    version = "1.39"
    noise = NOISE
    paths = ["/wiki/" + urllib.parse.quote(title, safe="/") for title in TITLES + ODD_TITLES] + ODD_PATHS

    def __init__(self, proxy):
        self.address = f"{proxy}/api.php"
        self.jobs = os.environ["RUN_JOBS"]
        self.sessions = ["psql", "-qAt", "-h", "127.0.0.1", "-p", os.environ["DATABASE"], "-U", "postgres", "-c"]
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(cookies)
        self.token = self._log_in()

    def _log_in(self):
        token = self._ask(action="query", meta="tokens", type="login")["query"]["tokens"]["logintoken"]
        done = self._ask(action="login", lgname="Admin", lgpassword="Only-for-a-test-1", lgtoken=token)
        if done["login"]["result"] != "Success":
            raise SystemExit(f"the wiki refuses its administrator: {done}")
        return self._ask(action="query", meta="tokens")["query"]["tokens"]["csrftoken"]

    def _ask(self, **form):
        form = urllib.parse.urlencode({"format": "json", "formatversion": "2", **form}).encode()
        with self.opener.open(self.address, form, timeout=60) as answer:
            return json.load(answer)

    def _change(self, **form):
        """One change. A refusal is no failure: a page to delete may not be there."""
        done = self._ask(token=self.token, **form)
        if "error" in done:
            raise compare.Refused(done["error"]["code"])
        return done

    def _write(self, title, text):
        done = self._change(action="edit", title=title, text=text)
        if done["edit"].get("nochange"):
            raise compare.Refused("nochange")
        return title

    def settle(self):
        """Waits until no session of the wiki is in a transaction, and its workers have closed their connections."""
        open_ones = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'wiki'"
        for _ in range(SETTLED_SECONDS_MAX * 20):
            if subprocess.check_output([*self.sessions, open_ones], text=True).strip() == "0":
                return
            time.sleep(0.05)
        raise SystemExit("the wiki does not come to rest")

    def edit(self, choices, number):
        kinds, weights = zip(*KINDS)
        kind = choices.choices(kinds, weights)[0]
        return kind, f"{kind} {getattr(self, kind)(choices, number)}"

    def article(self, choices, number):
        return self._write(choices.choice(TITLES + ODD_TITLES), text(choices, number))

    def template(self, choices, number):
        return self._write(choices.choice(TEMPLATES), f"template {number} " + link(choices))

    def category(self, choices, number):
        return self._write(choices.choice(CATEGORIES), f"category {number} " + choices.choice(["", "__HIDDENCAT__"]))

    def talk(self, choices, number):
        return self._write("Talk:" + choices.choice(TITLES), f"talk {number}")

    def elsewhere(self, choices, number):
        return self._write(choices.choice(ELSEWHERE), f"elsewhere {number}")

    def message(self, choices, number):
        message = choices.choice(MESSAGES)
        if message == "Sitenotice" and number % 4:
            # While a notice stands, each edit ends all articles: so it goes soon.
            self._change(action="delete", title="MediaWiki:Sitenotice")
            return "MediaWiki:Sitenotice deleted"
        words = {
            "Sidebar": f"* navigation\n** A{number % 24}|word {number}",
            "Common.css": f"p {{ margin: {number}px }}",
            "Sitenotice": f"words {number} {link(choices)}",
            "Noarticletext": f"words {number} {link(choices)} {{{{T{number % 4}}}}}",
        }
        return self._write(f"MediaWiki:{message}", words.get(message, f"words {number}"))

    def redirect(self, choices, _):
        targets = TITLES + CATEGORIES + ELSEWHERE + ["Talk:A1", "A99"]
        return self._write(choices.choice(TITLES), f"#REDIRECT [[{choices.choice(targets)}]]")

    def _some(self, choices, titles, there):
        """One of the titles whose page is there, or is not."""
        found = self._ask(action="query", titles="|".join(titles))["query"]["pages"]
        found = sorted(page["title"] for page in found if bool(page.get("missing")) != there)
        if not found:
            raise compare.Refused("none is so")
        return choices.choice(found)

    def move(self, choices, _):
        start, end = self._some(choices, TITLES + ODD_TITLES, True), self._some(choices, TITLES + ODD_TITLES, False)
        form = {"noredirect": "1"} if choices.random() < 0.5 else {}
        if choices.random() < 0.5:
            form["movetalk"] = "1"
        self._change(action="move", **{"from": start, "to": end}, **form)
        return f"{start} to {end} {form}"

    def delete(self, choices, _):
        others = TEMPLATES + CATEGORIES + ELSEWHERE + [f"MediaWiki:{message}" for message in MESSAGES]
        talk = [f"Talk:{title}" for title in TITLES] + [f"File:{name}" for name in FILES]
        title = self._some(choices, choices.choice([TITLES, TITLES, others, talk]), True)
        self._change(action="delete", title=title)
        return title

    def restore(self, choices, _):
        title = self._some(choices, TITLES + TEMPLATES, False)
        self._change(action="undelete", title=title)
        return title

    def protect(self, choices, number):
        title = choices.choice(TITLES)
        page = self._ask(action="query", titles=title)["query"]["pages"][0]
        levels = ["all", "sysop"]
        level = levels[number % 2]
        what = f"create={level}" if page.get("missing") else f"edit={level}|move={level}"
        self._change(action="protect", title=title, protections=what)
        return f"{title} {what}"

    def hide_log(self, choices, number):
        title = choices.choice(TITLES)
        found = self._ask(action="query", list="logevents", letitle=title, lelimit="1", leprop="ids")["query"]["logevents"]
        if not found:
            raise compare.Refused("no log")
        change = {"hide": "comment|user"} if number % 2 else {"show": "comment|user"}
        self._change(action="revisiondelete", type="logging", ids=found[0]["logid"], **change)
        return f"of {title} {change}"

    def upload(self, choices, number):
        name = choices.choice(FILES)
        form = {"action": "upload", "format": "json", "ignorewarnings": "1", "filename": name, "token": self.token}
        between = uuid.UUID(int=number).hex
        fields = [f'Content-Disposition: form-data; name="{field}"\r\n\r\n{value}'.encode() for field, value in form.items()]
        head = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: image/png\r\n\r\n'
        parts = [b"--%s\r\n%s\r\n" % (between.encode(), part) for part in [*fields, head.encode() + png(1 + number % 40)]]
        body = b"".join(parts) + f"--{between}--\r\n".encode()
        request = urllib.request.Request(self.address, body, {"Content-Type": f"multipart/form-data; boundary={between}"})
        with self.opener.open(request, timeout=60) as answer:
            done = json.load(answer)
        if "error" in done:
            raise compare.Refused(done["error"]["code"])
        return name

    def block(self, choices, number):
        form = {"action": "block", "anononly": "1", "reblock": "1"} if number % 2 else {"action": "unblock"}
        self._change(user="127.0.0.1", **form)
        return form["action"]

    def purge(self, choices, _):
        title = choices.choice(TITLES)
        self._change(action="purge", titles=title, forcelinkupdate="1")
        return title

    def jobs_run(self, *_):
        subprocess.run([self.jobs], check=True, stdout=subprocess.DEVNULL)
        return ""


KINDS = [
    ("article", 30),
    ("template", 6),
    ("category", 5),
    ("talk", 6),
    ("elsewhere", 3),
    ("message", 5),
    ("redirect", 5),
    ("move", 12),
    ("delete", 10),
    ("restore", 4),
    ("protect", 6),
    ("hide_log", 3),
    ("upload", 4),
    ("block", 1),
    ("purge", 2),
    ("jobs_run", 25),
]


def link(choices):
    return f"[[{choices.choice(TITLES + ['Help:Contents'])}]]"


def text(choices, number):
    """An article: some links, templates, categories, other articles inside it, and words of the skin."""
    pieces = [
        lambda: link(choices),
        lambda: "{{T%d}}" % choices.randrange(4),
        lambda: f"[[{choices.choice(CATEGORIES)}]]",
        lambda: "{{:%s}}" % choices.choice(TITLES),
        lambda: "{{int:tagline}}",
        lambda: f"[[File:{choices.choice(FILES)}]]",
        lambda: "{{PAGESINCATEGORY:C%d}}" % choices.randrange(4),
        lambda: f"\n== Heading {number} ==\n",
    ]
    return " ".join([f"edit {number}", *(choices.choice(pieces)() for _ in range(choices.randrange(5)))])


def png(side):
    """A grey square."""

    def chunk(kind, content):
        return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
    rows = (b"\0" + b"\x80" * side) * side
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main():
    options = compare.options(__doc__)
    wiki = MediaWiki(options.proxy)
    for number, title in enumerate([*TITLES[:24], *TEMPLATES, "Project:About"]):
        wiki._write(title, f"begin {number}")
    wiki.jobs_run()
    return compare.run(wiki, compare.Servers(options.proxy, os.environ["ORIGIN"], wiki.noise), options)


if __name__ == "__main__":
    sys.exit(main())
