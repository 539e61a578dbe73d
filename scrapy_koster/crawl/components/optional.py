"""The base of the spider middlewares, which depend on settings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import NotConfigured

from scrapy_koster.crawl.config import config_of
from scrapy_koster.crawl.engine.notconfigured import not_disabled
from scrapy_koster.crawl.events import Events
from scrapy_koster.signals import output_dropped

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from scrapy_koster.crawl.config import Config


class OptionalMiddleware:
    """A spider middleware that is in a crawl only if its settings are set."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._config = config
        self._stats = crawler.stats
        self._events = Events(crawler)
        self._verb = "Would drop" if config.dry_run else "Dropped"
        self._sum_verb = "Would be dropped" if config.dry_run else "Dropped"
        self._dropped: Counter[str] = Counter()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the middleware. Raises ValueError, which stops the crawl, for a wrong setting."""
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        with not_disabled(cls.__name__):
            config = config_of(crawler)
            if cls.is_on(config):
                return cls(crawler, config)
        raise NotConfigured  # without a message: the settings disable the middleware

    @staticmethod
    def is_on(config: Config) -> bool:
        """Return whether the settings enable this middleware."""
        raise NotImplementedError

    def _count_dropped(self, response: Response, output: Any, kind: str, reason: str) -> bool:
        """Send the signal of a dropped *output*; return whether it is the first of its *kind*."""
        self._events.send(output_dropped, response=response, output=output, reason=reason)
        self._dropped[kind] += 1
        return self._dropped[kind] == 1
