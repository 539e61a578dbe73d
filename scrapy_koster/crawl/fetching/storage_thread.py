"""The threads of the storage: one that makes all calls that wait, a batch at a time, or several.

A hand-over between the loop and a thread costs more than a call of SQLite. So calls gather on the
loop's side while a batch is under way and shortly after, and are the next one. A thread that shares
the interpreter with a busy loop takes many times as long as one that has it for itself. So the loop
waits for a batch that is likely to be short, and never for long. Several batches run at once for a
storage that keeps none, if it is far away.

A call is a coroutine that runs in the thread, without an event loop. It can wait for ``all_made``:
then it goes on when all other calls of its batch have begun. So a storage can send them together.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from types import coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from twisted.python.failure import Failure

from scrapy_koster.crawl.clock import LONG_AGO, LateError
from scrapy_koster.crawl.engine.tasks import Told
from scrapy_koster.crawl.fetching.gathering import EAGER
from scrapy_koster.crawl.fetching.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.crawl.clock import Clock, Deadline, Instant
    from scrapy_koster.crawl.fetching.threads import Begun

_T = TypeVar("_T")

AT_ONCE = 64
"""Number of calls in a batch, at most."""
THREADS = 8
"""Number of batches that are under way, at most."""
# A batch may hold a lock that other processes wait for, and this loop may wait for it: after so
# long it begins no other call.
_BATCH_SECS = 0.01
# Each statement of SQLite and each message to Redis gives the interpreter away, and a busy loop
# keeps it for 5 ms: 40 calls of 20 us took 40 ms. So the loop is held for a batch, unless the
# storage is far away: unless even the quickest call took so long.
_FAR_SECS = 0.001
_HOLD_SECS = 0.02
# After a batch that took longer it is not held for so long.
_NO_HOLD_SECS = 10 * _HOLD_SECS
# After a batch for which it was held calls gather: a commit and a hand-over take as long as several
# calls. They do not after the first batches, for which it is held even if no call was quick: they
# open and prepare the storage.
_GATHER_SECS = 0.02
# So many do not wait for more. Their sites go on together: if these fill all places Scrapy reads
# the whole of start(), and its queue costs time for each host that is in it.
_GATHER_MOST = 32
# If several batches may run, and the storage is far away, each call is a batch. Otherwise others
# begin once one has run for so long.
_BESIDE_SECS = 0.02


@coroutine
def all_made() -> Generator[None, None, None]:
    """Wait, within a call, until each call of the batch has begun and waits, or has ended."""
    yield


class StorageThread:
    """Makes calls in threads of its own, and waits for none of them for longer than *secs*."""

    def __init__(
        self,
        clock: Clock,
        *,
        most: Callable[[], int] = lambda: 1,
        secs: float,
        together: Callable[[], AbstractContextManager[Any]],
        hung: Callable[[], None],
    ) -> None:
        """Calls are made in batches, each within *together*, whose value they get. *most* tells how
        many batches may be under way.

        *hung* is called when a batch has not ended in time. It is left behind with its thread,
        and another thread takes over.
        """
        self._clock = clock
        self._most = most
        self._secs = secs
        self._together = together
        self._hung = hung
        self._threads = Threads(clock, THREADS)
        self._waiting: deque[_Call] = deque()
        self._running: dict[_Batch, _UnderWay] = {}
        self._left_behind: list[_Batch] = []
        self._timer: CallLaterResult | None = None
        self._has_answered = False
        self._quickest_secs = math.inf
        self._holds_from = LONG_AGO
        self._gathers_until = LONG_AGO
        self._eager = EAGER

    @property
    def hanging(self) -> int:
        """Number of batches that were left behind, each in a thread that it still keeps."""
        left_behind = self._left_behind
        return sum([batch.is_running for batch in left_behind]) if left_behind else 0

    async def run(
        self,
        call: Callable[[Any], Coroutine[Any, Any, _T]],
        *,
        is_last: bool = False,
        secs: float | None = None,
    ) -> _T:
        """Return what *call* does; LateError if that takes too long, or longer than *secs*.

        A call whose caller is cancelled before its batch has begun is not made. One that *is_last*
        begins when all before it have ended.
        """
        secs = self._secs if secs is None else secs
        waiting = _Call(call, self._clock.now(), secs, is_last=is_last)
        self._waiting.append(waiting)
        self._begin()
        result: _T = await waiting.answered
        return result

    def close(self) -> None:
        """Let each thread end when its batch has; make no other call, and wait for none."""
        late = Failure(LateError())
        while self._waiting:
            self._waiting.popleft().answered.tell(late)
        if self._timer is not None:
            self._timer.cancel()
        for batch in list(self._running):
            batch.give_up()
            self._ended(batch, late)
        self._threads.close()

    def _begin(self) -> None:
        while len(self._running) < self._most() and self._may_begin() and (calls := self._next()):
            batch = _Batch(calls, self._clock, self._together)
            # The first has waited for longest.
            left_secs = max(calls[0].secs - (batch.began - calls[0].made), 0.0)
            late = partial(self._late, batch, self._threads)
            running = self._threads.submit(batch.run)
            self._hold(running)
            self._running[batch] = _UnderWay(
                self._clock.deadline(left_secs, late),
                self._threads.tell(running, partial(self._ended, batch)),
            )

    def _hold(self, running: Future[Any]) -> None:
        """Hold the loop for the batch that is *running*, if that is likely to end soon."""
        is_near = self._quickest_secs < _FAR_SECS or (self._eager and not self._is_far)
        if not is_near or self._running or self._clock.now() < self._holds_from:
            return
        has_ended = self._threads.wait(running, _HOLD_SECS)
        now = self._clock.now()
        if not has_ended:
            self._holds_from = now + _NO_HOLD_SECS
        elif self._eager:
            self._eager -= 1
        else:
            self._gathers_until = now + _GATHER_SECS

    def _may_begin(self) -> bool:
        """Whether no batch runs and the calls have gathered, or one runs that waits for something
        else than this machine.
        """
        oldest = next(iter(self._running), None)
        waiting = len(self._waiting)
        if self._is_far or not waiting or (oldest is None and waiting >= _GATHER_MOST):
            return True
        until = self._gathers_until if oldest is None else oldest.began + _BESIDE_SECS
        left_secs = until - self._clock.now()
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
            if not call.answered.is_over:  # else it was cancelled
                calls.append(call)
        return calls

    def _late(self, batch: _Batch, threads: Threads) -> None:
        """Leave behind a batch that has not ended in time, and whatever keeps its thread."""
        batch.give_up()
        self._left_behind = [each for each in (*self._left_behind, batch) if each.is_running]
        if threads is self._threads:  # else a batch beside it was late as well
            threads.close()
            self._threads = Threads(self._clock, THREADS)
            self._hung()
        self._ended(batch, Failure(LateError()))

    def _ended(self, batch: _Batch, outcomes: Any) -> None:
        """Tell the callers of a batch: of the outcome of each call, or of the one Failure."""
        if batch not in self._running:  # it was late, or the crawl has ended
            return
        if self._has_answered:  # the first batch prepares what all others use
            self._quickest_secs = min(self._quickest_secs, batch.quickest_secs)
        self._has_answered = True
        under_way = self._running.pop(batch)
        under_way.deadline.cancel()
        under_way.begun.cancel()  # if it has ended this does nothing
        calls = batch.calls
        if isinstance(outcomes, Failure):
            outcomes = [outcomes] * len(calls)
        for call in reversed(calls[len(outcomes) :]):
            self._waiting.appendleft(call)
        for call, outcome in zip(calls, outcomes, strict=False):
            call.answered.tell(outcome)
        self._begin()


@dataclass(slots=True, eq=False)
class _Call:
    """A call that somebody waits for."""

    call: Callable[[Any], Coroutine[Any, Any, Any]]
    made: Instant
    secs: float
    answered: Told[Any] = field(default_factory=Told)
    is_last: bool = False


class _UnderWay(NamedTuple):
    """What a batch that runs is waited for by."""

    deadline: Deadline
    begun: Begun


@dataclass(slots=True, eq=False)
class _Made:
    """A call that has begun, at this time, and may wait for the others."""

    steps: Coroutine[Any, Any, Any]
    at: Instant
    has_ended: bool = False
    outcome: Any = None

    def go_on(self) -> None:
        """Go on until it has ended, or waits for the others."""
        try:
            self.steps.send(None)
        except StopIteration as ended:
            self.has_ended, self.outcome = True, ended.value
        except Exception:  # noqa: BLE001  # it is raised where it is awaited
            self.has_ended, self.outcome = True, Failure()


class _Batch:
    """Calls that are made in one go."""

    def __init__(
        self,
        calls: Sequence[_Call],
        clock: Clock,
        together: Callable[[], AbstractContextManager[Any]],
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
            with self._together() as given:
                return self._outcomes(given)
        finally:
            self.is_running = False

    def _outcomes(self, given: object) -> list[Any]:
        made: list[_Made] = []
        now = self._clock.now()
        end = now + _BATCH_SECS
        for call in self.calls:
            if self._is_given_up or (made and now > end):
                break
            made.append(_Made(call.call(given), now))
            now = self._go_on(made[-1])
        while waiting := [each for each in made if not each.has_ended]:
            for each in waiting:
                if self._is_given_up:
                    raise LateError  # within *together*, so that no call is sent that was not yet
                self._go_on(each)
        return [each.outcome for each in made]

    def _go_on(self, call: _Made) -> Instant:
        """Have *call* go on; return the time after that."""
        call.go_on()
        now = self._clock.now()
        if call.has_ended:
            self.quickest_secs = min(self.quickest_secs, now - call.at)
        return now
