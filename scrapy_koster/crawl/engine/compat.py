"""What older releases of Scrapy lack, each with the release that has it.

Where that is the oldest that is supported (``OLDEST_SCRAPY``), it goes out of here.
"""

from __future__ import annotations

import asyncio

from scrapy import signals
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.task import deferLater

# Scrapy 2.18: scrapy.signals has it, and its users.
robots_parsed: object = getattr(signals, "robots_parsed", None) or object()


# Scrapy 2.18: scrapy.utils.asyncio.sleep
async def sleep(seconds: float) -> None:
    """Wait for so many *seconds*, on either kind of loop."""
    if is_asyncio_available():
        await asyncio.sleep(seconds)
        return
    from twisted.internet import reactor  # noqa: PLC0415  # it would install one

    await maybe_deferred_to_future(deferLater(reactor, seconds))
