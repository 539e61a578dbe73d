"""Tasks, and what they wait for, on each kind of loop.

With asyncio these are asyncio's own objects. Scrapy's helpers wrap each of them in a Deferred, and
that in a Future again, which costs 41 objects for each site that is being asked.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from concurrent.futures import Future
    from typing import TypeAlias

    Task: TypeAlias = asyncio.Future[Any] | Deferred[Any]
    """A coroutine that runs in the background, and can be cancelled."""

_T = TypeVar("_T")


def begin(coroutine: Coroutine[Any, Any, object]) -> Task:
    """Run *coroutine* in the background. With asyncio it begins in the next turn of the loop."""
    if is_asyncio_available():
        return asyncio.ensure_future(coroutine)
    return Deferred.fromCoroutine(coroutine)


def when_ended(task: Task, call: Callable[[Any], object]) -> None:
    """Call *call* with what *task* returns, or with the Failure that it raises."""
    if isinstance(task, Deferred):
        task.addBoth(call)
    else:
        task.add_done_callback(lambda task: call(outcome(task)))


def outcome(ended: Future[Any] | asyncio.Future[Any]) -> Any:
    """Return what a call or a task has returned, or the Failure."""
    try:
        return ended.result()
    except BaseException:  # noqa: BLE001  # it is raised where it is awaited
        return Failure()


class Told(Generic[_T]):
    """A result that one coroutine waits for until it is told."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told: asyncio.Future[_T] | Deferred[_T]
        self._told = (
            asyncio.get_running_loop().create_future() if is_asyncio_available() else Deferred()
        )

    def __await__(self) -> Generator[Any, None, _T]:
        return self._told.__await__()

    @property
    def is_over(self) -> bool:
        """Whether the result is there, or the coroutine was cancelled."""
        told = self._told
        return bool(told.called) if isinstance(told, Deferred) else told.done()

    def tell(self, result: _T | Failure) -> None:
        """Let the coroutine go on with *result*, if it still waits. A Failure is raised there."""
        told = self._told
        if self.is_over:
            return
        if isinstance(told, Deferred):
            told.callback(result)
        elif isinstance(result, Failure):
            assert result.value is not None
            told.set_exception(result.value)
        else:
            told.set_result(result)
