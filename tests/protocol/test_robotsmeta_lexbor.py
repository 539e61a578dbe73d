"""Where META tags are, by lexbor, which builds the tree of the HTML standard.

A frameset takes the place of the body, and of the META tags that were in it: a known deviation.
Robots show no frames, and to them those are tags as any others.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from scrapy_koster.protocol.metatags import Syntax
from scrapy_koster.protocol.robotsmeta import Directives, directives_of_metas, directives_of_page

lexbor = pytest.importorskip(
    "selectolax.lexbor", reason="the second oracle for META tags: pip install selectolax"
)

DOCUMENTS = int(os.environ.get("FUZZ_DOCUMENTS", "4000"))
ELEMENTS = (
    "a", "b", "body", "br", "caption", "desc", "div", "font", "foreignObject", "form", "frameset",
    "g", "head", "html", "iframe", "image", "li", "link", "math", "mi", "ms", "noembed",
    "noframes", "noscript", "object", "p", "plaintext", "pre", "script", "style", "svg", "table",
    "td", "template", "textarea", "title", "tr", "xmp",
)  # fmt: skip
PIECES = (
    *(f"<{name}>" for name in ELEMENTS),
    *(f"</{name}>" for name in ELEMENTS),
    *(f"<{name}/>" for name in ("svg", "math", "title", "script", "desc", "g", "p")),
    "<meta name=robots content=noindex>",
    "<meta content='nofollow' name='ROBOTS' />",
    '<meta name="figtree" content="none">',
    "<meta name=robots content=no&#x69;ndex>",
    "<meta name=robots name=x content=nofollow>",
    "<meta name=", "robots ", "content=", "none", "<!--", "-->", "--!>", "<!", "<?", "</", "<", ">",
    "/", "/>", "=", "'", '"', "&", " ", "\n", "\f", "x", "<![CDATA[", "]]>", "<a b='", "<a b=\"",
    "<!doctype html>", "<?xml ?>", "<script><!--", "<script>", "</script >",
)  # fmt: skip


def documents() -> list[str]:
    chance = Random(1996)
    return ["".join(chance.choices(PIECES, k=chance.randint(1, 14))) for _ in range(DOCUMENTS)]


def by_lexbor(page: str) -> Directives | None:
    """What the META tags of the tree say, None where a frameset replaced some of it."""
    tree = lexbor.LexborHTMLParser(page)
    if tree.css_first("frameset") is not None:
        return None
    found = [
        (tag.attributes.get("name"), tag.attributes.get("content")) for tag in tree.css("meta")
    ]
    return directives_of_metas(
        [(name, content) for name, content in found if name is not None and content is not None],
        "figtree",
    )


def test_random_documents_are_read_as_lexbor_reads_them() -> None:
    differing = []
    directives = 0
    for page in documents():
        expected = by_lexbor(page)
        octets = page.encode()
        directives += bool(expected)
        found = directives_of_page(octets, "figtree", syntax=Syntax.HTML)
        if expected is not None and found.words() != expected.words():
            differing.append((page, found.words(), expected.words()))
    assert not differing
    assert directives > DOCUMENTS / 10
