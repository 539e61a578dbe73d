"""Requests that wait in the scheduler, in the queues of their sites or hosts."""

from __future__ import annotations

from collections import Counter, deque
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy_koster.crawl.states import Fate
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.step import Refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.parking.parked_file import ParkedFile, Place
    from scrapy_koster.crawl.parking.redis_backup import RedisBackup
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.step import Step

    AskFor: TypeAlias = Callable[[SiteState, Request], None]

# SQLite has no lower priority.
_BEFORE_ALL = (-(2**63), -1)


class SiteQueue:
    """Requests that wait for a site, or for the next visit to a host."""

    __slots__ = ("failure", "filed", "heap", "is_open", "name", "read_to", "sent")

    def __init__(self, name: str) -> None:
        self.name = name
        self.heap: list[tuple[Place, Request, bool]] = []
        """Requests in memory: place, request, whether the file has the request as well."""
        self.filed = 0
        """Number of requests only in the file, with places after ``read_to``."""
        self.read_to: Place = _BEFORE_ALL
        self.is_open = False
        """Whether the requests can come out."""
        self.failure: Failure | None = None
        """The failure for which the requests are refused after coming out."""
        self.sent: list[Request] = []
        """The last requests that came out, at most as many as a slot of the downloader takes."""

    def __len__(self) -> int:
        return len(self.heap) + self.filed


