"""What lives in a crawl."""

from __future__ import annotations

import re

import scrapy

OLDEST_SCRAPY = (2, 17)
"""What an older release lacks is more than ``compat.py`` has."""


def refuse_older(version: str) -> None:
    """Raise ImportError if this *version* of Scrapy, as in "2.16.0", is below OLDEST_SCRAPY.

    That ends the crawl: an add-on that is left out would leave one that obeys nothing.
    """
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST_SCRAPY:
        oldest = ".".join(map(str, OLDEST_SCRAPY))
        raise ImportError(
            f"scrapy-koster needs Scrapy {oldest} or later, and this is Scrapy {version}:"
            f" pip install --upgrade 'scrapy>={oldest}'"
        )


refuse_older(scrapy.__version__)
