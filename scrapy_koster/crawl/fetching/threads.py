"""Threads for calls that may hang: whoever waits stops waiting, and the process ends without them.

Those of asyncio and Twisted are joined at the end: one call that hangs would keep the process.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from scrapy.utils.asyncio import is_asyncio_available

from scrapy_koster.crawl.engine.tasks import Told, outcome, when_ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_koster.crawl.clock import Clock

_T = TypeVar("_T")


class Threads:
    """At most *most* threads, which are started when they are needed."""

    def __init__(self, clock: Clock, most: int) -> None:
        self._clock = clock
        self._most = most
        self._started = 0
        self._free = Semaphore(0)
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()

    def submit(self, call: Callable[[], _T]) -> Future[_T]:
        """Have it called."""
        future: Future[_T] = Future()
        self._calls.put((future, call))
        if not self._free.acquire(blocking=False) and self._started < self._most:
            self._started += 1
            Thread(target=self._work, name="koster-storage", daemon=True).start()
        return future

    def tell(self, future: Future[Any], ended: Callable[[Any], object]) -> Begun:
        """Call *ended* in the loop with the result of the call of *future*, or the Failure."""
        if is_asyncio_available():
            running = asyncio.wrap_future(future)
            when_ended(running, ended)
            return running
        from twisted.internet import reactor  # noqa: PLC0415  # it would install one

        loop: Any = reactor
        future.add_done_callback(lambda future: loop.callFromThread(ended, outcome(future)))
        return future

    async def run(self, call: Callable[[], _T]) -> _T:
        """Return what *call* returns, which a thread calls."""
        ended: Told[_T] = Told()
        begun = self.tell(self.submit(call), ended.tell)
        try:
            return await ended
        finally:
            begun.cancel()

    def close(self) -> None:
        """Let the threads end, each when its call has."""
        for _ in range(self._started):
            self._calls.put(None)

    def _work(self) -> None:
        while called := self._calls.get():
            future, call = called
            is_wanted = future.set_running_or_notify_cancel()
            tell = _made(future, call) if is_wanted else None
            self._free.release()  # first: who is told may call at once, which needs no other thread
            if tell is not None:
                tell()
            del called, future, call, tell


class Begun(Protocol):
    """A call that was handed over."""

    def cancel(self) -> object:
        """Do not make it, if it has not begun, and tell nobody of it on a loop that has ended."""


def _made(future: Future[_T], call: Callable[[], _T]) -> Callable[[], None]:
    """Make *call*, and return what tells its outcome."""
    try:
        return partial(future.set_result, call())
    except BaseException as error:  # noqa: BLE001  # it is raised where it is awaited
        return partial(future.set_exception, error)
