"""The scheduler that is wrapped: in memory."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import BaseDupeFilter

if TYPE_CHECKING:
    from simulation.process import Process


class Dupefilter(BaseDupeFilter):
    """Knows a request by the number that the ledger has it under."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[tuple[int, str]] = set()

    def request_seen(self, request: Request) -> bool:
        by = (request.meta["n"], request.url)
        is_seen = by in self._seen
        self._seen.add(by)
        return is_seen


class InMemory(Scheduler):
    """Takes Scrapy's place, and is taken for it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._queue: list[tuple[int, int, Request]] = []
        self._numbers = count()
        self.df = Dupefilter()

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
        heappush(self._queue, (-request.priority, next(self._numbers), request))
        return True

    def next_request(self) -> Request | None:
        if not self._queue or self._process.dead:
            return None
        request = heappop(self._queue)[-1]
        self._process.history.ledger.taken(request, self._process)
        return request
