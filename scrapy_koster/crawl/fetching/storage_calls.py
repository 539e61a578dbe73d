"""The calls of the storage, which can be anybody's: whatever it does, the crawl goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from concurrent import futures
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, cast

from twisted.python.failure import Failure

from scrapy_koster.crawl.clock import LONG_AGO, NEVER
from scrapy_koster.crawl.engine.private import CANCELLED
from scrapy_koster.crawl.engine.tasks import Told
from scrapy_koster.crawl.fetching.threads import Threads
from scrapy_koster.protocol.verdict import Source
from scrapy_koster.storage.latest import judged, seconds, sound
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.port import GRANTED, Claimed, Claiming, Pacing, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from scrapy_koster.crawl.clock import Clock, Deadline, Instant
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.fetching.threads import Begun
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.protocol.access import Known
    from scrapy_koster.protocol.site import Site
    from scrapy_koster.storage.port import Storage

_CALL_SECS = 5.0
"""How long a call of a storage with threads may take, if KOSTER_TIMEOUT_SECS is not less."""
# After a failure the storage is not called for so long, each time for twice as long as before: one
# that is locked would cost each site its time-out.
_REST_SECS, _REST_MOST_SECS = 1.0, 30.0
_THREADS = 8
_TOGETHER = 64
# While so many threads hang, no further ones are started.
_HANGS = 2
_NEEDED = ("get", "put", "close")
# Raised by a storage, these would be taken for the end of the crawl or of a loop.
_MISTAKEN = (*CANCELLED, futures.CancelledError, StopIteration, SystemExit)
_FAILED = object()


class StorageCalls:
    """The storage of the settings, opened by ``open``, or when it is first needed.

    A storage that is not ``blocking`` is called in the loop. One that has ``call_together`` gets
    all calls that wait, in one thread; any other is called by up to eight threads. A call that
    fails or hangs is a miss; the first one is logged.
    """

    def __init__(self, config: Config, robot: str, stats: Stats, log: Log, clock: Clock) -> None:
        """*robot* is the one whose copies the storage keeps."""
        self._config = config
        self._robot = robot
        self._stats = stats
        self._log = log
        self._clock = clock
        kind = config.storage
        self._has_claims = issubclass(kind, Claiming)
        self._has_visits = issubclass(kind, Pacing)
        self._is_batched = hasattr(kind, "call_together")
        self.source = Source.MEMORY if issubclass(kind, MemoryStorage) else Source.STORAGE
        self._owner = token_hex(16)
        self._storage: Storage | None = None
        self._secs = min(config.timeout_secs, _CALL_SECS)
        self._threads = Threads(clock, _THREADS)
        self._waiting: deque[_Call] = deque()
        self._running: dict[Future[Any], _Running] = {}
        self._hanging: list[Future[Any]] = []
        self._all_ended: Told[None] | None = None
        self._claims: set[Site] = set()
        """Sites that may be claimed: the answer to a claim can be lost."""
        self._claiming: set[Site] = set()
        """Sites with a claim under way, which a release must not overtake."""
        self._rests_until = LONG_AGO
        self._rest_secs = 0.0
        self._has_answered = False
        self._visits_fail_since = NEVER
        self._was_called = self._warned = self._closed = False

    async def open(self) -> None:
        """Open the storage, so that the first request does not wait for that."""
        await self._call("")

    async def get(self, site: Site) -> Known | None:
        """Return what is stored of *site*; None if the storage fails."""
        known = await self._known(site)
        if known is not None:  # a miss is counted when the site is claimed
            self._stats.storage_hit()
        return known

    async def claim(self, site: Site, *, secs: float, unless_known: bool) -> Claimed:
        """Claim *site* for *secs*; granted if the storage fails, or has no claims.

        With *unless_known* nothing is claimed if a copy or failure of the site is stored.
        """
        if not self._has_claims:
            claimed = Claimed(await self._known(site), 0.0) if unless_known else GRANTED
        else:
            claimed = await self._claim(site, secs, unless_known=unless_known)
        if unless_known and claimed.known is not None:
            self._stats.storage_hit()
        elif unless_known and not claimed.held_secs:
            self._stats.storage_miss()
        return claimed

    async def _known(self, site: Site) -> Known | None:
        found = await self._call("get", site, read=sound)
        return None if found is _FAILED else self._judged(found)

    async def _claim(self, site: Site, secs: float, *, unless_known: bool) -> Claimed:
        self._claims.add(site)  # before the call, whose answer may be lost
        how = {"now": self._clock.epoch(), "secs": secs, "unless_known": unless_known}
        self._claiming.add(site)
        claimed = await self._call("claim", site, self._owner, read=_sound_claim, **how)
        self._claiming.discard(site)
        if claimed is _FAILED:
            return GRANTED
        known = self._judged(claimed.known)
        if unless_known and claimed.known is not None and known is None:
            # It is of no use under the settings of today. By now another may have put more.
            return await self._claim(site, secs, unless_known=False)
        if claimed.held_secs or (unless_known and known is not None):
            self._claims.discard(site)
        return Claimed(known, claimed.held_secs)

    def _judged(self, known: Known | None) -> Known | None:
        config = self._config
        if known is None:
            return None
        return judged(known, policy=config.policy, max_bytes=config.max_bytes)

    async def visit(self, host: str, secs: float, *, begun: bool = False) -> float:
        """Return 0 if a visit to *host* may begin, else for how many seconds it may not yet.

        Visits of all processes that share the storage are *secs* apart. One that has *begun* is
        recorded. While a storage fails that has answered before, none may begin, for
        KOSTER_DEFER_LIMIT_SECS at most: others may visit the host.
        """
        if not self._has_visits:
            return 0.0
        how = {"now": self._clock.epoch(), "secs": secs, "begun": begun}
        left_secs = await self._call("visit", host, read=seconds, **how)
        if left_secs is _FAILED:
            return max(secs, _REST_SECS) if self._holds_visits() else 0.0
        self._visits_fail_since = NEVER
        return float(left_secs)

    def _holds_visits(self) -> bool:
        now, limit_secs = self._clock.now(), self._config.policy.defer_limit_secs
        if not self._has_answered:
            return False
        if self._visits_fail_since == NEVER:
            self._visits_fail_since = now
            self._log.info(
                "The storage failed: hosts that request a delay are not visited until it answers,"
                " for %(secs)g s at most (KOSTER_DEFER_LIMIT_SECS)",
                secs=limit_secs,
            )
        return now - self._visits_fail_since < limit_secs

    async def put(self, site: Site, known: Known) -> None:
        """Store what is known of *site*, which ends a claim of it."""
        owner = (self._owner,) if self._has_claims else ()
        if await self._call("put", site, known, *owner) is not _FAILED:
            self._claims.discard(site)

    async def release(self, site: Site) -> None:
        """End the claim of *site*, if there is one still."""
        if site in self._claims and site not in self._claiming:  # else ``close`` does
            await self._release(site)

    async def _release(self, site: Site) -> None:
        if await self._call("release", site, self._owner) is not _FAILED:
            self._claims.discard(site)

    async def close(self) -> None:
        """Release all claims and close the storage, if it was opened; open it no more."""
        self._closed = True
        if self._was_called:
            self._rests_until = LONG_AGO
            if self._running:  # a claim may be among these, and is released after it
                self._all_ended = Told()
                await self._all_ended
            for site in list(self._claims):
                await self._release(site)
            if self._storage is not None:
                await self._call("close")
        self._fail_all()
        self._threads.close()

    # One call.

    async def _call(
        self, method: str, *args: Any, read: Callable[[Any], Any] | None = None, **how: Any
    ) -> Any:
        """Return the result of *method*, checked by *read*; ``_FAILED`` if the storage fails."""
        if self._rests():
            self._stats.storage_error()
            return _FAILED
        self._was_called = True
        call = _Call(method, args, how, self._clock.now())
        try:
            if self._config.storage.blocking:
                self._waiting.append(call)
                self._begin()
                outcome = await call.answered
            else:
                [outcome] = self._make([call])
            result = _checked(outcome, method)
            result = result if read is None else read(result)
        except CANCELLED:  # the crawl ends, which is no failure; Twisted's is an Exception
            raise
        except Exception as error:  # noqa: BLE001  # a storage may be anybody's
            self._failed(error)
            return _FAILED
        self._has_answered = self._has_answered or bool(method)
        return result

    def _failed(self, error: Exception) -> None:
        self._stats.storage_error()
        now = self._clock.now()
        if now >= self._rests_until:  # calls that fail together are one failure
            is_new = now > self._rests_until + _REST_MOST_SECS
            rest_secs = _REST_SECS if is_new else min(2 * self._rest_secs, _REST_MOST_SECS)
            self._rest_secs, self._rests_until = rest_secs, now + rest_secs
        if self._warned:
            return
        self._warned = True
        self._log.warning(
            "The storage of robots.txt failed. The crawl goes on, without it while it fails, and"
            " this is not said again: %(storage)s: %(error)s",
            storage=self._config.storage.__name__,
            error=error,
        )

    def _rests(self) -> bool:
        if self._clock.now() < self._rests_until:
            return True
        self._hanging = [call for call in self._hanging if not call.done()]
        return not self._closed and len(self._hanging) >= _HANGS

    # In threads, if the storage is blocking.

    def _begin(self) -> None:
        # The first call opens the storage, which is done once.
        most = 1 if self._is_batched or self._storage is None else _THREADS
        while self._waiting and len(self._running) < most:
            count = 1
            if self._is_batched and self._waiting[0].method not in ("", "close"):
                count = _TOGETHER
            calls = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
            calls = [call for call in calls if not call.answered.is_over]  # else it was cancelled
            if not calls:
                continue
            future = self._threads.submit(partial(self._make, calls))
            # The first has waited for longest.
            left_secs = max(self._secs - (self._clock.now() - calls[0].made), 0.0)
            deadline = self._clock.deadline(left_secs, partial(self._late, future))
            begun = self._threads.tell(future, partial(self._ended, future))
            self._running[future] = _Running(calls, deadline, begun)

    def _ended(self, future: Future[Any], outcomes: Any) -> None:
        running = self._running.pop(future, None)
        if running is None:  # it was late
            return
        running.deadline.cancel()
        if self._all_ended is not None and not self._running:
            self._all_ended.tell(None)
        if isinstance(outcomes, Failure):
            outcomes = [outcomes.value] * len(running.calls)
        for call, outcome in zip(running.calls, outcomes, strict=True):
            if call.answered.is_over and isinstance(outcome, Exception):  # the crawl has ended
                self._failed(outcome)
            call.answered.tell(outcome)
        self._begin()

    def _late(self, future: Future[Any]) -> None:
        """Leave the threads behind: a call hangs in one, and others may."""
        if future not in self._running:
            return
        self._hanging.append(future)
        self._threads.close()
        self._threads = Threads(self._clock, _THREADS)
        self._rest_secs = _REST_MOST_SECS
        self._rests_until = self._clock.now() + self._rest_secs
        self._fail_all()

    def _fail_all(self) -> None:
        late = StorageError(f"a call has not ended within {self._secs:g} s")
        if self._all_ended is not None:
            self._all_ended.tell(None)
        running, self._running = self._running, {}
        waiting, self._waiting = self._waiting, deque()
        for each in running.values():
            each.deadline.cancel()
            each.begun.cancel()
        for call in (*(call for each in running.values() for call in each.calls), *waiting):
            call.answered.tell(late)

    def _make(self, calls: Sequence[_Call]) -> Sequence[Any]:
        """Make *calls*, and return the result of each, or the exception that it raises."""
        try:
            storage = self._storage or self._opened()
        except BaseException as error:  # noqa: BLE001  # a storage may be anybody's
            return [error] * len(calls)
        if self._is_batched and calls[0].method not in ("", "close"):
            together = cast("Any", storage).call_together
            outcomes: Sequence[Any] = together([(c.method, c.args, c.how) for c in calls])
            return outcomes
        return [_outcome(storage, call) for call in calls]

    def _opened(self) -> Storage:
        opened = self._config.open_storage(self._robot)
        no_coroutine("from_settings", opened)
        if isinstance(opened, type) or not all(hasattr(opened, name) for name in _NEEDED):
            raise StorageError(f"from_settings() returned a {type(opened).__name__}, not a storage")
        if self._closed:  # the crawl has ended meanwhile
            opened.close()
        self._storage = opened
        return opened


@dataclass(slots=True, eq=False)
class _Call:
    """A method of the storage with its arguments; "" opens the storage."""

    method: str
    args: tuple[Any, ...]
    how: dict[str, Any]
    made: Instant
    answered: Told[Any] = field(default_factory=Told)


@dataclass(frozen=True, slots=True)
class _Running:
    """The calls of a thread, and when they are late."""

    calls: Sequence[_Call]
    deadline: Deadline
    begun: Begun


def _outcome(storage: Storage, call: _Call) -> Any:
    try:
        return getattr(storage, call.method)(*call.args, **call.how) if call.method else None
    except BaseException as error:  # noqa: BLE001  # it is raised where the result is awaited
        return error


def _checked(outcome: Any, method: str) -> Any:
    """Return the *outcome* of a call; raise it if it is an exception."""
    if isinstance(outcome, _MISTAKEN):
        raise StorageError(f"it raised {type(outcome).__name__}") from outcome
    if isinstance(outcome, BaseException):
        raise outcome
    no_coroutine(method, outcome)
    return outcome


def _sound_claim(claimed: object) -> Claimed:
    if not isinstance(claimed, Claimed):
        raise StorageError(f"claim() returned a {type(claimed).__name__}, not a Claimed")
    return Claimed(sound(claimed.known), seconds(claimed.held_secs))


def no_coroutine(method: str, returned: object) -> None:
    """Raise StorageError if a method is a coroutine function: nobody awaits it."""
    if isinstance(returned, Coroutine):
        returned.close()  # else Python warns that it was never awaited
        raise StorageError(
            f"{method}() returned a coroutine. Remove async from its definition: a storage that"
            " blocks is called in a thread"
        )
