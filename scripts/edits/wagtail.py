#!/usr/bin/env python3
"""Random edits of a Wagtail site, by `scripts/wagtail.sh THORP --edits 1000`.

Each edit runs in a process of its own site, through Wagtail's code (`wagtail/edit.py`): pages, menus, snippets, pictures, moved and copied
subtrees, unpublished and private pages, redirects. The origin is another process.
"""

import json
import os
import shlex
import subprocess
import sys

import compare

SECTIONS = [f"/s{number}/" for number in range(5)]
ARTICLES = [f"{section}a{number}/" for section in SECTIONS for number in range(4)]
BELOW = [f"/s{section}/a{article}/b{below}/" for section in range(3) for article in range(2) for below in range(2)]
# Other addresses of the same pages, and a slash in disguise.
ODD_PATHS = ["//s0/a0/", "/s0%2Fa0/"]

KINDS = {
    "publish": 30,
    "draft": 8,
    "unpublish": 6,
    "publish_again": 8,
    "create": 8,
    "delete": 4,
    "move": 10,
    "order": 3,
    "rename": 8,
    "alias": 2,
    "copy": 3,
    "menu": 5,
    "private": 5,
    "open_all": 2,
    "image": 5,
    "image_title": 3,
    "image_gone": 2,
    "document": 2,
    "notice": 3,
    "site_name": 1,
    "redirect": 8,
    "log_in": 3,
}


class Wagtail:
    name = "wagtail"
    version = "8.0.1"
    # No answer of the origin differs from the next one, but for the token of the form that asks for the password of a private page.
    noise = [(r'name="csrfmiddlewaretoken" value="[^"]*"', 'name="csrfmiddlewaretoken"')]
    paths = ["/", *SECTIONS, *ARTICLES, *BELOW, *ODD_PATHS]

    def __init__(self, seed):
        command = [*shlex.split(os.environ["MANAGE"]), "edit", "--seed", str(seed)]
        self.editor = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()

    def _answer(self):
        line = self.editor.stdout.readline()
        if not line:
            raise SystemExit("the editor of the site has ended")
        return json.loads(line)

    def settle(self):
        """The editor answers after its last commit, and nothing goes on behind it."""

    def edit(self, choices, number):
        kind = choices.choices(list(KINDS), list(KINDS.values()))[0]
        self.editor.stdin.write(f"{number} {kind}\n")
        self.editor.stdin.flush()
        done = self._answer()
        if "refused" in done:
            raise compare.Refused(done["refused"])
        return kind, f"{kind} {done['what']}"

    def end(self):
        self.editor.stdin.close()
        self.editor.wait()


def main():
    options = compare.options(__doc__)
    site = Wagtail(options.seed)
    try:
        return compare.run(site, compare.Servers(options.proxy, os.environ["ORIGIN"], site.noise), options)
    finally:
        site.end()


if __name__ == "__main__":
    sys.exit(main())
