"""Threads for calls that may hang: whoever waits stops waiting, and the process ends without them.

Those of asyncio and Twisted are joined at the end: one call that hangs would keep the process.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class Threads:
    """At most *most* threads, which are started when they are needed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._started = 0
        self._free = Semaphore(0)
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()

    def submit(self, call: Callable[[], _T]) -> Future[_T]:
        """Have it called; the interface of an Executor."""
        future: Future[_T] = Future()
        self._calls.put((future, call))
        if not self._free.acquire(blocking=False) and self._started < self._most:
            self._started += 1
            Thread(target=self._work, name="koster-storage", daemon=True).start()
        return future

    async def run(self, call: Callable[[], _T]) -> _T:
        """Return what *call* does, on whichever kind of loop this is."""
        if is_asyncio_available():
            loop: Any = asyncio.get_running_loop()
            result: _T = await loop.run_in_executor(self, call)
            return result
        from twisted.internet import reactor  # noqa: PLC0415  # it would install one

        ended: Deferred[_T] = Deferred()

        def tell(future: Future[_T]) -> None:
            error = future.exception()
            if error is None:
                ended.callback(future.result())
            else:
                ended.errback(error)

        loop = reactor
        future = self.submit(call)
        future.add_done_callback(lambda future: loop.callFromThread(tell, future))
        return await ended

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


def _made(future: Future[_T], call: Callable[[], _T]) -> Callable[[], None]:
    """Make *call*, and return what tells its outcome."""
    try:
        return partial(future.set_result, call())
    except BaseException as error:  # noqa: BLE001  # it is raised where it is awaited
        return partial(future.set_exception, error)
