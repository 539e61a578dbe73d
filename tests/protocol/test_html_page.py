"""Whether a /robots.txt is an HTML page."""

from __future__ import annotations

import pytest

from scrapy_koster.protocol.html_page import is_html


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
        ("<html>".encode("utf-16-le"), False),
        (b"<htmlx>", False),
        (b"<a>", False),
        (b"X\xef\xbb\xbf<html>", False),
    ],
)
def test_by_how_it_begins(body: bytes, expected: bool) -> None:
    assert is_html(body) is expected
