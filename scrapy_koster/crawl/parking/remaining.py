"""What still waits for its site when the crawl ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.messages.stats import Stats

if TYPE_CHECKING:
    from collections import Counter

    from scrapy.crawler import Crawler

_SITES_NAMED = 10


class Remaining:
    """Says how many requests still wait, for which sites, and what becomes of them."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._log = Log(__name__, crawler)

    def tell(self, waiting: Counter[str], fate: str) -> None:
        """Tell of the requests of each site in *waiting*; nothing where there are none."""
        if not waiting.total():
            return
        Stats(self._crawler.stats).parked(waiting.total())
        most = ", ".join(f"{site} ({count})" for site, count in waiting.most_common(_SITES_NAMED))
        self._log.info(
            "Requests that still wait for their site: %(waiting)d, of %(sites)d sites. %(fate)s."
            " Sites with the most: %(most)s",
            waiting=waiting.total(),
            sites=len(waiting),
            fate=fate,
            most=most,
        )
