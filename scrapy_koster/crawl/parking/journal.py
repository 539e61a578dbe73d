"""The journal of a fleet: what is parked in a worker of scrapy-redis outlives its process."""

from __future__ import annotations

from functools import partial
from itertools import islice, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.crawl.parking.workers import Held, Workers, push_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock, Instant, Ticks
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.parking.file import Place

T = TypeVar("T")

LEASE_SECS = 30.0
TICK_SECS = 1.0
# What comes out sooner is not written: each request to a new site is parked for a moment.
YOUNG_SECS = 2.0
YOUNG_MOST = 10_000
_AT_ONCE = 500
# Redis keeps scores as floats: integers are exact up to here.
_SCORE = 2**53


class Journal:
    """Writes what is parked in this worker for longer than a moment to the Redis of the queue.

    Each worker has a lease that it renews. Once that has run out another moves
    what was parked into the queue, and leaves word of it: a worker that was only
    stopped finds that when it goes on, and drops what is not its own any more.

    A Redis that fails is left alone for a while, and said once; parking goes on in memory.
    """

    def __init__(self, log: Log, engine: Engine, clock: Clock, queue: Any, push: str) -> None:
        """*queue* is that of scrapy-redis, *push* the command by which it pushes."""
        self._log = log
        self._engine = engine
        self._clock = clock
        self._encode = queue._encode_request  # noqa: SLF001  # as it pushes
        self._workers = Workers(queue, push)
        self._young: dict[Place, tuple[Instant, Request]] = {}
        """What is parked and not written yet, and since when: the oldest first."""
        self._doubtful: set[Place] = set()
        """What of these may be written all the same: there was no answer."""
        self._removed: set[str] = set()
        """What could not be removed when it came out."""
        self._waits = self._parks = True
        self._held = Held.PARKS
        """What the others were told last."""
        self._look_at = LONG_AGO
        self._rests_until = LONG_AGO
        self._warned = False
        self._told = False
        self._ticking: Ticks | None = None

    is_on = True

    def open(self, *, anew: bool) -> None:
        """Begin: take over what was left behind, or drop it if the crawl begins *anew*."""
        if anew:
            self._try(self._workers.forget_others)
        self._tick()
        self._ticking = self._clock.every(TICK_SECS, self._tick)

    def parked(self, place: Place, request: Request) -> None:
        """Note that *request* waits at *place*."""
        self._waits = self._parks = True
        self._young[place] = (self._clock.now(), request)
        if self._held is not Held.PARKS:  # else they could end before it is written
            self._try(self._renew)
        if len(self._young) > YOUNG_MOST and not self._write():
            self._young.clear()  # they wait in memory alone
            self._doubtful.clear()

    def taken(self, place: Place) -> bool:
        """Note that the request at *place* came out; False if another worker has taken it over."""
        self._waits = True
        if self._young.pop(place, None) is not None and place not in self._doubtful:
            return True
        self._doubtful.discard(place)
        field = _field(place)
        is_anothers = self._try(lambda: self._workers.remove(field))
        if is_anothers is None:
            self._removed.add(field)
        elif is_anothers:
            self._tell_lost()
        return not is_anothers

    def others_wait(self) -> bool:
        """Whether requests wait in another worker; to be asked when this one is done waiting.

        Those who are done as well are not waited for: what they have parked goes
        back into the queue when they end.
        """
        self._waits = False
        return bool(self._try(self._renew) and self._try(self._look))

    def close(self, *, keep: bool) -> bool:
        """Move what is parked into the queue, or drop it. Return whether that was possible."""
        if self._ticking is not None:
            self._ticking.stop()
        self._rests_until = LONG_AGO
        if not keep:
            return self._try(self._workers.forget) is not None
        written = self._write() and self._try(self._renew)
        return bool(written and self._try(self._workers.hand_back))

    # From time to time.

    def _tick(self) -> None:
        self._write(YOUNG_SECS)
        if self._clock.now() >= self._look_at:
            self._look_at = self._clock.now() + LEASE_SECS / 3
            if self._try(self._renew):
                self._try(self._look)

    def _write(self, older_than: float = 0.0) -> bool:
        """Write what has waited for so many seconds; return whether that was possible."""
        limit = self._clock.now() + -older_than
        while chunk := self._parked_before(limit):
            if not self._try(partial(self._renew, chunk)):
                self._doubtful.update(chunk)
                return False
            self._doubtful.difference_update(chunk)
            for place in chunk:
                del self._young[place]
        return True

    def _parked_before(self, limit: Instant) -> dict[Place, Request]:
        old = takewhile(lambda young: young[1][0] <= limit, self._young.items())
        return {place: request for place, (_, request) in islice(old, _AT_ONCE)}

    def _renew(self, chunk: Mapping[Place, Request] = MappingProxyType({})) -> bool:
        written = {_field(place): self._encoded(request) for place, request in chunk.items()}
        parked = {field: data for field, data in written.items() if data is not None}
        held = Held.DONE
        if self._waits:
            held = Held.PARKS if self._parks or self._young else Held.WAITS
        self._workers.renew(LEASE_SECS, held, parked=parked, removed=self._removed)
        self._held, self._parks = held, False
        self._removed.clear()
        return True

    def _encoded(self, request: Request) -> Any:
        try:
            return self._encode(request)
        except Exception as error:  # noqa: BLE001  # what a request carries may be anybody's
            self._warn(error)
            return None

    def _look(self) -> int:
        moved, waiting = self._workers.look()
        if moved:
            self._log.info(
                "Requests that waited for their site in a worker that has died, and are in the"
                " queue again: %(count)d",
                count=moved,
            )
            self._engine.wake()
        return moved + waiting

    def _tell_lost(self) -> None:
        if not self._told:
            self._told = True
            self._log.info(
                "Other workers have taken over requests that waited in this one, which was stopped"
                " for %(secs)g s or longer. They are dropped here",
                secs=LEASE_SECS,
            )

    # A Redis that fails.

    def _try(self, call: Callable[[], T]) -> T | None:
        """Return what *call* returns, None if Redis fails or has just failed."""
        if self._clock.now() < self._rests_until:
            return None
        try:
            return call()
        except Exception as error:  # noqa: BLE001  # a client may be anybody's class
            self._rests_until = self._clock.now() + LEASE_SECS / 3
            self._warn(error)
            return None

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            self._log.warning(
                "Requests that wait for their site cannot be written to the Redis of scrapy-redis"
                " (%(error)s). They wait in memory, and are lost if this process is killed. It is"
                " tried again",
                error=error,
            )


class NoJournal:
    """Writes nothing: the queue is not of scrapy-redis, and not shared."""

    is_on = False

    def open(self, *, anew: bool) -> None:
        """Do nothing."""

    def parked(self, place: Place, request: Request) -> None:
        """Do nothing."""

    def taken(self, place: Place) -> bool:  # noqa: ARG002
        """Return True: no other worker could have it."""
        return True

    def others_wait(self) -> bool:
        """Return False."""
        return False

    def close(self, *, keep: bool) -> bool:  # noqa: ARG002
        """Return True: there is nothing to move."""
        return True


def journal_of(scheduler: Any, log: Log, engine: Engine, clock: Clock) -> Journal | NoJournal:
    """Return the journal beside the queue of *scheduler*, which is scrapy-redis's or another."""
    queue = getattr(scheduler, "queue", None)
    push = push_of(queue)
    return NoJournal() if push is None else Journal(log, engine, clock, queue, push)


def _field(place: Place) -> str:
    """Return what a request is called in Redis: the score that its queue gives it, its number."""
    score, number = place
    return f"{max(-_SCORE, min(_SCORE, score))} {number}"
