"""Who has each request, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
    may_be_lost: str = ""


class Ledger:
    """Each request that was taken ends exactly once, unless its process is killed or stopped."""

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

    def ended(self, request: Request, process: Process, result: Response | Failure) -> None:
        """The spider was told how *request* ended."""
        if process.dead:
            return
        how = str(result.status) if isinstance(result, Response) else type(result.value).__name__
        self._history.tell(process, f"ended ({how})", request)
        entry = self._entry(request)
        entry.ends.append(f"{how} in {process.name}")
        entry.holder, entry.waits = None, False
        if len(entry.ends) > 1:
            self._history.watch.broken("no request ends twice", process, repr(entry.ends))
        if isinstance(result, Failure):
            self._history.watch.ends(process, request, result)

    def gone(self, process: Process, may_be_lost: str) -> None:
        """The crawl of *process* has ended: what has not ended with it?"""
        for entry in self.entries.values():
            if entry.holder is process:
                entry.holder, entry.waits = None, False
                if may_be_lost:
                    entry.may_be_lost = may_be_lost
                elif not entry.ends:
                    said = f"request {entry.number}"
                    self._history.watch.broken("no request is lost", process, said)

    def sum_up(self) -> None:
        """All processes have ended: look for what was lost."""
        for entry in self.entries.values():
            if not entry.ends and not entry.may_be_lost:
                self._history.watch.broken("no request is lost", None, f"request {entry.number}")
