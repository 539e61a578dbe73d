"""The journal of a fleet: what is parked in a worker of scrapy-redis outlives its process."""

from __future__ import annotations

from functools import partial
from itertools import islice, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy_koster.crawl.clock import LONG_AGO, NEVER
from scrapy_koster.crawl.parking.workers import Held, Workers, push_of
from scrapy_koster.protocol.printable import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scrapy import Request
    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.crawl.clock import Clock, Instant, Ticks
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.parking.file import Place

T = TypeVar("T")

LEASE_SECS = 30.0
TICK_SECS = 0.25
# What comes out sooner is not written: each request to a new site is parked for a moment.
YOUNG_SECS = 0.5
YOUNG_MOST = 10_000
_AT_ONCE = 500
# A Redis that fails is left alone for so long, each time for twice as long as before.
_REST_SECS, _REST_MOST_SECS = 1.0, 10.0
# One that has answered so recently is taken to answer still.
_ANSWERED_SECS = 0.1
# Redis keeps scores as floats: integers are exact up to here.
_SCORE = 2**53


class Journal:
    """Writes what is parked in this worker for longer than a moment to the Redis of the queue.

    Each worker has a lease that it renews. Once that has run out another moves
    what was parked into the queue, and leaves word of it: a worker that was only
    stopped finds that when it goes on, and drops what is not its own any more.

    A Redis that fails is left alone for a while, and said once; parking goes on in memory.
    Meanwhile another worker may take over what was written, so that it is held back until Redis
    says whose it is.
    """

    def __init__(
        self, log: Log, engine: Engine, clock: Clock, queue: Any, push: str, *, hold_secs: float
    ) -> None:
        """*queue* is that of scrapy-redis, *push* the command by which it pushes.

        A Redis that fails is waited for no longer than *hold_secs*.
        """
        self._log = log
        self._engine = engine
        self._clock = clock
        self._hold_secs = hold_secs
        self._encode = queue._encode_request  # noqa: SLF001  # as it pushes
        self._workers = Workers(queue, push)
        self._young: dict[Place, tuple[Instant, Request]] = {}
        """What was parked a moment ago, and when: the oldest first."""
        self._due: dict[Place, Request] = {}
        """What is to be written."""
        self._doubtful: set[Place] = set()
        """What of these may be written all the same: there was no answer."""
        self._removed: set[str] = set()
        """What could not be removed when it came out."""
        self._waits = self._parks = True
        self._held = Held.PARKS
        """What the others were told last."""
        self._look_at = LONG_AGO
        self._answered_at = LONG_AGO
        self._silent_since: Instant | None = None
        self._rests_until = LONG_AGO
        """Until then Redis is left alone: it did not answer."""
        self._refused_until = LONG_AGO
        """Until then nothing is written: it has answered that it does not take it."""
        self._rest_secs = _REST_SECS
        self._holds_since: Instant | None = None
        self._holds_until = LONG_AGO
        self.is_holding = False
        """Whether nothing may come out at this moment: see ``taken``."""
        self._warned = False
        self._told = False
        self._ticking: Ticks | None = None
        self._writing: CallLaterResult | None = None

    is_on = True

    def open(self, *, anew: bool) -> None:
        """Begin: take over what was left behind, or drop it if the crawl begins *anew*."""
        if anew:
            self._try(self._workers.forget_others, writes=True)
        self._tick()
        self._ticking = self._clock.every(TICK_SECS, self._tick)

    def is_silent(self) -> bool:
        """Whether Redis does not answer, so that whoever calls it waits for long.

        It is asked unless it has just answered. After *hold_secs* of silence the answer is False.
        """
        now = self._clock.now()
        if now >= self._rests_until and now - self._answered_at >= _ANSWERED_SECS:
            self._try(self._workers.ping)
        since = self._silent_since
        return since is not None and now - since < self._hold_secs

    def parked(self, place: Place, request: Request, *, for_long: bool = False) -> None:
        """Note that *request* waits at *place*, *for_long* if its site is known to fail."""
        self._waits = self._parks = True
        if for_long:
            self._due[place] = request
            if self._writing is None:  # together with what is parked in the same go
                self._writing = self._clock.call_later(0.0, self._write_soon)
        else:
            self._young[place] = (self._clock.now(), request)
        if self._held is not Held.PARKS:  # else they could end before it is written
            self._try(self._renew, writes=True)
        if len(self._young) + len(self._due) > YOUNG_MOST and not self._write():
            self._young.clear()  # they wait in memory alone
            self._due.clear()
            self._doubtful.clear()

    def taken(self, place: Place) -> bool | None:
        """Note that the request at *place* comes out; False if another worker has taken it over.

        None if Redis does not say: then it must not come out yet.
        """
        self._waits = True
        if place not in self._doubtful:
            young, due = self._young.pop(place, None), self._due.pop(place, None)
            if young is not None or due is not None:
                return True
        field = _field(place)
        is_anothers = self._try(lambda: self._workers.remove(field))
        if is_anothers is None and self._holds():
            return None
        self._young.pop(place, None)
        self._due.pop(place, None)
        self._doubtful.discard(place)
        if is_anothers is None:
            self._removed.add(field)
            return True
        self._holds_since = None
        if is_anothers:
            self._tell_lost()
        return not is_anothers

    def others_wait(self) -> bool:
        """Whether requests wait in another worker; to be asked when this one is done waiting.

        Those who are done as well are not waited for: what they have parked goes
        back into the queue when they end. While Redis is silent they may.
        """
        self._waits = False
        if self._try(self._renew, writes=True) is None:
            return self.is_silent()
        return bool(self._try(self._look, writes=True))

    def close(self, parked: Iterable[tuple[Place, Request]], *, keep: bool) -> int | None:
        """Move what is *parked* still into the queue, or drop it.

        Return how many requests could not be written, and are lost; None if Redis fails, so that
        all are lost that are not in it.
        """
        if self._ticking is not None:
            self._ticking.stop()
        if self._writing is not None:
            self._writing.cancel()
        self._rests_until = self._refused_until = LONG_AGO
        try:
            if not keep:
                return None if self._try(self._workers.forget) is None else 0
            return self._hand_back(parked)
        finally:
            self._workers.close()

    def _hand_back(self, parked: Iterable[tuple[Place, Request]]) -> int | None:
        # Nobody takes over what is written as long as the lease is held. It is looked up what
        # that is: a Redis may have lost it.
        if self._try(self._renew, writes=True) is None:
            return None
        known = self._try(self._workers.known)
        if known is None:
            return None
        lost = 0
        missing = ((place, each) for place, each in parked if _field(place) not in known)
        while chunk := dict(islice(missing, _AT_ONCE)):
            written = self._try(partial(self._renew, chunk), writes=True)
            if written is None:
                return None
            lost += len(chunk) - written
        return lost if self._try(self._workers.hand_back, writes=True) else None

    # From time to time.

    def _tick(self) -> None:
        was_silent = self._silent_since is not None
        self._write(self._clock.now() + -YOUNG_SECS)
        if was_silent or self._clock.now() >= self._look_at:
            self._look_at = self._clock.now() + LEASE_SECS / 3
            if self._try(self._renew, writes=True) is not None:
                self._try(self._look, writes=True)
        ends = self.is_holding and self._clock.now() >= self._holds_until
        if ends:
            self.is_holding = False
        if ends or (was_silent and self._silent_since is None):
            self._engine.wake()

    def _write_soon(self) -> None:
        self._writing = None
        self._write(LONG_AGO)

    def _write(self, since: Instant = NEVER) -> bool:
        """Write what is due, and what has waited *since* then; return whether that was possible."""
        for place, _ in list(takewhile(lambda young: young[1][0] <= since, self._young.items())):
            self._due[place] = self._young.pop(place)[1]
        while chunk := dict(islice(self._due.items(), _AT_ONCE)):
            if self._rests(writes=True):
                return False
            if self._try(partial(self._renew, chunk), writes=True) is None:
                self._doubtful.update(chunk)
                return False
            self._doubtful.difference_update(chunk)
            for place in chunk:
                del self._due[place]
        return True

    def _renew(self, chunk: Mapping[Place, Request] = MappingProxyType({})) -> int:
        """Hold the lease, and write a chunk; return how many requests of it can be written."""
        written = {_field(place): self._encoded(request) for place, request in chunk.items()}
        parked = {field: data for field, data in written.items() if data is not None}
        held = Held.DONE
        if self._waits:
            held = Held.PARKS if self._parks or self._young or self._due else Held.WAITS
        self._workers.renew(LEASE_SECS, held, parked=parked, removed=self._removed)
        self._held, self._parks = held, False
        self._removed.clear()
        return len(parked)

    def _encoded(self, request: Request) -> Any:
        try:
            return self._encode(request)
        except Exception as error:  # noqa: BLE001  # what a request carries may be anybody's
            self._warn(error_text(error))
            return None

    def _look(self) -> int:
        moved, waiting = self._workers.look()
        if moved:
            self._log.info(
                "Requests that waited in a worker that has died, and are back in the queue:"
                " %(count)d",
                count=moved,
            )
            self._engine.wake()
        return moved + waiting

    def _tell_lost(self) -> None:
        if not self._told:
            self._told = True
            self._log.info(
                "This worker could not reach Redis for %(secs)g s or longer. Other workers have"
                " taken over its waiting requests, so they are dropped here",
                secs=LEASE_SECS,
            )

    # A Redis that fails.

    def _holds(self) -> bool:
        """Hold back what is written, for a moment; False if that has lasted for long enough."""
        now = self._clock.now()
        if self._holds_since is None:
            self._holds_since = now
        if now - self._holds_since >= self._hold_secs:
            return False
        self._holds_until = max(self._rests_until, now + TICK_SECS)
        self.is_holding = True
        return True

    def _rests(self, *, writes: bool) -> bool:
        now = self._clock.now()
        return now < self._rests_until or (writes and now < self._refused_until)

    def _try(self, call: Callable[[], T], *, writes: bool = False) -> T | None:
        """Return what *call* returns, None if Redis fails or has just failed."""
        if self._rests(writes=writes):
            return None
        began = self._clock.now()
        try:
            result = call()
        except Exception as error:  # noqa: BLE001  # a client may be anybody's class
            self._failed(error, began)
            return None
        if writes or self._silent_since is not None:
            self._rest_secs = _REST_SECS
        self._silent_since, self._answered_at = None, began
        return result

    def _failed(self, error: Exception, began: Instant) -> None:
        until = self._clock.now() + self._rest_secs
        self._rest_secs = min(2 * self._rest_secs, _REST_MOST_SECS)
        if any(kind.__name__ == "ResponseError" for kind in type(error).__mro__):
            self._refused_until = until
        else:
            self._rests_until = until
            self._silent_since = began if self._silent_since is None else self._silent_since
        # Not its text: a server may quote what it was sent, such as the password.
        self._warn(type(error).__name__)

    def _warn(self, error: str) -> None:
        if not self._warned:
            self._warned = True
            self._log.warning(
                "Waiting requests cannot be written to the Redis of scrapy-redis (%(error)s). They"
                " are kept in memory, and lost if this process is killed. The write is retried:"
                " check the Redis server",
                error=error,
            )


