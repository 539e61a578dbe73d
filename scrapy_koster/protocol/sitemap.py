"""Sitemap: where a site lists its pages. It is for all robots, in records and outside of them.

Neither standard has it; both leave room for it ("extension", 3.2).
"""

from __future__ import annotations

from itertools import islice

from scrapy_koster.protocol.line import lines_with
from scrapy_koster.protocol.wording import shown

_LISTED = 100
_CHARS = 1000


def sitemaps_in(body: bytes) -> list[str]:
    """Return the URLs of the Sitemap lines of a file: the first 100, each printable and cut."""
    urls = (line.value for line in lines_with(body, b"sitemap") if line.value)
    return [shown(url, _CHARS) for url in islice(urls, _LISTED)]
