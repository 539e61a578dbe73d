"""The page in which a browser shows a text file, in place of the file."""

from __future__ import annotations

import pytest

from scrapy_koster.protocol.access import CachedRobots, status_of_copy
from scrapy_koster.protocol.html_page import page_in_place
from scrapy_koster.protocol.line import is_viewer_page, plain
from scrapy_koster.protocol.policy import Html, Policy
from scrapy_koster.protocol.reading import Rfc9309, RobotsTxt, Strictest
from scrapy_koster.protocol.site_status import SiteStatus

RULES = "User-agent: *\nDisallow: /a?b&c\nDisallow: /<d>\nCrawl-delay: 3\n"
ESCAPED = RULES.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
PAGES = {
    "Chrome, today": '<html><head><meta name="color-scheme" content="light dark"><meta charset='
    f'"utf-8"></head><body><pre>{ESCAPED}</pre><div class="json-formatter"></div></body></html>',
    "Firefox": '<html><head><link rel="stylesheet" href="resource://content-accessible/plaintext.'
    f'css"></head><body><pre>{ESCAPED}</pre></body></html>',
    "with a title": "<!DOCTYPE html>\n<HTML><HEAD><title>robots.txt</title><style>p {}</style>"
    f"</head>\n<BODY>\n<PRE>{ESCAPED}</PRE>\n</BODY></HTML>\n",
    "behind a byte order mark": f"\ufeff \n<pre>{ESCAPED}</pre>",
    "cut at KOSTER_MAX_BYTES": f"<html><body><pre>{ESCAPED}",
    "numeric references": f"<pre>{ESCAPED.replace('&amp;', '&#38;').replace('&lt;', '&#x3C;')}",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_its_text_is_read(page: str, encoding: str) -> None:
    body = page.encode(encoding)
    assert is_viewer_page(body)
    assert plain(body).decode() == RULES
    for reading in (RobotsTxt(body), Rfc9309(body), Strictest(body)):
        for path in ("/a?b&c", "/<d>"):
            ruling = reading.ruling(f"http://h{path}", "figtree")
            assert not ruling.allowed
            assert not ruling.is_misspelt
        assert reading.allowed("http://h/", "figtree")
        assert [line.number for line in reading.lines("figtree", b"crawl-delay")] == [4]
    assert page_in_place(body) is None
    copy = CachedRobots("http://h/robots.txt", 200, body, None, None, 0.0, 9.0)
    assert status_of_copy(copy, Policy(html=Html.DISALLOW)) is SiteStatus.OBEYED
    assert copy.in_utf8.decode() == RULES


@pytest.mark.parametrize(
    "page",
    [
        "", RULES, f"<pre>{RULES}</pre>text", f"text<pre>{RULES}</pre>", f"<p>a<pre>{RULES}</pre>",
        f"<html><head></head><body>text<pre>{ESCAPED}</pre>", "<pre>User-agent: *<br>Disallow: /",
        f"<pre>{ESCAPED}</pre><pre>{ESCAPED}</pre>", "<prefix>x", "<pre", "<pre>a <b>b</b></pre>",
    ],
)  # fmt: skip
def test_what_is_no_such_page(page: str) -> None:
    assert not is_viewer_page(page.encode())
    assert plain(page.encode()) == page.encode()


def test_a_page_without_rules_stays_a_page() -> None:
    body = b"<pre>404 Not found</pre>"
    assert plain(body) == b"404 Not found"
    assert page_in_place(body) is not None


def test_octets_that_are_no_utf_8_stay() -> None:
    assert plain(b"<pre>/\xff&amp;\xe9</pre>") == b"/\xff&\xe9"