class ParkedRequests:
    """The queues of requests that wait for a site or a host.

    A queue is ordered by priority, then by time. With a JOBDIR, a waiting request is in a file.
    When a site opens, its requests stay here until the downloader has room, so that no request is
    lost if the process is killed. Requests that cannot be written wait in memory.

    No request waits here before a scheduler calls ``open``.
    """

    def __init__(
        self, crawler: Crawler, *, file: ParkedFile, engine: Engine, ask_for: AskFor
    ) -> None:
        """*ask_for* is called with a site and a request that begins to wait for the site."""
        self._engine = engine
        self._ask_for = ask_for
        self._file = file
        settings = crawler.settings
        places = settings.getint("CONCURRENT_REQUESTS")
        self._slot_size = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN") or places
        self._numbers = count()
        self._queues: dict[str, SiteQueue] = {}
        """The queues that have requests, by the names of sites and hosts."""
        self._visits: dict[SiteQueue, None] = {}
        """Queues of hosts that can be visited once. A single request can come out of a queue."""
        self._open: deque[SiteQueue] = deque()
        """Queues of requests that can come out, in the order of turns."""
        self._count = 0
        self._backup: RedisBackup | None = None
        self.is_open = self.is_kept = False
        self.given_up: WeakKeyDictionary[Request, Failure] = WeakKeyDictionary()
        """Requests of sites that were given up, to be refused even if the site is due again."""

    def __len__(self) -> int:
        return self._count

    def open(self, *, is_kept: bool) -> None:
        """Let requests wait. With *is_kept* the next run resumes the requests that are left.

        ``resume`` loads the requests of the last run later.
        """
        self.is_open, self.is_kept = True, is_kept

    def resume(self, backup: RedisBackup | None) -> list[str]:
        """Return the names of the queues that the last run has left.

        From now on *backup* gets a copy of parked requests.
        """
        self._backup, counts = backup, self._file.resume()
        self._numbers = count(self._file.number + 1)
        for name, waiting in counts.items():
            self._queue(name).filed = waiting
        self._count = counts.total()
        return list(counts)

    @property
    def has_resumed(self) -> bool:
        """Whether the last run has left requests."""
        return bool(self._file.fingerprints)

    def is_resumed(self, request: Request) -> bool:
        """Return whether the last run has left the same request: no page is fetched twice.

        If the last run was killed, its queue on disk may also contain the request.
        """
        left = self._file.fingerprints
        return bool(left) and not request.dont_filter and self._file.fingerprint(request) in left

    # Requests begin to wait.

    def park(self, state: SiteState, request: Request) -> None:
        """Let *request* wait until its site is known."""
        self.push(str(state.site), request)
        self._ask_for(state, request)

    def push(self, name: str, request: Request) -> None:
        """Put *request* into the queue of *name*, a site or a host, and close the queue.

        A queue that is being given up stays open, and *request* is refused too.
        """
        queue = self._queue(name)
        if queue.is_open and queue.failure is None:
            queue.is_open = False
            self._open.remove(queue)
        place = (-request.priority, next(self._numbers))
        is_filed = self._file.write(name, place, request)
        if is_filed and place > queue.read_to:
            queue.filed += 1
        else:
            heappush(queue.heap, (place, request, is_filed))
        self._count += 1
        if self._backup is not None:
            self._backup.add(place, request)

    def _queue(self, name: str) -> SiteQueue:
        if name not in self._queues:
            self._queues[name] = SiteQueue(name)
        return self._queues[name]

    def waiting_in(self, name: str) -> int:
        """Return the number of requests that wait in the queue of *name*, a site or a host."""
        queue = self._queues.get(name)
        return 0 if queue is None or queue.is_open else len(queue)

    # Requests come out.

    def settled(self, state: SiteState, fate: Fate, step: Step) -> None:
        """Let out or keep the requests of a site by their *fate*. *step* decides them."""
        queue = self._queues.get(str(state.site))
        if queue is not None:
            match fate, step:
                case Fate.GO, _:
                    self._let_out(queue, None)
                case Fate.GIVE_UP, Refuse(failure):
                    self._let_out(queue, failure)
                case Fate.KEEP, Refuse(failure):
                    self._give_up_unwritten(queue, failure)
                case _:
                    pass
        if self.is_open:
            self._engine.wake()

    def let_out(self, name: str) -> None:
        """Let the requests in the queue of *name* come out."""
        if queue := self._queues.get(name):
            self._let_out(queue, None)

    def let_one_out(self, name: str) -> None:
        """Let a single request in the queue of *name*, a host, come out before open queues."""
        if queue := self._queues.get(name):
            self._visits[queue] = None

    def _let_out(self, queue: SiteQueue, failure: Failure | None) -> None:
        """Let the requests of *queue* come out. With *failure* they are refused."""
        queue.failure = failure
        if not queue.is_open:
            queue.is_open = True
            self._open.append(queue)

    def _give_up_unwritten(self, queue: SiteQueue, failure: Failure) -> None:
        """Refuse the requests of *queue* that are not in the JOBDIR."""
        unwritten = [entry for entry in queue.heap if not entry[2]]
        if not unwritten or not self._file.lasts:
            return
        apart = self._queue(f"{queue.name} (not in the JOBDIR)")
        apart.heap = sorted(apart.heap + unwritten)
        self._let_out(apart, failure)
        queue.heap = sorted(entry for entry in queue.heap if entry[2])
        self._uncount(queue, 0)

    @property
    def has_next(self) -> bool:
        """Whether a request can come out, now or when the downloader has room."""
        return bool(self._open or self._visits) and not self.is_held

    @property
    def is_held(self) -> bool:
        """Whether no request can come out: another worker may have taken over the requests."""
        return self._backup is not None and self._backup.is_holding

    def pop_visit(self) -> Request | None:
        """Return the next request of a host that can be visited, or None."""
        while self._visits and not self.is_held:
            queue = next(iter(self._visits))
            del self._visits[queue]
            if (request := self._take(queue)) is not None:
                return request
        return None

    def pop(self) -> Request | None:
        """Return the next request of an open queue, or None. The queues take turns.

        A queue is skipped if its requests in the downloader fill a slot.
        """
        for _ in range(len(self._open)):
            queue = self._open.popleft()
            request = self._take(queue) if self._has_room(queue) else None
            if queue:
                self._open.append(queue)
            if request is not None:
                if queue.failure is not None:
                    self.given_up[request] = queue.failure
                elif request not in queue.sent:  # the request may have been parked again
                    queue.sent.append(request)
                return request
        return None

    def _has_room(self, queue: SiteQueue) -> bool:
        if queue.failure is not None or len(queue.sent) < self._slot_size:
            return True
        under_way = self._engine.under_way
        queue.sent = [request for request in queue.sent if request in under_way]
        return len(queue.sent) < self._slot_size

    def _take(self, queue: SiteQueue) -> Request | None:
        """Return the next request of *queue* that no other worker has or may have, or None."""
        while not self.is_held and self._load_first(queue):
            place, request, is_filed = queue.heap[0]
            is_own = self._backup is None or self._backup.remove(place)
            if is_own is None:  # Redis does not answer
                return None
            heappop(queue.heap)
            if is_filed:
                self._file.remove(queue.name, place)
            self._uncount(queue, 1)
            if is_own:
                return request
        return None

    def _load_first(self, queue: SiteQueue) -> bool:
        """Load the first request of *queue* into memory. Return whether a request is left."""
        while queue.filed and (not queue.heap or queue.heap[0][0] > queue.read_to):
            rows = self._file.read(queue.name, queue.read_to, queue.filed)
            lost = 0 if rows else queue.filed
            queue.filed -= len(rows) or lost
            for place, request in rows:
                queue.read_to = place
                if request is None:
                    lost += 1
                else:
                    heappush(queue.heap, (place, request, True))
            self._uncount(queue, lost)
        return bool(queue.heap)

    def _uncount(self, queue: SiteQueue, requests: int) -> None:
        self._count -= requests
        if not queue:
            self._queues.pop(queue.name, None)

    # The end.

    def by_name(self) -> Counter[str]:
        """Return the number of waiting requests by site or host."""
        return Counter({name: len(queue) for name, queue in self._queues.items()})

    def unwritten(self) -> Iterator[tuple[Place, Request]]:
        """Yield the requests that are not in the JOBDIR, with their places."""
        for queue in self._queues.values():
            yield from (entry[:2] for entry in sorted(queue.heap) if not entry[2])

    def close(self) -> None:
        """Close the file."""
        self._queues.clear()  # a late answer must not let requests out
        self._file.close()
