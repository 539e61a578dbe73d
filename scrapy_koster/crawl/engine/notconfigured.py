"""Scrapy's NotConfigured, which takes a component out of a crawl that goes on without it.

The add-on has by then removed Scrapy's own middleware: nothing would be obeyed. So only the
user's word takes ours out (ROBOTSTXT_OBEY = False, KOSTER_PAGE_DIRECTIVES = []). Whoever else
raises it (the user's parser, a module that is imported, Scrapy itself) stops the crawl.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def not_disabled(component: str) -> Iterator[None]:
    """Raise RuntimeError, which stops the crawl, in place of NotConfigured."""
    try:
        yield
    except NotConfigured as error:
        raise RuntimeError(
            f"{component} cannot be built: a part of it raised NotConfigured({str(error)!r}). The"
            " crawl stops, because it would not obey robots.txt. Fix the part that the traceback"
            " names, or set ROBOTSTXT_OBEY = False."
        ) from error
