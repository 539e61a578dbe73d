"""Whether a /robots.txt is an HTML page."""

from __future__ import annotations

import pytest
from harness.challenge_pages import CHALLENGES, ordinary_pages

from scrapy_koster.protocol.html_page import ORDINARY, is_html, page_in_place

TAGS = [
    "<!DOCTYPE html><title>x</title>", "<html>", "<h1>404</h1>", "<Body class=x>", "<!-- x -->",
    "<?xml version='1.0'?>", "<?php echo 1 ?>", "<br />\n<b>Warning</b>: x", "<pre>x</pre>",
    "<center>", "<h2>x", "<table>", "<font color=red>", "<form>", "<iframe src=x>", "<noscript>",
    "<a>", "<x-page>x", "<span>", "<html:html>", "</html>", "<%@ page %>", "< p", "<",
    "<Error><Code>403</Code></Error>",
]  # fmt: skip
IN_FRONT = {
    "nothing": "",
    "space": " \r\n\t\v\f",
    "a byte order mark": "\ufeff",
    "what is space to Unicode": "\xa0\u3000\u2028",
}


@pytest.mark.parametrize("in_front", IN_FRONT.values(), ids=IN_FRONT)
@pytest.mark.parametrize("tag", TAGS)
def test_what_begins_with_a_tag(tag: str, in_front: str) -> None:
    for encoding in ("utf-8", "utf-16"):
        assert page_in_place((in_front + tag).encode(encoding)) is not None


@pytest.mark.parametrize("line", ["<html>", " <HTML lang=en>", "\t<!DOCTYPE html>", "<!doctype"])
@pytest.mark.parametrize("before", ["Error 404\n", "Notice: x\r", "x: y\n" * 100, "# x\r\n\r\n"])
def test_a_page_below_lines_of_text(before: str, line: str) -> None:
    assert page_in_place(f"{before}{line}\n<p>x".encode()) is not None


@pytest.mark.parametrize(
    "body",
    ["", "\n", "User-agent: *\nDisallow: /<html>", "# <html>", "x <html>", "x\n<htmlx>", "x\n<a>",
     "x" * 1000 + "\n<html>", "x\n&lt;html>", "{}", "&lt;html&gt;", "x\xa0<p>"],
)  # fmt: skip
def test_what_is_no_page(body: str) -> None:
    assert not is_html(body.encode())
    assert page_in_place(body.encode()) is None


@pytest.mark.parametrize(("name", "page"), CHALLENGES.items(), ids=CHALLENGES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_challenge_pages(name: str, page: str, encoding: str) -> None:
    assert page_in_place(page.encode(encoding)) == f"a challenge page ({name})"
    assert page_in_place(page.upper().encode()) is not None


def test_no_ordinary_page_is_mistaken_for_a_challenge() -> None:
    pages = list(ordinary_pages())
    assert len(set(pages)) == 60
    assert [page for page in pages if page_in_place(page.encode()) != ORDINARY] == []
    assert ORDINARY == "an HTML page"


@pytest.mark.parametrize(
    "page",
    [
        "<html>\nUser-agent: *\nDisallow: /a\n</html>",
        f"{CHALLENGES['Anubis']}\nUser-agent: *\nDisallow: /a\n",
        "<br />\n<b>Notice</b>:  Undefined index<br />\nUser-agent: *\nDisallow: /a\n",
    ],
)
def test_a_record_is_kept_whatever_is_around_it(page: str) -> None:
    assert is_html(page.encode())
    assert page_in_place(page.encode()) is None


@pytest.mark.parametrize(
    "page",
    ["<html><title>x</title></html>", "<html><script>a", "<html><!-- <script></script>", "<html",
     "<html><meta http-equiv=refresh content=1><p>You are redirected.</p></html>",
     "<html><meta name=refresh><title>x</title>", "<html><script></script>text"],
)  # fmt: skip
def test_what_shows_something_or_is_cut_is_an_ordinary_page(page: str) -> None:
    assert page_in_place(page.encode()) == ORDINARY
