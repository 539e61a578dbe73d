"""Whether a /robots.txt is an HTML page."""

from __future__ import annotations

import pytest
from harness.challenge_pages import CHALLENGES, ordinary_pages

from scrapy_koster.protocol.html_page import HtmlPage, is_html, page_in_place


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<!DOCTYPE html><title>x</title>", True),
        (b"<html>", True),
        (b"<h1>404</h1>", True),
        (b" \r\n<Body class=x>", True),
        (b"\xef\xbb\xbf<html>", True),
        (b"<!-- x -->", True),
        (b"<?xml version='1.0'?>", True),
        (b" " * 995 + b"<html", True),
        (b" " * 996 + b"<html", False),
        (b"", False),
        (b"User-agent: *\nDisallow: /<html>", False),
        (b"# <html>", False),
        ("\ufeff \n<html>".encode("utf-16-le"), True),
        ("<html>".encode("utf-16-le"), True),
        (b"<htmlx>", False),
        (b"<a>", False),
        (b"X\xef\xbb\xbf<html>", False),
    ],
)
def test_by_how_it_begins(body: bytes, expected: bool) -> None:
    assert is_html(body) is expected


@pytest.mark.parametrize(("name", "page"), CHALLENGES.items(), ids=CHALLENGES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_challenge_pages(name: str, page: str, encoding: str) -> None:
    found = page_in_place(page.encode(encoding))
    assert found == HtmlPage(name)
    assert str(found) == f"a challenge page ({name})"
    assert page_in_place(page.upper().encode()) is not None


def test_no_ordinary_page_is_mistaken_for_a_challenge() -> None:
    pages = list(ordinary_pages())
    assert len(set(pages)) == 100
    assert [page for page in pages if page_in_place(page.encode()) != HtmlPage()] == []
    assert str(HtmlPage()) == "an HTML page"


@pytest.mark.parametrize(
    "page",
    [
        "<html>\nUser-agent: *\nDisallow: /a\n</html>",
        f"{CHALLENGES['Anubis']}\nUser-agent: *\nDisallow: /a\n",
        "User-agent: *\nDisallow: /a\n",
        "",
    ],
)
def test_what_has_a_record_or_is_no_page(page: str) -> None:
    assert page_in_place(page.encode()) is None


@pytest.mark.parametrize(
    "page",
    ["<html><title>x</title></html>", "<html><script>a", "<html><!-- <script></script>", "<html",
     "<html><meta http-equiv=refresh content=1><p>You are redirected.</p></html>",
     "<html><meta name=refresh><title>x</title>", "<html><script></script>text"],
)  # fmt: skip
def test_what_shows_something_or_is_cut_is_an_ordinary_page(page: str) -> None:
    assert page_in_place(page.encode()) == HtmlPage()
