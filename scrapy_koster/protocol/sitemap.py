"""Sitemap: where a site lists its pages. It is for all robots, in records and outside of them.

Neither standard has it; both leave room for it ("extension", 3.2).
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from urllib.parse import urljoin

from scrapy_koster.protocol.line import lines_with
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.site import site_of
from scrapy_koster.protocol.wording import shown

_LISTED = 100
_CHARS = 1000


def sitemap_urls_in(body: bytes, base: str) -> list[str]:
    """Return the URLs of all Sitemap lines of a file that was found at *base*, to be requested.

    Those that are no http or https URL are left out, those that are there twice, and /robots.txt.
    """
    found: dict[str, None] = {}
    for line in lines_with(body, b"sitemap"):
        with suppress(ValueError):
            url = urljoin(base, line.value.decode(errors="replace"))
            if site_of(url) is not None and not is_robots_txt(url):
                found[url] = None
    return list(found)


def sitemaps_in(body: bytes) -> list[str]:
    """Return the URLs of the Sitemap lines of a file: the first 100, each printable and cut."""
    urls = (line.value for line in lines_with(body, b"sitemap") if line.value)
    return [shown(url, _CHARS) for url in islice(urls, _LISTED)]
