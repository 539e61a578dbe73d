"""The fictional site of section 4, http://www.fict.org/: its pages and who may fetch them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ORIGIN = "http://www.fict.org"

ROBOTS_TXT = """\
# /robots.txt for http://www.fict.org/
# comments to webmaster@fict.org

User-agent: unhipbot
Disallow: /

User-agent: webcrawler
User-agent: excite
Disallow:

User-agent: *
Disallow: /org/plans.html
Allow: /org/
Allow: /serv
Allow: /~mak
Disallow: /
"""

ROBOTS = ("unhipbot", "webcrawler", "excite", "figtree")
"""The robots of the matrix; the last one is the draft's "other"."""

_MATRIX = """
    http://www.fict.org/                         No       Yes       No
    http://www.fict.org/index.html               No       Yes       No
    http://www.fict.org/robots.txt               Yes      Yes       Yes
    http://www.fict.org/server.html              No       Yes       Yes
    http://www.fict.org/services/fast.html       No       Yes       Yes
    http://www.fict.org/services/slow.html       No       Yes       Yes
    http://www.fict.org/orgo.gif                 No       Yes       No
    http://www.fict.org/org/about.html           No       Yes       Yes
    http://www.fict.org/org/plans.html           No       Yes       No
    http://www.fict.org/%7Ejim/jim.html          No       Yes       No
    http://www.fict.org/%7Emak/mak.html          No       Yes       Yes
"""


def _rows() -> Iterable[tuple[str, dict[str, bool]]]:
    for line in _MATRIX.strip().splitlines():
        url, unhipbot, webcrawler_and_excite, other = line.split()
        words = (unhipbot, webcrawler_and_excite, webcrawler_and_excite, other)
        may = {robot: word == "Yes" for robot, word in zip(ROBOTS, words, strict=True)}
        yield url.removeprefix(ORIGIN), may


MATRIX: Mapping[str, Mapping[str, bool]] = dict(_rows())
"""Section 4: path -> robot -> may it fetch that?"""


@dataclass(frozen=True, slots=True)
class Document:
    """What the site answers to a GET."""

    body: bytes
    content_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Directed:
    """A page that says what a robot may do with it, or that only seems to.

    It has one link, to a page that nothing else links to.
    """

    name: str
    says: str
    """A META tag, or a header."""
    item: bool
    """May the robot figtree index it?"""
    link: bool
    """May the robot figtree follow its link?"""

    @property
    def path(self) -> str:
        return f"{DIRECTED_PATH}{self.name}.html"

    @property
    def beyond(self) -> str:
        """Where its link leads."""
        return f"{DIRECTED_PATH}beyond/{self.name}.html"

    def document(self) -> Document:
        link = _link(self.beyond)
        name, _, value = self.says.partition(": ")
        if name == "X-Robots-Tag":
            return _page(self.name, link, headers={name: value})
        return _page(self.name, link, head=self.says)


DIRECTED_PATH = "/services/meta/"

DIRECTED = (
    Directed("silent", "", item=True, link=True),
    Directed("noindex", '<META name="ROBOTS" content="NOINDEX">', item=False, link=True),
    Directed("nofollow", '<META name="robots" content="nofollow">', item=True, link=False),
    Directed("none", '<META name="robots" content="none">', item=False, link=False),
    Directed("named", '<META name="figtree" content="noindex">', item=False, link=True),
    Directed("header", "X-Robots-Tag: noindex, nofollow", item=False, link=False),
    Directed("another", "X-Robots-Tag: unhipbot: none", item=True, link=True),
    Directed("comment", '<!-- <META name="robots" content="none"> -->', item=True, link=True),
)
"""The robots META tag, and its header."""


USAGE_ROBOTS_TXT = """\
User-agent: *
Disallow: /org/plans.html
Content-Usage: train-ai=n
Content-Usage: /open/ train-ai=y, search=y
Content-Usage: /open/quiet/ search=y
Content-Signal: ai-input=no
License: http://www.fict.org/license.xml
"""
"""What the site serves to the spider train."""


@dataclass(frozen=True, slots=True)
class Used:
    """A page, and what becomes of it if it is collected to train a model."""

    path: str
    says: str
    """A META tag, or a header."""
    outcome: str
    """kept, dropped or refused"""
    by: str
    """A part of the statement that decided."""

    def document(self) -> Document:
        name, colon, value = self.says.partition(": ")
        if colon:
            return _page(self.path, headers={name: value})
        return _page(self.path, head=self.says)


USAGE_PAGES = (
    Used("/open/essay.html", "", "kept", "line 4"),
    Used("/open/quiet/letter.html", "", "kept", "nothing"),
    Used("/open/photo.html", '<meta name="robots" content="noimageai">', "kept", "line 4"),
    Used("/open/law.html", "tdm-reservation: 1", "kept", "line 4"),
    Used("/open/poem.html", "Content-Usage: train-ai=n", "dropped", "Content-Usage: train-ai=n"),
    Used("/open/novel.html", '<meta name="robots" content="noai">', "dropped", "noai"),
    Used("/open/score.html", "X-Robots-Tag: noai", "dropped", "X-Robots-Tag: noai"),
    Used("/org/about.html", "", "refused", "line 3"),
    Used("/org/plans.html", "", "refused", "line 2"),
)
"""Of all sources of usage preferences."""


def documents(robots_txt: bytes) -> dict[str, Document]:
    """Return all that the site serves: path -> document."""
    pages = {path: _page(path) for path in MATRIX}
    pages["/"] = pages["/index.html"] = _page("fict.org", *map(_link, MATRIX))
    pages["/orgo.gif"] = Document(_GIF, "image/gif")
    pages["/robots.txt"] = Document(robots_txt, "text/plain")
    pages[DIRECTED_PATH] = _page("Directives", *(_link(page.path) for page in DIRECTED))
    for used in USAGE_PAGES:
        pages.setdefault(used.path, used.document())
    for page in DIRECTED:
        pages[page.path] = page.document()
        pages[page.beyond] = _page(f"Beyond {page.name}")
    return pages


_GIF = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"


def _link(path: str) -> str:
    return f'<p><a href="{path}">{path}</a></p>'


def _page(
    title: str, *content: str, head: str = "", headers: Mapping[str, str] | None = None
) -> Document:
    html = f"<!DOCTYPE html>\n<title>{title}</title>\n{head}\n<h1>{title}</h1>\n"
    return Document((html + "\n".join(content)).encode(), headers=headers or {})
