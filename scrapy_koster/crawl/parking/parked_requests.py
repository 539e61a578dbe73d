"""Requests that wait in the scheduler, in the queues of their sites or hosts."""

import math
import sys
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_koster.crawl.engine.private import Engine
from scrapy_koster.crawl.parking.parked_file import ParkedFile, Place
from scrapy_koster.crawl.parking.redis_queues import RedisQueues
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import FetchFailure
from scrapy_koster.protocol.step import Refuse, Settled


@dataclass(eq=False, slots=True)
class SiteQueue:
    """Requests that wait for a site, or for the next visit to a host, and use the same slot."""

    name: str
    slot: str
    """The key of their slot in the downloader. "" for requests that were not seen here."""
    heap: list[tuple[Place, Request | None]] = field(default_factory=list)
    """Requests with their ``Place``; None instead of a request in the file or in Redis."""
    failure: FetchFailure | None = None
    """If set, requests that come out are refused with this failure."""
    sent: list[Request] = field(default_factory=list)
    """Requests that came out and may still be in the downloader."""


class ParkedRequests:
    """The queues of requests that wait for a site or a host.

    A queue is ordered by priority, then by the time of parking. With a JOBDIR, the requests are in
    a file, and with scrapy-redis in Redis, except requests that cannot be written. When a site
    opens, its requests come out only as the downloader has room, so that the others stay there if
    the process is killed.

    No request is parked before a scheduler calls ``open``.
    """

    def __init__(self, crawler: Crawler, file: ParkedFile, engine: Engine) -> None:
        self._engine = engine
        self._file = file
        self.is_resumed, self.failed_since = file.is_resumed, file.failed_since
        self.add_repeat, self.has_twice = file.add_repeat, file.has_twice
        settings = crawler.settings
        self._places = settings.getint("CONCURRENT_REQUESTS") or sys.maxsize
        most = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self._slot_size = most or self._places
        """The number of requests that a slot sends at once, unless DOWNLOAD_SLOTS changes it."""
        self._numbers = count()
        self._queues: dict[str, dict[str, SiteQueue]] = {}
        """The queues that have requests, by the names of sites and hosts, and by slot."""
        self._open: OrderedDict[SiteQueue, bool] = OrderedDict()
        """The open queues, whose requests can come out, in the order of turns.

        The value is True if only one request can come out, for the next visit to a host.
        """
        self._store: ParkedFile | RedisQueues = file
        self.unopened: dict[str, None] = {}
        """The names of queues of the last run, or of other workers, that wait to be opened."""
        self.is_open = self.is_kept = False
        self.is_resumed_run = False
        """Whether the last run, or another worker, has left requests that wait."""
        self.given_up: WeakKeyDictionary[Request, FetchFailure] = WeakKeyDictionary()
        """Requests to refuse with a failure, unless their site has a valid step."""

    def __len__(self) -> int:
        return self.by_name().total()

    def __bool__(self) -> bool:
        return bool(self._queues)

    def open(self, *, is_kept: bool) -> None:
        """Start parking. With *is_kept* the next run resumes the remaining requests.

        Then call ``resume``, to load the requests of the last run.
        """
        self.is_open, self.is_kept = True, is_kept

    def resume(self, redis: RedisQueues | None) -> None:
        """Load the queues that the last run has left.

        From now on, requests are written to *redis* if it is given, or to the file in the JOBDIR.
        """
        if redis is not None:
            self._store = redis
            self.is_resumed_run = self.adopts()
            return
        left = self._file.resume()
        self.is_resumed_run = bool(left)
        for name, place in left:
            self._queue(name, "").heap.append((place, None))
        self._numbers = count(1 + max((number for _, (_, number) in left), default=0))
        self.unopened = dict.fromkeys(self._queues)

    def adopts(self) -> bool:
        """Return whether there are queues in Redis that are new here. Add these queues.

        They are of other workers, which may have died.
        """
        if not isinstance(self._store, RedisQueues):
            return False
        for name in sorted(self._store.names() - self._queues.keys()):
            self._queue(name, "").heap.append(((0, -1), None))
            self.unopened[name] = None
        return bool(self.unopened)

    # Requests begin to wait.

    def push(self, name: str, request: Request) -> None:
        """Put *request* into a queue of *name*, a site or a host, and close the queues of *name*.

        A queue whose requests are refused stays open, and *request* will be refused, too. A queue
        that lets one request out stays open, too.
        """
        self.unopened.pop(name, None)
        queue = self._queue(name, "" if self._store.is_shared else self._engine.slot_key(request))
        for each in self._of(name):
            if self._open.get(each) is False and each.failure is None:
                del self._open[each]
        place = (-request.priority, next(self._numbers))
        is_filed = self._store.write(name, place, request)
        heappush(queue.heap, (place, None if is_filed else request))

    def _queue(self, name: str, slot: str) -> SiteQueue:
        return self._queues.setdefault(name, {}).setdefault(slot, SiteQueue(name, slot))

    def _of(self, name: str) -> list[SiteQueue]:
        return list(self._queues.get(name, {}).values())

    def _end(self, queue: SiteQueue) -> None:
        queues = self._queues.get(queue.name, {})
        if queues.pop(queue.slot, None) and not queues:
            del self._queues[queue.name]

    def waiting_in(self, name: str) -> int:
        """Return the number of requests that wait for *name*, a site or a host.

        Requests in queues that are open for all their requests do not count.
        """
        return sum(len(each.heap) for each in self._of(name) if self._open.get(each) is not False)

    def comes_out(self, name: str) -> bool:
        """Return whether requests that wait for *name* come out as soon as the downloader can."""
        return any(each in self._open and self._has_room(each) for each in self._of(name))

    # Requests come out.

    def release(self, state: SiteState, step: Settled, *, is_kept: bool) -> None:
        """Let the requests of a site out, which *step* decides. With Refuse they are refused.

        If *is_kept*, only requests come out that could not be written to the file in the JOBDIR,
        and none without a JOBDIR.
        """
        site, failure = str(state.site), step.failure if isinstance(step, Refuse) else None
        if failure is None:
            self._file.recovered(site)
        self.let_out(self._unwritten_of(site) if is_kept else site, failure)
        if self.is_open:
            self._engine.wake()

    def let_out(self, name: str, failure: FetchFailure | None = None) -> None:
        """Let the requests that wait for *name* come out. With *failure* they are refused."""
        self.unopened.pop(name, None)
        for queue in self._of(name):
            queue.failure = failure
            self._open[queue] = False

    def let_one_out(self, name: str) -> bool:
        """Let one request that waits for *name*, a host, come out before other queues.

        A request whose slot is full comes last. Returns whether a request waits.
        """
        queues = self._of(name)
        if queues:
            queue = min(queues, key=lambda each: (not self._is_free(each), each.heap[0][0]))
            self._open.setdefault(queue, True)
            self._open.move_to_end(queue, last=False)
        return bool(queues)

    def has_room(self, name: str) -> bool:
        """Return whether a request that waits for *name*, a host, could be sent at once."""
        return any(map(self._is_free, self._of(name)))

    def _is_free(self, queue: SiteQueue) -> bool:
        slot = self._engine.slots.get(queue.slot)
        is_full = slot is not None and len(slot.transferring) >= slot.concurrency
        return not is_full and self._has_room(queue)

    def _unwritten_of(self, name: str) -> str:
        """Move the requests of a queue that are not in the JOBDIR to a queue of their own.

        Returns the name of this queue. There is no such queue without such requests or a JOBDIR.
        """
        apart = f"{name} (not in the JOBDIR)"
        for queue in self._of(name):
            unwritten = [entry for entry in queue.heap if entry[1] is not None]
            if unwritten and self._store.lasts:
                own = self._queue(apart, queue.slot)
                own.heap = sorted(own.heap + unwritten)
                queue.heap = sorted(entry for entry in queue.heap if entry[1] is None)
            if not queue.heap:
                self._end(queue)
        return apart

    @property
    def has_next(self) -> bool:
        """Whether a request can come out, now or when the downloader has room."""
        return bool(self._open) and not self.redis_unavailable

    @property
    def redis_unavailable(self) -> bool:
        """Whether no request can come out, because Redis does not answer."""
        return self._store.is_silent

    def pop_fair(self) -> Request | None:
        """Return a request of an open queue that has less than its share of the places, or None.

        A queue without a request in the downloader comes first. As with Scrapy's default queue, the
        slots that are in use share the places: two slow sites would take all.
        """
        if (request := self.pop(1)) is not None or not self._open:
            return request
        slots = {self._engine.slot_key(request) for request in self._engine.under_way}
        return self.pop(math.ceil(self._places / max(1, len(slots))))

    def pop(self, most: int = sys.maxsize) -> Request | None:
        """Return the next request of an open queue, or None. The queues take turns.

        A queue is skipped while *most* of its requests are in the downloader, while these fill a
        slot, or while one of them waits for a DOWNLOAD_DELAY: other hosts need the places. Requests
        that are refused, and single requests (``let_one_out``), need no such room.
        """
        for _ in range(len(self._open)):
            queue, is_single = self._open.popitem(last=False)
            is_free = self._has_room(queue, most) or is_single or queue.failure is not None
            request = self._take(queue) if is_free else None
            if queue.heap and not is_single:
                self._open[queue] = False
            if request is not None:
                queue.sent.append(request)
                if queue.failure is not None:
                    self.given_up[request] = queue.failure
                return request
        return None

    def _has_room(self, queue: SiteQueue, most: int = sys.maxsize) -> bool:
        under_way = self._engine.under_way
        sent = queue.sent = [request for request in queue.sent if request in under_way]
        key = queue.slot or (self._engine.slot_key(sent[-1]) if sent else "")
        if (slot := self._engine.slots.get(key)) is None:
            return len(sent) < min(most, self._slot_size)
        in_slot = [request for request in sent if request in slot.active]
        is_delayed = any(request not in slot.transferring for request in in_slot)
        return len(sent) < most and len(in_slot) < slot.concurrency and not is_delayed

    def _take(self, queue: SiteQueue) -> Request | None:
        """Return the next request of *queue*, or None. Requests that cannot be loaded are skipped.

        If Redis does not answer, no request is taken.
        """
        while queue.heap and not self.redis_unavailable:
            place, request = queue.heap[0]
            if request is not None or not self._store.is_shared:
                heappop(queue.heap)
                request = request or self._store.take(queue.name, place)
            elif (request := self._store.take(queue.name, place)) is not None:
                # The last entry stands for the requests of other workers.
                if len(queue.heap) > 1:
                    heappop(queue.heap)
            elif not self.redis_unavailable:  # the queue in Redis is empty
                queue.heap = sorted(entry for entry in queue.heap if entry[1] is not None)
            if not queue.heap:
                self._end(queue)
                self._engine.wake()  # for the next queue, and the lock that was taken for this one
            if request is not None:
                return request
        return None

    # The end.

    def by_name(self) -> Counter[str]:
        """Return the number of waiting requests by site or host."""
        return Counter(
            {name: sum(len(each.heap) for each in self._of(name)) for name in self._queues}
        )

    def unwritten(self) -> list[Request]:
        """Return the requests that are neither in the JOBDIR nor in Redis."""
        heaps = [sorted(each.heap) for name in self._queues for each in self._of(name)]
        return [request for heap in heaps for _, request in heap if request is not None]

    def close(self) -> None:
        """Close the file, or the connections to Redis."""
        self._queues.clear()  # so that a late answer lets no requests out
        self._store.close()
