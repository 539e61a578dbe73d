"""The base class of our middlewares, which are in a crawl only if the settings enable them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.context import context_of
from scrapy_koster.crawl.enforcement import Enforcement
from scrapy_koster.crawl.engine.private import per_crawler


@contextmanager
def not_disabled(component: str) -> Iterator[None]:
    """Return a context that raises RuntimeError in place of NotConfigured, to stop the crawl.

    Scrapy removes a component that raises NotConfigured, and crawls on. The add-on has removed
    Scrapy's own middleware, so the crawl would obey no rules. Only settings can disable our
    components (ROBOTSTXT_OBEY = False, KOSTER_PAGE_DIRECTIVES = []). NotConfigured from a parser,
    an imported module or Scrapy stops the crawl. The message names *component*.
    """
    try:
        yield
    except NotConfigured as error:
        raise RuntimeError(
            f"{component} cannot be built: a part of it raised NotConfigured({str(error)!r}). The"
            " crawl stops, because it would not obey robots.txt. Fix the part that the traceback"
            " names, or set ROBOTSTXT_OBEY = False."
        ) from error


class Component:
    """Base class of our middlewares: in a crawl only if the settings enable it."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._parts = context_of(crawler)
        self._config = self._parts.config
        self.enforcement = per_crawler(crawler, Enforcement, lambda: Enforcement(crawler))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Any:
        """Return the middleware. Raises NotConfigured if the settings disable the middleware.

        Raises ValueError, which stops the crawl, for an invalid setting.
        """
        if crawler.settings.getbool("ROBOTSTXT_OBEY"):
            with not_disabled(cls.__name__):
                if cls.is_on(context_of(crawler).config):
                    return cls(crawler)
        raise NotConfigured  # without a message, Scrapy logs no line

    @staticmethod
    def is_on(_config: Config) -> bool:
        """Return whether the settings enable this middleware if ROBOTSTXT_OBEY is True."""
        return True
