"""The lines of a field wherever they stand in a file, and the Sitemap lines among them."""

from __future__ import annotations

import pytest

from scrapy_koster.parsers import KosterRobotParser, Rfc9309RobotParser, StrictestRobotParser
from scrapy_koster.protocol.line import Line, lines_with
from scrapy_koster.protocol.sitemap import sitemap_urls_in, sitemaps_in

FILE = b"""\xef\xbb\xbfSitemap: http://h/1.xml
# Sitemap: http://h/comment.xml
User-agent: *
Disallow: /a
SITEMAP :\thttp://h/2.xml # the other

Sitemap:
X-Sitemap: http://h/x.xml
Sitemap http://h/no-colon.xml
sitemap: \xff\x1b"""


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_sitemap_lines_are_found_in_and_outside_of_records(end: bytes) -> None:
    body = FILE.replace(b"\n", end)
    assert list(lines_with(body, b"sitemap")) == [
        Line(1, b"sitemap", b"http://h/1.xml"),
        Line(5, b"sitemap", b"http://h/2.xml"),
        Line(7, b"sitemap", b""),
        Line(10, b"sitemap", b"\xff\x1b"),
    ]
    assert sitemaps_in(body) == ["http://h/1.xml", "http://h/2.xml", r"\xff\x1b"]


def test_many_and_long_ones_are_cut() -> None:
    found = sitemaps_in(b"Sitemap: " + b"x" * 2000 + b"\nSitemap: /a" * 200)
    assert len(found) == 100
    assert len(found[0]) == 1000


PARSERS = [KosterRobotParser, Rfc9309RobotParser, StrictestRobotParser]
LISTED = b"""\
Sitemap: http://h/1.xml
User-agent: *
Disallow: /a
sitemap: /2.xml
Sitemap: http://h/1.xml
Sitemap: file:///etc/passwd
Sitemap: data:text/xml,x
Sitemap: http://h/robots.txt
Sitemap: http://[h/
Sitemap:
User-agent: other
Disallow: /
Sitemap: https://other.example/3.xml
"""


@pytest.mark.parametrize("parser", PARSERS)
def test_the_sitemaps_of_a_parser(parser: type[KosterRobotParser]) -> None:
    """Scrapy's pull request 8069 joins them with the URL of a request."""
    found = parser.from_crawler(None, LISTED).sitemaps()
    assert list(found) == ["http://h/1.xml", "/2.xml", "https://other.example/3.xml"]
    assert sitemap_urls_in(LISTED, "https://site.example/robots.txt") == [
        "http://h/1.xml",
        "https://site.example/2.xml",
        "https://other.example/3.xml",
    ]
