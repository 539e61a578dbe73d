"""Daemon threads for calls that may hang: nobody joins them, so the process ends without them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class Threads:
    """*most* daemon threads; each of the first calls starts one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._started = 0
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()

    async def run(self, call: Callable[[], _T]) -> _T:
        """Return the result of *call*, which a thread makes, in the order of these calls."""
        ended: Deferred[_T] = Deferred()
        in_loop = _caller_in_loop()

        def make() -> None:
            try:
                result: _T | Failure = call()
            except BaseException:  # noqa: BLE001  # it is raised where the result is awaited
                result = Failure()
            with suppress(RuntimeError):  # the loop is closed
                in_loop(ended.callback, result)

        self.submit(make)
        return await maybe_deferred_to_future(ended)

    def submit(self, call: Callable[[], object]) -> None:
        """Have *call* made by a thread."""
        self._calls.put(call)
        if self._started < self._most:
            self._started += 1
            Thread(target=self._work, name="koster-storage", daemon=True).start()

    def close(self) -> None:
        """Let each thread end when its call has."""
        for _ in range(self._started):
            self._calls.put(None)

    def _work(self) -> None:
        while call := self._calls.get():
            call()
            del call  # a thread that waits keeps nothing alive


def _caller_in_loop() -> Callable[..., Any]:
    """Return a function for threads: it has a function called in the loop."""
    if is_asyncio_available():
        return asyncio.get_running_loop().call_soon_threadsafe
    from twisted.internet import reactor  # noqa: PLC0415  # it would install one

    loop: Any = reactor
    return loop.callFromThread  # type: ignore[no-any-return]
