"""The parts of a crawl: components, decisions, sites, fetching and waiting requests."""

import re

import scrapy

OLDEST_SCRAPY = (2, 14)
"""The oldest supported release of Scrapy. ``engine/compat.py`` supports no older release."""


def refuse_older(version: str) -> None:
    """Raise ImportError if this *version* of Scrapy, as in "2.13.0", is below OLDEST_SCRAPY.

    The error stops the crawl before its first request.
    """
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST_SCRAPY:
        oldest = ".".join(map(str, OLDEST_SCRAPY))
        raise ImportError(
            f"scrapy-koster needs Scrapy {oldest} or later, and this is Scrapy {version}:"
            f" pip install --upgrade 'scrapy>={oldest}'"
        )


refuse_older(scrapy.__version__)
