"""Threads for calls that may hang."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import Deferred


class Threads:
    """Up to *most* threads for calls that may hang.

    Each of the first *most* calls starts a thread. The threads are daemons, so the process can end
    while a call hangs.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._started = 0
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()

    def run(self, call: Callable[[], object]) -> Deferred[None]:
        """Make *call* in a thread. Return a Deferred that fires afterwards.

        *call* must not raise.
        """
        ended: Deferred[None] = Deferred()
        in_loop = _caller_in_loop()

        def make() -> None:
            call()
            with suppress(RuntimeError):  # the loop is closed
                in_loop(ended.callback, None)

        self._calls.put(make)
        if self._started < self._most:
            self._started += 1
            Thread(target=self._work, name="koster-storage", daemon=True).start()
        return ended

    def close(self) -> None:
        """End the threads after the calls in the queue."""
        for _ in range(self._started):
            self._calls.put(None)

    def _work(self) -> None:
        while call := self._calls.get():
            call()
            del call  # so that an idle thread does not keep the call in memory


def _caller_in_loop() -> Callable[..., Any]:
    """Return the function with which a thread calls a function in the loop."""
    if is_asyncio_available():
        return asyncio.get_running_loop().call_soon_threadsafe
    from twisted.internet import reactor  # noqa: PLC0415  # at the top it would install a reactor

    return reactor.callFromThread  # type: ignore[no-any-return]
