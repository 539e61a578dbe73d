"""Sitemap lines, which name lists of the pages of a site. The lines are for every robot.

Neither standard has this field. Both standards allow extensions (3.2).
"""

from contextlib import suppress
from itertools import islice
from urllib.parse import urljoin

from scrapy_koster.protocol.line import lines_with
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.site import site_of
from scrapy_koster.protocol.wording import shown

_LISTED = 100
_CHARS = 1000
_ANY_ROBOTS_TXT = "http://robots.invalid/robots.txt"
"""The base of relative URLs if the URL of the file is unknown."""


def sitemap_urls_in(body: bytes, base: str | None = None) -> list[str]:
    """Return the distinct URLs of the Sitemap lines, in file order.

    *base* is the URL of the file. Without *base*, URLs are returned as written. Invalid URLs, URLs
    with a scheme other than http and https, and URLs of a /robots.txt are left out.
    """
    found: dict[str, None] = {}
    for line in lines_with(body, b"sitemap"):
        with suppress(ValueError):
            written = line.value.decode(errors="replace")
            url = urljoin(base or _ANY_ROBOTS_TXT, written)
            if site_of(url) is not None and not is_robots_txt(url):
                found[url if base else written] = None
    return list(found)


def sitemaps_in(body: bytes) -> list[str]:
    """Return the URLs of the Sitemap lines of a file: the first 100, printable and cut."""
    urls = (line.value for line in lines_with(body, b"sitemap") if line.value)
    return [shown(url, _CHARS) for url in islice(urls, _LISTED)]
