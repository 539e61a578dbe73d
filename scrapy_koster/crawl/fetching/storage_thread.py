"""The threads of the storage: one that makes all calls that wait, a batch at a time, or several.

A hand-over between the loop and a thread costs more than a call of SQLite. So calls gather on the
loop's side while a batch is under way, and are the next one. Several are made at once by a storage
that keeps no batches, if it is far away.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_koster.crawl.clock import LateError
from scrapy_koster.crawl.engine.private import CANCELLED
from scrapy_koster.crawl.fetching.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.crawl.clock import Clock, Instant

_T = TypeVar("_T")

AT_ONCE = 64
"""Number of calls in a batch, at most."""
THREADS = 8
"""Number of batches that are under way, at most."""
# A batch may hold a lock that other processes wait for: after so long it begins no other call.
_BATCH_SECS = 0.1
# Each batch is a hand-over, and each thread takes the interpreter's lock from the loop: one is
# enough for a Redis on the same machine. Where several may run, and even the quickest call took so
# long, each call is a batch. Otherwise others begin once one has run for so long.
_FAR_SECS = 0.001
_BESIDE_SECS = 0.02


class StorageThread:
    """Makes calls in threads of its own, and waits for none of them for longer than *secs*."""

    def __init__(
        self,
        clock: Clock,
        *,
        most: Callable[[], int] = lambda: 1,
        secs: float,
        together: Callable[[], AbstractContextManager[object]],
        hung: Callable[[], None],
    ) -> None:
        """Calls are made in batches, each within *together*. *most* tells how many batches may be
        under way.

        *hung* is called when a batch has not ended in time. It is left behind with its thread,
        and another thread takes over.
        """
        self._clock = clock
        self._most = most
        self._secs = secs
        self._together = together
        self._hung = hung
        self._threads = Threads(THREADS)
        self._waiting: deque[_Call] = deque()
        self._running: dict[_Batch, Deferred[Any]] = {}
        self._left_behind: list[_Batch] = []
        self._timer: CallLaterResult | None = None
        self._quickest_secs = math.inf

    @property
    def hanging(self) -> int:
        """Number of batches that were left behind, each in a thread that it still keeps."""
        return sum(batch.is_running for batch in tuple(self._left_behind))

    async def run(
        self, call: Callable[[], _T], *, is_last: bool = False, secs: float | None = None
    ) -> _T:
        """Return what *call* does; LateError if that takes too long, or longer than *secs*.

        A call whose caller is cancelled before its batch has begun is not made. One that *is_last*
        begins when all before it have ended.
        """
        secs = self._secs if secs is None else secs
        waiting = _Call(call, self._clock.now(), secs, is_last=is_last)
        self._waiting.append(waiting)
        self._begin()
        result: _T = await maybe_deferred_to_future(waiting.answered)
        return result

    def close(self) -> None:
        """Let each thread end when its batch has; make no other call, and wait for none."""
        late = Failure(LateError())
        while self._waiting:
            call = self._waiting.popleft()
            if not call.answered.called:
                call.answered.callback(late)
        if self._timer is not None:
            self._timer.cancel()
        for running in list(self._running.values()):
            running.cancel()
        self._threads.close()

    def _begin(self) -> None:
        while len(self._running) < self._most() and self._may_begin() and (calls := self._next()):
            batch = _Batch(calls, self._clock, self._together)
            self._running[batch] = running = deferred_from_coro(self._outcomes(batch))
            running.addBoth(self._ended, batch, self._threads)

    def _may_begin(self) -> bool:
        """Whether no batch runs, or one that waits for something else than this machine."""
        oldest = next(iter(self._running), None)
        if oldest is None or self._is_far or not self._waiting:
            return True
        left_secs = oldest.began + _BESIDE_SECS - self._clock.now()
        if left_secs > 0 and self._timer is None:
            self._timer = self._clock.call_later(left_secs, self._look)
        return left_secs <= 0

    @property
    def _is_far(self) -> bool:
        return _FAR_SECS <= self._quickest_secs < math.inf

    def _look(self) -> None:
        self._timer = None
        self._begin()

    def _next(self) -> list[_Call]:
        """Take the calls of the next batch: its share, if others may run beside it."""
        most = self._most()
        share = math.ceil(len(self._waiting) / (most - len(self._running)))
        if self._is_far and most > 1:
            share = 1
        calls: list[_Call] = []
        while self._waiting and len(calls) < min(share, AT_ONCE):
            if self._waiting[0].is_last and (calls or self._running):
                break
            call = self._waiting.popleft()
            if not call.answered.called:  # else it was cancelled
                calls.append(call)
        return calls

    async def _outcomes(self, batch: _Batch) -> list[Any]:
        # The first has waited for longest.
        first = batch.calls[0]
        left_secs = max(first.secs - (self._clock.now() - first.made), 0.0)
        return await self._clock.within(left_secs, self._threads.run(batch.run))

    def _ended(self, result: Any, batch: _Batch, threads: Threads) -> None:
        calls = batch.calls
        if isinstance(result, Failure):
            batch.give_up()
            if result.check(LateError):
                self._left_behind = [
                    each for each in (*self._left_behind, batch) if each.is_running
                ]
                if threads is self._threads:  # else a batch beside it was late as well
                    threads.close()
                    self._threads = Threads(THREADS)
                    self._hung()
            elif result.check(*CANCELLED):  # it closes
                result = Failure(LateError())
            result = [result] * len(calls)
        for call in reversed(calls[len(result) :]):
            self._waiting.appendleft(call)
        for call, outcome in zip(calls, result, strict=False):
            if not call.answered.called:
                call.answered.callback(outcome)  # a Failure is raised
        self._quickest_secs = min(self._quickest_secs, batch.quickest_secs)
        del self._running[batch]
        self._begin()


@dataclass
class _Call:
    """A call that somebody waits for."""

    call: Callable[[], Any]
    made: Instant
    secs: float
    answered: Deferred[Any] = field(default_factory=Deferred)
    is_last: bool = False


class _Batch:
    """Calls that are made in one go."""

    def __init__(
        self,
        calls: Sequence[_Call],
        clock: Clock,
        together: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.calls = calls
        self.began = clock.now()
        self.quickest_secs = math.inf
        self.is_running = False
        self._is_given_up = False
        self._clock = clock
        self._together = together

    def give_up(self) -> None:
        """Make none of the calls that have not begun."""
        self._is_given_up = True

    def run(self) -> list[Any]:
        """Make the calls, and return what they return and raise: of the first ones, if it is late.

        If *together* raises, no call has had an effect.
        """
        self.is_running = True  # before it looks whether it is given up: one of two threads sees it
        try:
            if self._is_given_up:
                return []
            with self._together():
                return self._outcomes()
        finally:
            self.is_running = False

    def _outcomes(self) -> list[Any]:
        now = self._clock.now()
        end = now + _BATCH_SECS
        outcomes: list[Any] = []
        for call in self.calls:
            if self._is_given_up or (outcomes and now > end):
                break
            try:
                outcomes.append(call.call())
            except Exception:  # noqa: BLE001  # it is raised where it is awaited
                outcomes.append(Failure())
            began, now = now, self._clock.now()
            self.quickest_secs = min(self.quickest_secs, now - began)
        return outcomes
