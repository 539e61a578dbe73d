"""The Sitemap lines of a robots.txt: an extension (3.2) that many files have."""

from __future__ import annotations

from itertools import islice

from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.robotstxt import values_of
from scrapy_koster.protocol.verdict import shown

_LISTED = 100
_CHARS = 1000


def sitemaps_of(copy: Copy | None) -> list[str]:
    """Return what the Sitemap lines of a copy say: the first 100, each printable and cut."""
    values = values_of(copy.body, "sitemap") if copy else ()
    return [shown(value, _CHARS) for value in islice(values, _LISTED)]
