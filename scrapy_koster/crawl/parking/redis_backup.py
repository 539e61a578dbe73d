"""A copy of each parked request in the Redis of scrapy-redis, in case this worker is killed."""

from __future__ import annotations

from functools import partial
from itertools import islice, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.parking.worker_leases import WorkerLeases, push_of
from scrapy_koster.protocol.printable import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.clock import Clock, Instant, Ticks
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.parking.parked_file import Place

T = TypeVar("T")

LEASE_SECS = 30.0
TICK_SECS = 0.25
# Each request to a new site is parked for a moment. One that comes out sooner is not written.
YOUNG_SECS = 0.5
_AT_ONCE = 500
# The time without calls after one that was not answered. A call holds the loop for a second.
REST_SECS = 5.0
# Redis keeps scores as floats: integers are exact up to here.
_SCORE = 2**53


class RedisBackup:
    """Writes requests that are parked for longer than a moment to the Redis of the queue.

    Each worker has a lease that it renews. When the lease has expired, another worker moves the
    parked requests into the queue, and leaves word of it: a worker that was only suspended finds
    it, and drops these requests.

    While Redis does not answer, another worker may take over requests. So none of them comes out
    until it answers, and Redis is only called from time to time.
    """

    def __init__(self, log: Log, engine: Engine, clock: Clock, queue: Any, push: str) -> None:
        """*queue* is that of scrapy-redis, *push* its command."""
        self._log = log
        self._engine = engine
        self._clock = clock
        self._encode = queue._encode_request  # noqa: SLF001  # as it pushes
        self._leases = WorkerLeases(queue, push)
        self._unwritten: dict[Place, tuple[Instant, Request]] = {}
        """The requests of which Redis has no copy, and when they were parked: oldest first."""
        self._waits = True
        """Whether requests may wait in this worker, so that others wait for it."""
        self._look_at = LONG_AGO
        self._rests_until = LONG_AGO
        self.is_holding = False
        """Whether no request may come out: Redis does not answer."""
        self._has_warned = self._has_told = False
        self._ticking: Ticks | None = None

    def open(self, *, anew: bool) -> None:
        """Take over what other workers have left, or drop it if the crawl begins *anew*."""
        if anew:
            self._try(self._leases.forget_others)
        self._tick()
        self._ticking = self._clock.every(TICK_SECS, self._tick)

    def add(self, place: Place, request: Request) -> None:
        """Write *request*, which waits at *place*, if it still does after a moment."""
        self._waits = True
        self._unwritten[place] = (self._clock.now(), request)

    def remove(self, place: Place) -> bool | None:
        """Note that the request at *place* comes out. Return False if another worker has taken it
        over, and None if Redis does not answer: then it must not come out yet.
        """
        self._waits = True
        parked_at, _ = self._unwritten.get(place, (LONG_AGO, None))
        # An older one may have been written although no answer came.
        is_written = parked_at <= self._clock.now() - YOUNG_SECS
        is_taken = self._try(partial(self._leases.remove, _field(place))) if is_written else False
        if is_taken is None:
            return None
        self._unwritten.pop(place, None)
        if is_taken and not self._has_told:
            self._has_told = True
            self._log.info(
                "This worker could not reach Redis for %(secs)g s or longer. Other workers have"
                " taken over its waiting requests, so they are dropped here",
                secs=LEASE_SECS,
            )
        return not is_taken

    def others_wait(self) -> bool:
        """Return whether requests wait in other workers. This worker has nothing left to do.

        Workers that are done as well do not count: their parked requests go back into the queue
        when they end. While Redis is silent requests may wait.
        """
        self._waits = False
        if self._try(self._renew) is None:
            return self.is_holding
        return bool(self._try(self._look))

    def close(self, parked: Iterable[tuple[Place, Request]], *, keep: bool) -> int | None:
        """Move the requests that are still *parked* into the queue, or drop them.

        Return how many requests could not be written, and are lost; None if Redis fails, so that
        all requests are lost that it does not have.
        """
        if self._ticking is not None:
            self._ticking.stop()
        self._rests_until = LONG_AGO
        try:
            return self._try(partial(self._hand_back, parked) if keep else self._leases.forget)
        finally:
            self._leases.close()

    def _hand_back(self, parked: Iterable[tuple[Place, Request]]) -> int:
        self._renew()  # while the lease is held no other worker takes them
        taken, lost = self._leases.taken(), 0
        # All of them: Redis may have lost some.
        own = ((place, request) for place, request in parked if _field(place) not in taken)
        while chunk := dict(islice(own, _AT_ONCE)):
            lost += len(chunk) - self._renew(chunk)
        self._leases.hand_back()
        return lost

    # From time to time.

    def _tick(self) -> None:
        now = self._clock.now()
        old = takewhile(lambda item: item[1][0] <= now - YOUNG_SECS, self._unwritten.items())
        due = iter([(place, request) for place, (_, request) in old])
        while True:  # once at least: a Redis that does not answer is noticed soon
            chunk = dict(islice(due, _AT_ONCE))
            if self._try(partial(self._renew, chunk)) is None:
                return
            for place in chunk:
                del self._unwritten[place]
            if len(chunk) < _AT_ONCE:
                break
        if now >= self._look_at:
            self._look_at = now + LEASE_SECS / 3
            self._try(self._look)

    def _renew(self, chunk: Mapping[Place, Request] = MappingProxyType({})) -> int:
        """Renew the lease, and write *chunk*; return how many of its requests can be written."""
        written = {_field(place): self._encoded(request) for place, request in chunk.items()}
        parked = {field: data for field, data in written.items() if data is not None}
        self._leases.renew(LEASE_SECS, "waits" if self._waits else "done", parked)
        return len(parked)

    def _encoded(self, request: Request) -> Any:
        try:
            return self._encode(request)
        except Exception as error:  # noqa: BLE001  # a request may carry objects of any class
            self._warn(error_text(error))
            return None

    def _look(self) -> int:
        moved, waiting = self._leases.look()
        if moved:
            self._log.info(
                "Requests that waited in a worker that has died, and are back in the queue:"
                " %(count)d",
                count=moved,
            )
            self._engine.wake()
        return moved + waiting

    # A Redis that fails.

    def _try(self, call: Callable[[], T]) -> T | None:
        """Return the result of *call*, or None if Redis fails or has just failed."""
        now = self._clock.now()
        if now < self._rests_until:
            return None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001  # the client may be of any class
            # A server that refuses a call does answer. It lets no worker take over requests,
            # either.
            if not any(kind.__name__ == "ResponseError" for kind in type(error).__mro__):
                self._rests_until, self.is_holding = self._clock.now() + REST_SECS, True
            # Without its text: a server may quote the password.
            self._warn(type(error).__name__)
            return None
        if self.is_holding:
            self.is_holding = False
            self._engine.wake()
        return result

    def _warn(self, error: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._log.warning(
                "Waiting requests cannot be written to the Redis of scrapy-redis (%(error)s). They"
                " are kept in memory, and lost if this process is killed. The write is retried:"
                " check the Redis server",
                error=error,
            )


def backup_of(crawler: Crawler, scheduler: Any, engine: Engine, clock: Clock) -> RedisBackup | None:
    """Return the backup for a *scheduler* of scrapy-redis, None for any other."""
    queue = getattr(scheduler, "queue", None)
    push = push_of(queue)
    if push is None:
        return None
    return RedisBackup(Log(__name__, crawler), engine, clock, queue, push)


def _field(place: Place) -> str:
    """Return the field of a request in Redis: the score that its queue gives it, and its number."""
    score, number = place
    return f"{max(-_SCORE, min(_SCORE, score))} {number}"
