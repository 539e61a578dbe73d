"""Coroutines that run beside the caller."""

from collections.abc import Coroutine
from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_koster.crawl.engine.private import CANCELLED
from scrapy_koster.crawl.messages.log import Log


class Tasks:
    """The running coroutines of an object. An error that ends a coroutine is logged."""

    def __init__(self, crawler: Crawler) -> None:
        self._log = Log(__name__, crawler)
        self._running: set[Deferred[None]] = set()

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run *coroutine*."""
        task = deferred_from_coro(coroutine)
        self._running.add(task)
        task.addErrback(self._failed).addBoth(lambda _: self._running.discard(task))

    def _failed(self, failure: Failure) -> None:
        if failure.value is not None and not failure.check(*CANCELLED):
            self._log.defect(
                "Error in scrapy-koster: requests may wait until the crawl ends. Please report the"
                " traceback",
                failure.value,
            )

    def cancel(self) -> None:
        """Cancel the running coroutines."""
        for task in list(self._running):
            task.cancel()

    async def ended(self) -> None:
        """Wait for the end of the running coroutines."""
        for task in list(self._running):
            await maybe_deferred_to_future(task)
