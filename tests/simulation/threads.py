"""The threads of the storage, without a thread: each call takes a time that is made up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure

if TYPE_CHECKING:
    from simulation.process import Process, ProcessClock


class Called:
    """A call: it has its effect after a while, and is answered after another."""

    def __init__(self, process: Process, call: partial[Any]) -> None:
        self._process = process
        self._call = call
        # It may have waited for its turn.
        self._asked = call.args[0][0].made
        self._ended: Callable[[Any], object] = lambda _: None
        self._answer: Any = None
        self.is_answered = False
        self.before_secs, self.after_secs = process.history.disk.secs()
        self._timer = process.loop.call_later(self.before_secs, self._take_effect)

    def _take_effect(self) -> None:
        self.make()
        self._timer = self._process.loop.call_later(self.after_secs, self.answer)

    def make(self) -> None:
        """Have its effect."""
        try:
            self._answer = self._call()
        except Exception:  # noqa: BLE001  # what it raises is its caller's
            self._answer = Failure()

    def answer(self) -> None:
        """Tell its caller."""
        self.is_answered = True
        self._note()
        self._ended(self._answer)

    def _note(self) -> None:
        secs = self._process.history.clock.now - self._asked
        self._process.history.disk.answered(secs)
        self._process.answered(secs)

    def tell(self, ended: Callable[[Any], object]) -> None:
        """Call *ended* with what it returns, or the Failure."""
        if self.is_answered:
            self._timer = self._process.loop.call_later(0, partial(ended, self._answer))
        self._ended = ended

    def done(self) -> bool:
        return self.is_answered

    def cancel(self) -> None:
        """Do not make it if it has no effect yet; tell nobody."""
        self._timer.cancel()
        if not self.is_answered:
            self.is_answered = True
            self._note()


class SimulatedThreads:
    """What ``fetching.threads`` has: of a process that is killed they have no effect any more."""

    def __init__(self, clock: ProcessClock, _most: int) -> None:
        self._process = clock.process

    def submit(self, call: partial[Any]) -> Called:
        return Called(self._process, call)

    def tell(self, called: Called, ended: Callable[[Any], object]) -> Called:
        called.tell(ended)
        return called

    def close(self) -> None:
        """There are no threads that would have to end."""
