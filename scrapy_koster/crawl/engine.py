"""What Scrapy's engine does not offer in public, in one place.

Both look at its slot, which Scrapy 2.18 and 2.19 have alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def wake(crawler: Crawler) -> None:
    """Have the engine ask its scheduler, as it does by itself only after a
    download or every five seconds.
    """
    slot = crawler.engine._slot  # noqa: SLF001
    if slot is not None:
        slot.nextcall.schedule()


def is_closing(crawler: Crawler) -> bool:
    """Whether the crawl has begun to close, for which there is no signal."""
    slot = crawler.engine._slot  # noqa: SLF001
    return not crawler.engine.running or slot is None or slot.closing is not None
