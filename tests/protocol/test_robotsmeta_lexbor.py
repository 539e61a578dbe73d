"""Where META tags are, by lexbor, which builds the tree of the HTML standard.

What a browser obeys is obeyed. More may be: tags in a template, a CDATA section or behind a
frameset. SVG, MathML, <title/> and <script/> are left out.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from harness.sizes import so_many

from scrapy_koster.protocol.metatags import metas_of_page
from scrapy_koster.protocol.robotsmeta import Directives, directives_of, names_for

lexbor = pytest.importorskip(
    "selectolax.lexbor", reason="the second oracle for META tags: pip install selectolax"
)

DOCUMENTS = int(os.environ.get("FUZZ_DOCUMENTS", so_many(1000, 4000)))
ELEMENTS = (
    "a", "body", "br", "div", "form", "frameset", "head", "html", "iframe", "link", "noembed",
    "noframes", "noscript", "p", "plaintext", "script", "style", "table", "td", "template",
    "textarea", "title", "xmp",
)  # fmt: skip
PIECES = (
    *(f"<{name}>" for name in ELEMENTS),
    *(f"</{name}>" for name in ELEMENTS),
    "<p/>",
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


def by_lexbor(page: str) -> Directives:
    """What the META tags of the tree say."""
    tags = [tag.attributes for tag in lexbor.LexborHTMLParser(page).css("meta")]
    found = [(tag.get("name"), tag.get("content")) for tag in tags]
    metas = [(name, content) for name, content in found if name is not None and content is not None]
    return directives_of(metas, {}, "figtree")


def test_of_random_documents_all_is_obeyed_that_lexbor_finds() -> None:
    differing = []
    directives = 0
    for page in documents():
        expected = by_lexbor(page)
        directives += bool(expected)
        found = directives_of(metas_of_page(page.encode(), names_for("figtree")), {}, "figtree")
        if not expected.keys() <= found.keys():
            differing.append((page, found, expected))
    assert not differing
    assert directives > DOCUMENTS / 10
