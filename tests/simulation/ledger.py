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
    waits: bool = False
    """Whether our scheduler has it: it is neither in Scrapy's queue nor in the downloader."""
    url: str = ""
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

    def accepted(self, request: Request, process: Process) -> None:
        """The wrapped queue of *process* has taken *request*."""
        if not process.dead:
            self._entry(request).holder = process
            self._history.tell(process, "queues", request)

    def taken(self, request: Request, process: Process) -> None:
        """Our scheduler has taken *request* out of the wrapped queue."""
        if not process.dead:
            entry = self._entry(request)
            entry.holder, entry.waits = process, True
            entry.since, entry.url = self._history.clock.now, request.url
            self._history.tell(process, "takes", request)

    def handed_out(self, request: Request, process: Process) -> None:
        """The scheduler has given *request* to be downloaded."""
        if not process.dead:
            entry = self._entry(request)
            entry.holder, entry.waits = process, False

    def waiting(self, process: Process) -> list[Entry]:
        """Return the requests that our scheduler has, in *process*."""
        return [each for each in self.entries.values() if each.waits and each.holder is process]

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
        entry.holder, entry.waits = None, False
        if len(entry.ends) > 1 and not entry.may_be_twice:
            self._history.watch.broken("no request ends twice", process, repr(entry.ends))
        if isinstance(result, Failure):
            self._history.watch.ends(process, request, result)

    def killed(
        self, process: Process, queued: set[int], parked: set[int] | None, again: set[Any]
    ) -> None:
        """*process* has gone, and with it what is not *queued* and not *parked* on the disk.

        None is parked where there is no JOBDIR.
        """
        kept = queued | (parked or set())
        for number, url in again:
            entry = self.entries.get(number)
            # What waits in the file is known again by the next run, but for its other URLs.
            if entry is not None and (number not in (parked or ()) or url != entry.url):
                entry.may_be_twice = "Scrapy's own queue forgot that it had given it out"
            elif entry is not None:
                entry.is_queued_too = True
        for entry in self.entries.values():
            if entry.holder is process:
                if entry.waits and parked is not None and entry.number not in kept:
                    said = f"request {entry.number}"
                    self._history.watch.broken("no waiting request is lost", process, said)
                if entry.number not in kept:
                    entry.may_be_lost = f"it was in the memory of {process.name}"
                elif entry.may_be_twice and entry.number not in (parked or ()):
                    entry.may_be_lost = "what is durable is an earlier URL of it, that came out"
                entry.holder, entry.waits = None, False

    def left(self, process: Process, durable: set[int], may_be_lost: str) -> None:
        """The crawl of *process* has ended by itself: what has not ended with it?"""
        for entry in self.entries.values():
            if entry.is_queued_too:
                entry.may_be_twice = "the run after the next does not know that it waited"
            if entry.holder is process:
                entry.holder, entry.waits = None, False
                if may_be_lost:
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
