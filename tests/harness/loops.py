"""Three ways of running a coroutine test, and the watch over what it leaves behind."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet import defer
from twisted.logger import ILogObserver, LogEvent, formatEvent, globalLogPublisher
from twisted.python.failure import Failure
from zope.interface import implementer

from harness import virtual
from harness.clocks import sleep

GRACE_SECS = 1.0
"""How long sockets and threads may take to be gone after a test."""
STUCK_SECS = 60.0
"""How much longer than its bound a test may keep the loop to itself, before the process ends."""

Test = Callable[[], Coroutine[Any, Any, object]]


class Loop(ABC):
    """What runs coroutines."""

    name: str
    is_virtual = False
    """Whether its time can jump."""

    def __init__(self) -> None:
        self._stderr = os.fdopen(os.dup(2), "w")

    def run(self, test: Test, bound_secs: float) -> None:
        """Run it to its end; fail if that does not come in time, or something stays behind."""
        faulthandler.dump_traceback_later(bound_secs + STUCK_SECS, exit=True, file=self._stderr)
        try:
            with untaken_errors() as errors:
                self.drive(lambda: _leaving_nothing(test), bound_secs)
                gc.collect()
                gc.freeze()  # the next one need not look at what there is now
        except TimedOut:
            pytest.fail(f"had not ended after {bound_secs:g} s")
        finally:
            faulthandler.cancel_dump_traceback_later()
        if errors:
            kinds = "; ".join(error.strip().rpartition("\n")[2] for error in errors)
            pytest.fail(f"errors that nobody took: {kinds}\n" + "\n".join(errors))

    @abstractmethod
    def drive(self, test: Test, bound_secs: float) -> None:
        """Run it; `TimedOut` if it takes longer."""

    def close(self) -> None:
        self._stderr.close()


class TimedOut(Exception):
    pass


class ReactorLoop(Loop):
    """The reactor that pytest-twisted has installed."""

    def __init__(self) -> None:
        super().__init__()
        self.name = f"{type(_reactor()).__name__} of Twisted"
        self.is_virtual = _reactor().seconds == virtual.TIME.now

    def drive(self, test: Test, bound_secs: float) -> None:
        import pytest_twisted

        run = _Run(test, bound_secs)
        _reactor().callLater(0, run.begin)
        pytest_twisted.blockon(run.ended)


class _Run:
    """One test in the reactor."""

    def __init__(self, test: Test, bound_secs: float) -> None:
        self.ended: defer.Deferred[Any] = defer.Deferred()
        self._test = test
        self._bound_secs = bound_secs
        self._late: Failure | None = None

    def begin(self) -> None:
        self._alarm = _reactor().callLater(self._bound_secs, self._break_off)
        self._running = deferred_from_coro(self._test())
        self._running.addBoth(self._end)

    def _break_off(self) -> None:
        self._late = Failure(TimedOut())
        self._running.cancel()
        self._end(None)  # whether it heeds that or not

    def _end(self, outcome: object) -> None:
        if self._alarm.active():
            self._alarm.cancel()
        if not self.ended.called:
            self.ended.callback(self._late or outcome)


class BareLoop(Loop):
    """asyncio alone; who imports the reactor, which would install it, gets an ImportError."""

    name = "asyncio without a reactor"
    is_virtual = True

    def __init__(self) -> None:
        super().__init__()
        # Scrapy 2.14 has no such crawls.
        from scrapy.utils.reactorless import ReactorImportHook

        self._hook = ReactorImportHook()
        sys.meta_path.insert(0, self._hook)
        self._loop = virtual.without_reactor()
        asyncio.set_event_loop(self._loop)

    def drive(self, test: Test, bound_secs: float) -> None:
        self._loop.run_until_complete(self._bounded(test, bound_secs))

    @staticmethod
    async def _bounded(test: Test, bound_secs: float) -> None:
        running = asyncio.ensure_future(test())
        done, _ = await asyncio.wait([running], timeout=bound_secs)
        if not done:
            running.cancel()
            raise TimedOut
        running.result()

    def close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        asyncio.set_event_loop(None)
        sys.meta_path.remove(self._hook)
        super().close()


async def _leaving_nothing(test: Test) -> None:
    before = _pending()
    await test()
    end = time.monotonic() + GRACE_SECS
    while left := _pending() - before:
        if time.monotonic() > end:
            pytest.fail("left behind:\n" + "\n".join(map(repr, left)))
        await sleep(0.01)


def _pending() -> set[object]:
    """Whatever is going to run without being asked."""
    delayed = _reactor().getDelayedCalls() if is_reactor_installed() else []
    return {*delayed, *_asyncio_tasks_and_timers()}


def _reactor() -> Any:
    from twisted.internet import reactor

    return reactor


def _asyncio_tasks_and_timers() -> list[object]:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return []
    timers = [handle for handle in getattr(loop, "_scheduled", ()) if not handle.cancelled()]
    return [*asyncio.all_tasks(loop), *filter(_is_not_of_the_machinery, timers)]


def _is_not_of_the_machinery(timer: Any) -> bool:
    """Twisted has one timer for all its delayed calls, which are counted; `sleep` another."""
    module = getattr(timer._callback, "__module__", "")
    return module not in ("twisted.internet.asyncioreactor", "asyncio.futures")


@contextmanager
def untaken_errors() -> Iterator[list[str]]:
    """What Twisted and asyncio log when nobody is there to take an exception.

    Not AlreadyCalledError of a timer: Scrapy's HTTP/1.1 handler causes it where the loop was
    blocked for a second while connections closed. Its timer and the last connection end the same
    Deferred.
    """
    errors: list[str] = []

    def from_twisted(event: LogEvent) -> None:
        failure = event.get("log_failure")
        is_of_a_timer = "timed call" in str(event.get("log_format"))
        if is_of_a_timer and failure is not None and failure.check(defer.AlreadyCalledError):
            return
        if event.get("isError") or failure is not None:
            errors.append(failure.getTraceback() if failure else str(formatEvent(event)))

    observer = implementer(ILogObserver)(from_twisted)
    handler = _Errors(errors)
    globalLogPublisher.addObserver(observer)
    logging.getLogger("asyncio").addHandler(handler)
    try:
        yield errors
    finally:
        logging.getLogger("asyncio").removeHandler(handler)
        globalLogPublisher.removeObserver(observer)


class _Errors(logging.Handler):
    def __init__(self, errors: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        self._errors.append(self.format(record))
