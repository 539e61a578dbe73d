"""Virtual time, and an event loop of it for each simulated process."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

EPOCH = 1_700_000_000.0
_TASKS = 500
_TICK_SECS = 1e-6
_RESOLVER_SECS = 0.005


class Clock:
    """The time of all processes, in seconds; it stands still while anything runs."""

    now = 0.0


if TYPE_CHECKING:
    _AbstractLoop: Any  # it has 34 methods more
else:
    _AbstractLoop = asyncio.AbstractEventLoop


class _Resolving(asyncio.Future[Any]):
    """A call of the resolver. Nobody waits for the thread of one that is cancelled."""

    timer: asyncio.TimerHandle

    def cancel(self, msg: Any = None) -> bool:
        self.timer.cancel()
        return super().cancel(msg)


class Loop(_AbstractLoop):  # type: ignore[misc]
    """What asyncio, Twisted and Scrapy ask of a loop, and nothing else: no sockets, no threads."""

    def __init__(self, clock: Clock, failed: Callable[[dict[str, Any]], None]) -> None:
        """*failed* takes what nobody caught."""
        self._clock = clock
        self._failed = failed
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self._tasks: list[asyncio.Task[Any]] = []
        self.owner: Any = None
        """The process that it belongs to."""

    # For the one who runs it.

    def due(self) -> float | None:
        """Return when it has something to do: a time that may have passed, None for never."""
        if self._ready:
            return self._clock.now
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def run_one(self) -> None:
        """Run the next callback that is due."""
        now = self._clock.now
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if not timer.cancelled():
                self._ready.append(timer)
        if self._ready:
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()

    def timers(self) -> list[asyncio.TimerHandle]:
        """Return the timers that are set."""
        return [handle for _, _, handle in self._timers if not handle.cancelled()]

    def tasks(self) -> list[asyncio.Task[Any]]:
        """Return the tasks that have not ended."""
        return [task for task in self._tasks if not task.done()]

    def clear(self) -> None:
        """Forget what was to be done later."""
        self._timers.clear()

    # For those who run in it.

    def time(self) -> float:
        return self._clock.now

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        # Time that stands still must not stand still for ever: a sum may be rounded away.
        later = max(delay, _TICK_SECS) if delay > 0 else 0.0
        return self.call_at(self._clock.now + later, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **kwargs: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, **kwargs)
        self._tasks.append(task)
        if len(self._tasks) > _TASKS:
            self._tasks = self.tasks()
        return task

    def run_in_executor(self, _executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        """Call the resolver: nothing else is called in a thread of asyncio."""
        future = _Resolving(loop=self)

        def call() -> None:
            try:
                future.set_result(func(*args))
            except Exception as error:  # noqa: BLE001  # what it raises is its caller's
                future.set_exception(error)

        future.timer = self.call_later(_RESOLVER_SECS, call)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._failed(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False
