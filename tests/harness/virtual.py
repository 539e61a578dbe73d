"""Virtual time: while a crawl and its server only wait, time jumps to the next timer.

    virtual.TIME.begin()       # the time of one test
    virtual.TIME.now()         # the monotonic clock of everything that runs in it
    virtual.TIME.epoch()       # the same for the clock on the wall
    virtual.TIME.end()         # real time again

The loop of the crawls and that of the test's server (`Loop`) share it. As long as one of them
works, or a thread works for one of them, time stands still, however slow the machine is: for
STILL_SECS of the processor's time, after which it passes, so that what works without end is ended
by its time-out. What hangs uses none: that is ended after HUNG_SECS. When both have had nothing to
do for GRACE_SECS, it jumps: what is on its way through the kernel has to arrive before.

What reads the time of the machine by a name of its own is patched by `_patch`, here alone.
"""

from __future__ import annotations

import asyncio
import importlib
import math
import selectors
import sys
import threading
import time as real
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_koster.crawl.clock import Clock, Instant
from scrapy_koster.crawl.threads import Threads

if TYPE_CHECKING:
    from typing_extensions import Self

GRACE_SECS = 0.01
"""For so long, in real time, nothing may have happened before time jumps."""
SLICE_SECS = 0.002
"""How often a loop that waits looks whether time may jump."""
STILL_SECS = 4.0
"""For so long time stands still while something works, by the time of the processor."""
HUNG_SECS = 30.0
"""The same by the clock: beside other processes much of that may pass with nothing done."""
T = TypeVar("T")
_TICK_SECS = 1e-6
_LATE_TIMES = 2
_USUAL_SECS = 0.008


class Time:
    """What is read off the clocks, real or virtual."""

    def __init__(self) -> None:
        self.is_virtual = False
        self._lock = threading.Lock()
        self._base = self._since = real.monotonic()
        self._worked = real.process_time()
        self._epoch = 0.0
        self._loops: dict[Loop, _State] = {}
        self._last_event = 0.0
        self._late_secs = 0.0
        self._waiting: list[tuple[Callable[[], object], Deferred[Any]]] = []

    def now(self) -> float:
        passed = real.monotonic() - self._since
        if not self.is_virtual:
            return self._base + passed
        if passed < STILL_SECS:
            return self._base
        worked = real.process_time() - self._worked
        return self._base + max(0.0, worked - STILL_SECS, passed - HUNG_SECS)

    def epoch(self) -> float:
        return self._epoch + self.now() if self.is_virtual else real.time()

    def begin(self) -> None:
        """Let time be virtual from now on."""
        self._turn(is_virtual=True)
        self._epoch = real.time() - self._base

    def end(self) -> None:
        """Let time be real again; the monotonic clock does not go back."""
        self._turn(is_virtual=False)

    def _turn(self, *, is_virtual: bool) -> None:
        with self._lock:
            self._stand_at(self.now())
            self.is_virtual = is_virtual

    def _stand_at(self, secs: float) -> None:
        self._base, self._since, self._worked = secs, real.monotonic(), real.process_time()

    async def until(self, condition: Callable[[], object], *, at: float) -> None:
        """Wait until it is true, or until *at*; to look lets no time pass."""
        if condition():
            return
        waiting: Deferred[None] = Deferred()
        self._waiting.append((condition, waiting))
        timer = call_later(at - self.now(), lambda: None)
        try:
            await maybe_deferred_to_future(waiting)
        finally:
            timer.cancel()

    # For the loops.

    def look(self) -> bool:
        """Wake who waits for what has become true; return whether there is one."""
        true = []
        for entry in self._waiting:
            condition, waiting = entry
            outcome: object = None
            try:
                is_true = waiting.called or condition()
            except Exception as error:  # noqa: BLE001  # for the test
                outcome, is_true = Failure(error), True
            if is_true:
                true.append((entry, outcome))
        for entry, outcome in true:
            self._waiting.remove(entry)
            if not entry[1].called:
                call_later(0, entry[1].callback, outcome)
        return bool(true)

    def works(self, loop: Loop) -> None:
        """Note that it does not wait."""
        with self._lock:
            self._loops[loop] = _State()
            self._last_event = real.monotonic()

    def waits(self, loop: Loop, until: float) -> None:
        """Note that nothing is ready for it, at this moment; jump if so it is for all."""
        with self._lock:
            now = real.monotonic()
            before = self._loops.get(loop)
            self._loops[loop] = _State(until, now)
            if before is None or before.is_working:
                self._last_event = now  # its last bytes may be on their way to another one
                return
            if any(map(_has_threads, self._loops)):
                self._last_event = now  # what it is done with has to reach its loop
                return
            quiet = min(state.looked for state in self._loops.values()) - self._last_event
            first = min(state.until for state in self._loops.values())
            if quiet < GRACE_SECS + _LATE_TIMES * self._late_secs or first == math.inf:
                return
            self._stand_at(max(self.now(), first) + _TICK_SECS)
            self._last_event = now

    def slept(self, late_secs: float) -> None:
        """Note how late a loop woke: so late may be what is on its way, on a busy machine."""
        self._late_secs = max(late_secs - _USUAL_SECS, 0.5 * self._late_secs)

    def forget(self, loop: Loop) -> None:
        with self._lock:
            self._loops.pop(loop, None)


