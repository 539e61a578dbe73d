"""The schedulers that are wrapped: in memory, and on a disk."""

from __future__ import annotations

import pickle
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.request import request_from_dict

if TYPE_CHECKING:
    from pathlib import Path

    from simulation.process import Process


class Dupefilter(BaseDupeFilter):
    """Knows a request by the number that the ledger has it under."""

    def __init__(self, seen: dict[Any, None]) -> None:
        super().__init__()
        self._seen = seen

    def request_seen(self, request: Request) -> bool:
        by = (request.meta["n"], request.url)
        if by in self._seen:
            return True
        self._seen[by] = None
        return False


class InMemory(Scheduler):
    """Takes Scrapy's place, and is taken for it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._queue: list[tuple[int, int, Any]] = []
        self._numbers = count()
        self.df = Dupefilter({})

    @classmethod
    def from_crawler(cls, crawler: Any) -> InMemory:
        return cls(crawler.process)

    def open(self, spider: Any) -> None:
        self.spider = spider

    def close(self, reason: str) -> None:
        pass

    def __len__(self) -> int:
        return len(self._queue)

    def has_pending_requests(self) -> bool:
        return bool(self._queue)

    def enqueue_request(self, request: Request) -> bool:
        if self._process.dead or (not request.dont_filter and self.df.request_seen(request)):
            return False
        self._process.history.ledger.accepted(request, self._process)
        self._push(-request.priority, request)
        return True

    def _push(self, priority: int, request: Any) -> None:
        heappush(self._queue, (priority, next(self._numbers), request))

    def next_request(self) -> Request | None:
        if not self._queue or self._process.dead:
            return None
        request = self._popped(heappop(self._queue))
        self._process.history.ledger.taken(request, self._process)
        return request

    def _popped(self, row: tuple[int, int, Any]) -> Request:
        request: Request = row[-1]
        return request


class JobDir:
    """What is on a disk between two runs of a crawl."""

    def __init__(self, folder: Path, chance: Random) -> None:
        self.folder = folder
        self._chance = chance
        self.queue: list[tuple[int, int, bytes]] = []
        self.numbers = count()
        self.seen: dict[Any, None] = {}
        self.popped: list[tuple[int, int, bytes]] = []
        self._runs = count()

    def killed(self) -> set[Any]:
        """Have Scrapy's own queue and dupefilter miss what they did last; return what it is of.

        What was killed writes into a folder that nobody looks at any more.
        """
        self.folder = shutil.copytree(self.folder, self.folder.with_name(f"run{next(self._runs)}"))
        again: set[Any] = set()
        if self._chance.random() < 0.5:
            for row in self.popped[-self._chance.randrange(1, 8) :]:
                heappush(self.queue, row)
                again.add(named(row[-1]))
        if self._chance.random() < 0.5:
            for by in list(self.seen)[-self._chance.randrange(1, 8) :]:
                del self.seen[by]
                again.add(by)
        self.popped.clear()
        return again

    def numbers_parked(self) -> Iterator[Any]:
        path = self.folder / "koster-parked.sqlite3"
        if not path.exists():
            return
        with closing(sqlite3.connect(path)) as connection:
            for (data,) in connection.execute("SELECT request FROM parked"):
                yield number_of(data)

    def numbers_queued(self) -> Iterator[Any]:
        return (number_of(row[-1]) for row in self.queue)


class OnDisk(InMemory):
    """As Scrapy's scheduler with a JOBDIR; each push is there for the next run."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        assert process.jobdir is not None
        self._jobdir = process.jobdir
        self._queue = self._jobdir.queue
        self._numbers = self._jobdir.numbers
        self.df = Dupefilter(self._jobdir.seen)

    def close(self, reason: str) -> None:
        self._jobdir.popped.clear()

    def _push(self, priority: int, request: Request) -> None:
        super()._push(priority, pickle.dumps(request.to_dict(spider=self.spider)))

    def _popped(self, row: tuple[int, int, Any]) -> Request:
        self._jobdir.popped.append(row)
        return request_from_dict(pickle.loads(row[-1]), spider=self.spider)


def named(data: bytes) -> tuple[Any, str]:
    """Return the number and the URL of a request that was pickled."""
    fields = pickle.loads(data)
    return fields["meta"]["n"], fields["url"]


def number_of(data: bytes) -> Any:
    return named(data)[0]
