"""Pages in Chromium: the elements after the scripts ran, and what the browser complained about."""

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from typing import NamedTuple

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--dump-dom",
]
BUDGETS = (8_000, 40_000, 200_000)
"""Milliseconds of the browser's own time in each attempt: on a busy machine they can end before a picture is drawn."""
VOID = {"meta", "link", "img", "input", "br", "hr", "wbr", "path", "circle", "rect"}


class Element:
    """An element with its attributes and what is in it; ``text`` is all text below it."""

    def __init__(self, tag, attributes):
        self.tag, self.attributes, self.children = tag, attributes, []

    @property
    def text(self):
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def classes(self):
        return (self.attributes.get("class") or "").split()

    def all(self, tag=None, of_class=None, **attributes):
        """Return the elements below of this tag, class and attributes, in order."""
        found = []
        for child in self.children:
            if isinstance(child, str):
                continue
            fits = (tag is None or child.tag == tag) and (of_class is None or of_class in child.classes)
            if fits and all(child.attributes.get(name) == value for name, value in attributes.items()):
                found.append(child)
            found += child.all(tag, of_class, **attributes)
        return found


class _Tree(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open = [Element("document", {})]

    def handle_starttag(self, tag, attrs):
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        while tag not in VOID and len(self.open) > 1 and self.open.pop().tag != tag:
            pass

    def handle_data(self, data):
        self.open[-1].children.append(data)


def tree(html):
    """Return the document of an HTML text."""
    parser = _Tree()
    parser.feed(html)
    parser.close()
    return parser.open[0]


class Opened(NamedTuple):
    """A page in the browser: the HTML after its scripts, and what the console said."""

    html: str
    complaints: list[str]

    @property
    def document(self):
        return tree(re.sub(r"<script\b.*?</script>", "", self.html, flags=re.DOTALL))


def environment_of(profile):
    """Return the environment of a browser that writes into its profile alone, not into the home of who runs the tests.

    It keeps what a profile folder does not cover, such as crash reports, under these three.
    """
    return {**os.environ, "HOME": str(profile), "XDG_CONFIG_HOME": str(profile), "XDG_CACHE_HOME": str(profile)}


def opened(address, profile, *, awaited=""):
    """Open an address in Chromium, with its own ``profile`` folder.

    ``awaited`` is a text that the page's scripts write at last: without it the page is opened again, for longer.
    """
    environment = environment_of(profile)
    for budget in BUDGETS:
        command = [CHROMIUM, *FLAGS, f"--virtual-time-budget={budget}", f"--user-data-dir={profile}", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=environment)
        if awaited in done.stdout:
            break
    return Opened(done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line])
