"""Who has each request, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.http import Response
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from simulation.history import History
    from simulation.process import Process


@dataclass
class Entry:
    """One request of the plan, redirects and all."""

    number: int
    holder: Process | None = None
    """The process in whose memory it is."""
    since: float = 0.0
    """When it got there."""
    is_parked: bool = False
    url: str = ""
    """Which of its URLs was parked last."""
    ends: list[str] = field(default_factory=list)
    is_queued_too: bool = False
    """Whether Scrapy's own queue has it, too: a kill made the queue forget that it came out."""
    may_be_lost: str = ""
    may_be_twice: str = ""


class Ledger:
    """Each request that was taken ends exactly once, or is in a queue that survives."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.entries: dict[int, Entry] = {}

    def _entry(self, request: Request) -> Entry:
        number = request.meta["n"]
        if number not in self.entries:
            self.entries[number] = Entry(number)
        return self.entries[number]

    def accepted(self, request: Request, process: Process | None) -> None:
        """A queue has taken *request*: that of *process*, or one that all share."""
        if process is None or not process.dead:
            self._entry(request).holder = process
            self._history.tell(process, "queues", request)

    def taken(self, request: Request, process: Process) -> None:
        """*process* has taken *request* out of a queue that survives it."""
        if not process.dead:
            entry = self._entry(request)
            entry.holder, entry.is_parked = process, False
            self._history.tell(process, "takes", request)

    def handed_out(self, request: Request, process: Process) -> None:
        """The scheduler has given *request* to be downloaded."""
        if process.dead:
            return
        entry = self._entry(request)
        entry.holder, entry.is_parked = process, False

    def parks(self, request: Request, process: Process) -> None:
        """The scheduler has *request* wait; again, perhaps."""
        if not process.dead:
            entry = self._entry(request)
            entry.since, entry.is_parked = self._history.clock.now, True
            entry.holder = process
            entry.url = request.url

    def parked(self, process: Process, after: float) -> set[int]:
        """Return what waits in *process* since a time *after* this one."""
        return {
            entry.number
            for entry in self.entries.values()
            if entry.holder is process
            and entry.is_parked
            and after < entry.since
            and not entry.may_be_lost
        }

    def forgotten(self) -> None:
        """Redis has lost its data: what is in no process is lost, and nothing is known as seen."""
        for entry in self.entries.values():
            entry.may_be_twice = "Redis has forgotten who had it"
            is_in_redis = entry.holder is None or entry.holder.has_handed_back or entry.is_parked
            if is_in_redis and not entry.ends:
                entry.may_be_lost = "Redis has forgotten it"

    def found(self, request: Request, page: Request) -> None:
        """A pipeline asks for *request*, as often as for its *page*."""
        self._entry(request).may_be_twice = self._entry(page).may_be_twice

    def ended(self, request: Request, process: Process, result: Response | Failure) -> None:
        """The spider was told how *request* ended."""
        if process.dead:
            return
        how = str(result.status) if isinstance(result, Response) else type(result.value).__name__
        self._history.tell(process, f"ended ({how})", request)
        entry = self._entry(request)
        entry.ends.append(f"{how} in {process.name}")
        entry.holder = None
        if len(entry.ends) > 1 and not entry.may_be_twice:
            self._history.watch.broken("no request ends twice", process, repr(entry.ends))
        if isinstance(result, Failure):
            self._history.watch.refused(process, request, result)

    def killed(
        self, process: Process, durable: Iterable[int], again: set[Any], parked: set[int]
    ) -> list[int]:
        """Return what *process* had in memory alone."""
        kept = set(durable)
        for number, url in again:
            entry = self.entries.get(number)
            # What waits in the file is known again by the next run, but for its other URLs.
            if entry is not None and (number not in parked or url != entry.url):
                entry.may_be_twice = "Scrapy's own queue forgot that it had given it out"
            elif entry is not None:
                entry.is_queued_too = True
        lost = []
        for entry in self.entries.values():
            if entry.holder is process:
                entry.holder = None
                if entry.number not in kept:
                    entry.may_be_lost = f"it was in the memory of {process.name}"
                    lost.append(entry.number)
                elif entry.may_be_twice and entry.number not in parked:
                    entry.may_be_lost = "what is durable is an earlier URL of it, that came out"
        return lost

    def left(self, process: Process, durable: set[int], may_be_lost: str) -> None:
        """The crawl of *process* has ended by itself: what has not ended with it?"""
        for entry in self.entries.values():
            if entry.is_queued_too:
                entry.may_be_twice = "the run after the next does not know that it waited"
            if entry.holder is process:
                entry.holder = None
                if may_be_lost:  # what is durable may be an earlier URL of it
                    entry.may_be_lost = may_be_lost
                elif entry.number not in durable and not entry.ends and not entry.may_be_lost:
                    said = f"request {entry.number}: ends {entry.ends}"
                    self._history.watch.broken("no request is lost", process, said)

    def sum_up(self, durable: Iterable[int]) -> None:
        """All processes have ended: look for what was lost."""
        kept = set(durable)
        for entry in self.entries.values():
            said = f"request {entry.number}: ends {entry.ends}"
            if not entry.ends and entry.number not in kept and not entry.may_be_lost:
                self._history.watch.broken("no request is lost", None, said)
            if entry.ends and entry.number in kept and not entry.may_be_twice:
                self._history.watch.broken("no request ends twice", None, f"{said}, still queued")