class NoJournal:
    """Writes nothing: the queue is not of scrapy-redis, and not shared."""

    is_on = False

    def open(self, *, anew: bool) -> None:
        """Do nothing."""

    def is_silent(self) -> bool:
        """Return False."""
        return False

    is_holding = False

    def parked(self, place: Place, request: Request, *, for_long: bool = False) -> None:
        """Do nothing."""

    def taken(self, place: Place) -> bool:  # noqa: ARG002
        """Return True: no other worker could have it."""
        return True

    def others_wait(self) -> bool:
        """Return False."""
        return False

    def close(self, parked: Iterable[tuple[Place, Request]], *, keep: bool) -> int:  # noqa: ARG002
        """Return 0: there is nothing to move."""
        return 0


def journal_of(
    scheduler: Any, log: Log, engine: Engine, clock: Clock, *, hold_secs: float
) -> Journal | NoJournal:
    """Return the journal beside the queue of *scheduler*, which is scrapy-redis's or another."""
    queue = getattr(scheduler, "queue", None)
    push = push_of(queue)
    if push is None:
        return NoJournal()
    return Journal(log, engine, clock, queue, push, hold_secs=hold_secs)


def _field(place: Place) -> str:
    """Return what a request is called in Redis: the score that its queue gives it, its number."""
    score, number = place
    return f"{max(-_SCORE, min(_SCORE, score))} {number}"