class _State:
    """Of a loop: until when it waits, and when it last saw that nothing was ready."""

    def __init__(self, until: float = math.inf, looked: float = -math.inf) -> None:
        self.until = until
        self.looked = looked

    @property
    def is_working(self) -> bool:
        return self.looked == -math.inf


class _Selector(selectors.DefaultSelector):
    loop: Loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self.loop.ready(super().select, timeout)


class Loop(asyncio.SelectorEventLoop):
    """An event loop in that time, of this process's crawls or of a server."""

    def __init__(self, *, takes_conditions: bool = False) -> None:
        self.takes_conditions = takes_conditions
        """Whether it looks for who waits in `Time.until`."""
        self.threads = 0
        """Number of threads that work for it, but for those of the reactor."""
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return TIME.now()

    def ready(
        self, poll: Callable[[float | None], list[T]], timeout: float | None = None
    ) -> list[T]:
        """Return what *poll* finds, if only after *timeout* seconds of this time."""
        if not TIME.is_virtual:
            return poll(timeout)
        try:
            return self._ready_by(poll, math.inf if timeout is None else TIME.now() + timeout)
        finally:
            TIME.works(self)

    def _ready_by(self, poll: Callable[[float | None], list[T]], until: float) -> list[T]:
        wait = 0.0
        while True:
            if self.takes_conditions and TIME.look():
                return poll(0)
            began = real.monotonic()
            ready = poll(wait)
            if wait and not ready:
                TIME.slept(real.monotonic() - began - wait)
            if ready or TIME.now() >= until or not TIME.is_virtual:
                return ready
            TIME.waits(self, until)
            wait = SLICE_SECS

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Any, *args: Any
    ) -> asyncio.Future[Any]:
        self.threads += 1
        future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _future: asyncio.Future[Any]) -> None:
        self.threads -= 1

    def close(self) -> None:
        TIME.forget(self)
        super().close()


def _has_threads(loop: Loop) -> bool:
    if loop.threads:
        return True
    reactor = sys.modules.get("twisted.internet.reactor")
    pool: Any = getattr(reactor, "threadpool", None)
    if not loop.takes_conditions or pool is None:
        return False
    of_pool = pool._team.statistics()
    return bool(of_pool.busyWorkerCount or of_pool.backloggedWorkCount)


class TestClock(Clock):
    """The clock of each crawl of a test."""

    __test__ = False

    def epoch(self) -> float:
        return TIME.epoch()

    def now(self) -> Instant:
        return Instant(TIME.now())


TIME = Time()


class _TimeModule:
    """What tests import in place of the module `time`: its clocks are those above."""

    monotonic = staticmethod(TIME.now)
    time = staticmethod(TIME.epoch)
    process_time = staticmethod(real.process_time)
    sleep = staticmethod(real.sleep)


time = _TimeModule()


class _Datetime(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(TIME.epoch(), tz)


# Modules of Scrapy that have a clock of their own, and its name there. An older release reads that
# on the wall.
_NAMES: dict[str, Mapping[str, object]] = {
    "scrapy.core.downloader": {"monotonic": TIME.now, "time": TIME.epoch},
    "scrapy.core.engine": {"time": TIME.epoch},
    "scrapy.extensions.corestats": {"monotonic": TIME.now, "datetime": _Datetime},
    "scrapy.utils.asyncio": {"time": time},
}
_OF_TWISTED: dict[str, Mapping[str, object]] = {
    "scrapy.core.downloader.handlers.http11": {"monotonic": TIME.now, "time": TIME.epoch},
}


def install() -> None:
    """Install Twisted's asyncio reactor on such a loop, and have Scrapy read its time."""
    from twisted.internet import asyncioreactor

    loop = Loop(takes_conditions=True)
    asyncioreactor.install(loop)  # type: ignore[no-untyped-call]
    _count_threads(loop)
    reactor: Any = sys.modules["twisted.internet.reactor"]
    reactor.seconds = TIME.now
    _patch(_NAMES | _OF_TWISTED)


def _count_threads(loop: Loop) -> None:
    """Have the threads of ours hold time."""
    run = Threads.run

    def ended() -> None:
        loop.threads -= 1

    def counted(threads: Threads, call: Callable[[], object]) -> Deferred[None]:
        def counted_call() -> None:
            call()
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ended)

        loop.threads += 1
        return run(threads, counted_call)

    setattr(Threads, "run", counted)  # noqa: B010  # mypy would have no method assigned


def without_reactor() -> Loop:
    """Return such a loop, for crawls without a reactor, and have Scrapy read its time."""
    _patch(_NAMES)
    loop = Loop(takes_conditions=True)
    _count_threads(loop)
    return loop


def _patch(names: Mapping[str, Mapping[str, object]]) -> None:
    for module, clocks in names.items():
        found = [name for name in clocks if hasattr(importlib.import_module(module), name)]
        assert found, module
        for name in found:
            setattr(sys.modules[module], name, clocks[name])
