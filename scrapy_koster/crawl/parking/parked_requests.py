"""Requests that wait in the scheduler, each in the queue of its site or of its host."""

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
    """The requests that wait for one site, or for the next visit to one host."""

    __slots__ = ("failure", "filed", "heap", "is_open", "name", "read_to", "sent")

    def __init__(self, name: str) -> None:
        self.name = name
        self.heap: list[tuple[Place, Request, bool]] = []
        """The requests in memory: the place of each, and whether it is in the file as well."""
        self.filed = 0
        """How many requests are in the file only. All of them come after ``read_to``."""
        self.read_to: Place = _BEFORE_ALL
        self.is_open = False
        """Whether its requests may come out."""
        self.failure: Failure | None = None
        """The failure by which its requests are refused when they come out."""
        self.sent: list[Request] = []
        """The last requests that came out: as many as fit into a slot of the downloader."""

    def __len__(self) -> int:
        return len(self.heap) + self.filed


class ParkedRequests:
    """The queues of requests that wait for a site or a host, and those that may come out.

    In a queue the higher priority comes first, then the request that came first. With a JOBDIR
    each request is written to a file, and stays there until it comes out. So when a site opens,
    its requests stay here until the downloader has room for them: a process that is killed loses
    none of them. What cannot be written waits in memory.

    Until a scheduler opens it, no request waits here.
    """

    def __init__(
        self, crawler: Crawler, *, file: ParkedFile, engine: Engine, ask_for: AskFor
    ) -> None:
        """*ask_for* has a site retrieved for which a request begins to wait."""
        self._engine = engine
        self._ask_for = ask_for
        self._file = file
        settings = crawler.settings
        places = settings.getint("CONCURRENT_REQUESTS")
        self._slot_size = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN") or places
        self._numbers = count()
        self._queues: dict[str, SiteQueue] = {}
        """The queues in which requests wait, by the names of sites and hosts."""
        self._visits: dict[SiteQueue, None] = {}
        """The queues of hosts that may be visited once: one request may come out of each."""
        self._open: deque[SiteQueue] = deque()
        """The queues whose requests may come out, in the order of their turns."""
        self._count = 0
        self._backup: RedisBackup | None = None
        self.is_open = self.is_kept = False
        self.given_up: WeakKeyDictionary[Request, Failure] = WeakKeyDictionary()
        """Requests that waited in vain: refused when they come out, though the site may be due."""

    def __len__(self) -> int:
        return self._count

    def open(self, *, is_kept: bool) -> None:
        """Begin. With *is_kept* the next run finds the requests that are left when the crawl ends.

        The requests of the last run are taken back later, by ``resume``.
        """
        self.is_open, self.is_kept = True, is_kept

    def resume(self, backup: RedisBackup | None) -> list[str]:
        """Return the names of the queues that the last run has left. *backup* gets a copy of each
        request from now on.
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
        """Return whether the last run has left the same request: it would be fetched twice.

        A process that was killed may not have written that its queue on disk has given it out.
        """
        left = self._file.fingerprints
        return bool(left) and not request.dont_filter and self._file.fingerprint(request) in left

    # Requests begin to wait.

    def park(self, state: SiteState, request: Request) -> None:
        """Have *request* wait until its site is known."""
        self.push(str(state.site), request)
        self._ask_for(state, request)

    def push(self, name: str, request: Request) -> None:
        """Put *request* into the queue of *name*, a site or a host, which closes.

        A queue that is being given up stays open: the request is refused with the others.
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
        """Return how many requests wait in the queue of *name*, a site or a host."""
        queue = self._queues.get(name)
        return 0 if queue is None or queue.is_open else len(queue)

    # They come out.

    def settled(self, state: SiteState, fate: Fate, step: Step) -> None:
        """Have the requests of a site go on, be refused or stay. *step* decides about them."""
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
        """Have the requests in the queue of *name* come out."""
        if queue := self._queues.get(name):
            self._let_out(queue, None)

    def let_one_out(self, name: str) -> None:
        """Have one request in the queue of *name*, a host, come out before all others."""
        if queue := self._queues.get(name):
            self._visits[queue] = None

    def _let_out(self, queue: SiteQueue, failure: Failure | None) -> None:
        """Have the requests of *queue* come out; with *failure* they are refused."""
        queue.failure = failure
        if not queue.is_open:
            queue.is_open = True
            self._open.append(queue)

    def _give_up_unwritten(self, queue: SiteQueue, failure: Failure) -> None:
        """Have those requests of *queue* refused that the JOBDIR does not keep."""
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
        """Whether a request may come out, now or when the downloader has room for it."""
        return bool(self._open or self._visits) and not self.is_held

    @property
    def is_held(self) -> bool:
        """Whether no request may come out: another worker may have taken it over."""
        return self._backup is not None and self._backup.is_holding

    def pop_visit(self) -> Request | None:
        """Return the next request of a host that may be visited, or None."""
        while self._visits and not self.is_held:
            queue = next(iter(self._visits))
            del self._visits[queue]
            if (request := self._take(queue)) is not None:
                return request
        return None

    def pop(self) -> Request | None:
        """Return the next request of an open queue, or None. The queues take turns.

        A queue passes if the downloader has as many of its requests as a slot takes.
        """
        for _ in range(len(self._open)):
            queue = self._open.popleft()
            request = self._take(queue) if self._has_room(queue) else None
            if queue:
                self._open.append(queue)
            if request is not None:
                if queue.failure is not None:
                    self.given_up[request] = queue.failure
                elif request not in queue.sent:  # it may have been parked again
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
        """Take the next request out of *queue*, unless it is held or another worker's."""
        while not self.is_held and self._load_first(queue):
            place, request, is_filed = queue.heap[0]
            is_own = self._backup is None or self._backup.remove(place)
            if is_own is None:  # Redis does not say
                return None
            heappop(queue.heap)
            if is_filed:
                self._file.remove(queue.name, place)
            self._uncount(queue, 1)
            if is_own:
                return request
        return None

    def _load_first(self, queue: SiteQueue) -> bool:
        """Return whether *queue* has requests. Afterwards the first one is in memory."""
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
        """Return how many requests wait for each site, and for the next visit to each host."""
        return Counter({name: len(queue) for name, queue in self._queues.items()})

    def unwritten(self) -> Iterator[tuple[Place, Request]]:
        """Return the requests that are not in the JOBDIR, with their places."""
        for queue in self._queues.values():
            yield from (entry[:2] for entry in sorted(queue.heap) if not entry[2])

    def close(self) -> None:
        """Close the file."""
        self._queues.clear()  # an answer that still comes lets no request out
        self._file.close()
