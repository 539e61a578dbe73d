"""A copy of each parked request in the Redis of scrapy-redis, in case this worker is killed."""

from __future__ import annotations

from functools import partial
from itertools import islice, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy_koster.crawl.clock import LONG_AGO, NEVER
from scrapy_koster.crawl.messages.log import ServerLog
from scrapy_koster.crawl.parking.worker_leases import WorkerLeases, push_of, server_of
from scrapy_koster.protocol.printable import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.clock import Clock, Instant, Ticks
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.parking.parked_file import Place

T = TypeVar("T")

LEASE_SECS = 30.0
TICK_SECS = 0.25
# Each request to a new site is parked for a moment. One that comes out sooner is not written.
YOUNG_SECS = 0.5
UNWRITTEN_MOST = 10_000
_AT_ONCE = 500
# The time without calls after a call that failed. It doubles with each failure.
_REST_SECS, _REST_MOST_SECS = 1.0, 10.0
# A PING is not needed so soon after an answer.
_ANSWERED_SECS = 0.1
# Redis keeps scores as floats: integers are exact up to here.
_SCORE = 2**53


class RedisBackup:
    """Writes requests that are parked for longer than a moment to the Redis of the queue.

    Each worker has a lease that it renews. When the lease has expired, another worker moves the
    parked requests into the queue, and leaves word of it: a worker that was only suspended finds
    it, and drops these requests.

    If a call fails, Redis is not called for a while, and one warning is logged. Requests still wait
    in memory. Meanwhile another worker may take over those that were written, so they are held
    until Redis answers.
    """

    def __init__(
        self, log: Log, engine: Engine, clock: Clock, queue: Any, push: str, *, hold_secs: float
    ) -> None:
        """*queue* is that of scrapy-redis, *push* its command. Requests are held for *hold_secs*
        at most.
        """
        self._log = log
        self._engine = engine
        self._clock = clock
        self._hold_secs = hold_secs
        self._encode = queue._encode_request  # noqa: SLF001  # as it pushes
        self._leases = WorkerLeases(queue, push)
        self._young: dict[Place, tuple[Instant, Request]] = {}
        """The requests that were parked a moment ago, and when: the oldest first."""
        self._due: dict[Place, Request] = {}
        """The requests that are to be written, or were without an answer of Redis."""
        self._removed: set[str] = set()
        """The fields that could not be removed when their requests came out."""
        self._waits = True
        """Whether requests may wait in this worker, so that others wait for it."""
        self._look_at = LONG_AGO
        self._answered_at = LONG_AGO
        self._silent_since: Instant | None = None
        self.is_holding = False
        """Whether no request may come out: Redis is silent, for less than *hold_secs*."""
        self._rests_until = LONG_AGO
        """No writes until then, and no calls at all if Redis did not answer."""
        self._rest_secs = _REST_SECS
        self._has_warned = self._has_told = False
        self._ticking: Ticks | None = None

    def open(self, *, anew: bool) -> None:
        """Take over what other workers have left, or drop it if the crawl begins *anew*."""
        if anew:
            self._try(self._leases.forget_others, writes=True)
        self._tick()
        self._ticking = self._clock.every(TICK_SECS, self._tick)

    def is_silent(self) -> bool:
        """Return whether Redis does not answer, so that a call of scrapy-redis would block.

        After *hold_secs* of silence the answer is False.
        """
        now = self._clock.now()
        if now >= self._rests_until and now - self._answered_at >= _ANSWERED_SECS:
            self._try(self._leases.ping)
        self._look_at_hold()
        return self.is_holding

    def add(self, place: Place, request: Request) -> None:
        """Write *request*, which waits at *place*, if it still does after a moment."""
        self._waits = True
        self._young[place] = (self._clock.now(), request)
        if len(self._young) + len(self._due) > UNWRITTEN_MOST and not self._write():
            self._young.clear()  # they wait in memory only
            self._due.clear()

    def remove(self, place: Place) -> bool | None:
        """Note that the request at *place* comes out. Return False if another worker has taken it
        over, and None if Redis does not answer: then it must not come out yet.
        """
        self._waits = True
        if self._young.pop(place, None) is not None:
            return True
        field = _field(place)
        is_taken = self._try(lambda: self._leases.remove(field))
        if is_taken is None and self.is_holding:
            return None
        self._due.pop(place, None)
        if is_taken is None:
            self._removed.add(field)
            return True
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
        if self._try(self._renew, writes=True) is None:
            return self.is_silent()
        return bool(self._try(self._look, writes=True))

    def close(self, parked: Iterable[tuple[Place, Request]], *, keep: bool) -> int | None:
        """Move the requests that are still *parked* into the queue, or drop them.

        Return how many requests could not be written, and are lost; None if Redis fails, so that
        all requests are lost that it does not have.
        """
        if self._ticking is not None:
            self._ticking.stop()
        self._rests_until = LONG_AGO
        try:
            if not keep:
                return None if self._try(self._leases.forget) is None else 0
            return self._hand_back(parked)
        finally:
            self._leases.close()

    def _hand_back(self, parked: Iterable[tuple[Place, Request]]) -> int | None:
        # While the lease is held no other worker takes them. Redis may have lost some.
        if self._try(self._renew, writes=True) is None:
            return None
        known = self._try(self._leases.known)
        if known is None:
            return None
        lost = 0
        missing = ((place, each) for place, each in parked if _field(place) not in known)
        while chunk := dict(islice(missing, _AT_ONCE)):
            written = self._try(partial(self._renew, chunk), writes=True)
            if written is None:
                return None
            lost += len(chunk) - written
        return lost if self._try(self._leases.hand_back, writes=True) else None

    # From time to time.

    def _tick(self) -> None:
        was_silent = self._silent_since is not None
        self._write(self._clock.now() - YOUNG_SECS)
        if was_silent or self._clock.now() >= self._look_at:
            self._look_at = self._clock.now() + LEASE_SECS / 3
            if self._try(self._renew, writes=True) is not None:
                self._try(self._look, writes=True)
        self._look_at_hold()

    def _write(self, since: Instant = NEVER) -> bool:
        """Write the requests that are due, or wait *since* then; return whether that succeeds."""
        for place, _ in list(takewhile(lambda young: young[1][0] <= since, self._young.items())):
            self._due[place] = self._young.pop(place)[1]
        while chunk := dict(islice(self._due.items(), _AT_ONCE)):
            if self._try(partial(self._renew, chunk), writes=True) is None:
                return False
            for place in chunk:
                del self._due[place]
        return True

    def _renew(self, chunk: Mapping[Place, Request] = MappingProxyType({})) -> int:
        """Renew the lease, and write *chunk*; return how many of its requests can be written."""
        written = {_field(place): self._encoded(request) for place, request in chunk.items()}
        parked = {field: data for field, data in written.items() if data is not None}
        lease = "waits" if self._waits else "done"
        self._leases.renew(LEASE_SECS, lease, parked=parked, removed=self._removed)
        self._removed.clear()
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

    def _try(self, call: Callable[[], T], *, writes: bool = False) -> T | None:
        """Return the result of *call*, or None if Redis fails or has just failed."""
        began = self._clock.now()
        if began < self._rests_until and (writes or self._silent_since is not None):
            return None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001  # the client may be of any class
            self._failed(error, began)
            return None
        if writes or self._silent_since is not None:
            self._rest_secs = _REST_SECS
        self._silent_since, self._answered_at = None, began
        self._look_at_hold()
        return result

    def _look_at_hold(self) -> None:
        """Let requests come out again if Redis has answered, or was silent for *hold_secs*."""
        since = self._silent_since
        if self.is_holding and (since is None or self._clock.now() - since >= self._hold_secs):
            self.is_holding = False
            self._engine.wake()

    def _failed(self, error: Exception, began: Instant) -> None:
        self._rests_until = self._clock.now() + self._rest_secs
        self._rest_secs = min(2 * self._rest_secs, _REST_MOST_SECS)
        # A server that refuses a call does answer. It lets no worker take over requests, either.
        is_refused = any(kind.__name__ == "ResponseError" for kind in type(error).__mro__)
        if not is_refused and self._silent_since is None:
            self._silent_since, self.is_holding = began, True
        # Without its text: a server may quote the password.
        self._warn(type(error).__name__)

    def _warn(self, error: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._log.warning(
                "Waiting requests cannot be written to the Redis of scrapy-redis (%(error)s). They"
                " are kept in memory, and lost if this process is killed. The write is retried:"
                " check the Redis server",
                error=error,
            )


def backup_of(
    crawler: Crawler, scheduler: Any, engine: Engine, clock: Clock, *, hold_secs: float
) -> RedisBackup | None:
    """Return the backup for a *scheduler* of scrapy-redis, None for any other."""
    queue = getattr(scheduler, "queue", None)
    push = push_of(queue)
    if push is None:
        return None
    log = ServerLog(__name__, crawler, server_of(queue))
    return RedisBackup(log, engine, clock, queue, push, hold_secs=hold_secs)


def _field(place: Place) -> str:
    """Return the field of a request in Redis: the score that its queue gives it, and its number."""
    score, number = place
    return f"{max(-_SCORE, min(_SCORE, score))} {number}"
