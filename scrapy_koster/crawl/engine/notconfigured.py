"""Turns NotConfigured into an error that stops the crawl.

Scrapy removes a component that raises NotConfigured, and crawls on. The add-on has removed Scrapy's
own middleware, so the crawl would obey no rules. Only settings can disable our components
(ROBOTSTXT_OBEY = False, KOSTER_PAGE_DIRECTIVES = []). NotConfigured from a parser, an imported
module or Scrapy stops the crawl.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from scrapy.exceptions import NotConfigured


@contextmanager
def not_disabled(component: str) -> Iterator[None]:
    """Return a context that raises RuntimeError in place of NotConfigured, to stop the crawl.

    The message names *component*.
    """
    try:
        yield
    except NotConfigured as error:
        raise RuntimeError(
            f"{component} cannot be built: a part of it raised NotConfigured({str(error)!r}). The"
            " crawl stops, because it would not obey robots.txt. Fix the part that the traceback"
            " names, or set ROBOTSTXT_OBEY = False."
        ) from error
