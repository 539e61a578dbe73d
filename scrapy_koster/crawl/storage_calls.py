"""Calls of the storage. The crawl goes on if a storage fails or hangs."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from secrets import token_hex
from threading import Lock
from typing import Any, NamedTuple

from scrapy.crawler import Crawler

from scrapy_koster.crawl.clock import LONG_AGO, NEVER, LateError, clock_of
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.engine.private import CANCELLED
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.robot import copies_of
from scrapy_koster.crawl.threads import Threads
from scrapy_koster.protocol.access import CacheEntry
from scrapy_koster.protocol.printable import error_text
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.verdict import Source
from scrapy_koster.storage.encoding import check_storable, seconds, validated_entry
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.port import (
    GRANTED,
    Claimed,
    Claiming,
    Pacing,
    Pruning,
    Storage,
    StorageError,
)

_CALL_SECS = 5.0
"""The time limit of a call in a thread, unless KOSTER_TIMEOUT_SECS is less."""
# After a failure, the storage is not called for 1 second. The pause doubles up to 30 seconds, until
# a call succeeds. If a call hangs, the pause is 30 seconds at once. So a locked database does not
# cost a time-out for every site.
_REST_SECS, _REST_MOST_SECS = 1.0, 30.0
_THREADS = 8
_TOGETHER = 64


class _Call(NamedTuple):
    """A call of a method of the storage. The method "" only opens the storage."""

    method: str
    args: tuple[Any, ...]
    how: dict[str, Any]
    outcome: list[Any]
    """A list with the return value or the raised exception. Empty until the call ends."""


class StorageCalls:
    """The storage of the settings, opened by ``open`` or by the first call.

    A storage whose ``blocking`` is False is called in the loop. For a storage with
    ``call_together``, like RedisStorage, one thread makes the waiting calls together. Up to eight
    threads call another blocking storage. After a failed or hanging call, the crawl goes on as if
    nothing were stored, except in ``begin_visit``. The first failure is logged.
    """

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._config = config
        self._robot = copies_of(crawler, config)
        self._stats = crawler.stats
        self._log = Log(__name__, crawler)
        self._clock = clock_of(crawler)
        kind = config.storage
        self._has_claims = issubclass(kind, Claiming)
        self._has_visits = issubclass(kind, Pacing)
        self._is_batched = hasattr(kind, "call_together")
        self.source = Source.MEMORY if issubclass(kind, MemoryStorage) else Source.STORAGE
        self._owner = token_hex(16)
        self._storage: Storage | None = None
        self._secs = min(config.timeout_secs, _CALL_SECS)
        self._threads = Threads(1 if self._is_batched else _THREADS)
        self._opening = Lock()
        self._waiting: deque[_Call] = deque()
        self._hanging: list[_Call] = []
        self._claims: set[Site] = set()
        """Sites that this process has claimed, or may have claimed if the answer was lost."""
        self._rests_until = LONG_AGO
        self._fails_since = NEVER
        self._visits_fail_since = NEVER if self._is_batched else LONG_AGO
        """When visits began to fail. ``NEVER`` if they do not fail.

        ``LONG_AGO`` until a first call has succeeded: a file that cannot be opened holds back no
        visit. A Redis is of a fleet, and may be started later.
        """
        self._closed = False

    async def open(self) -> None:
        """Open the storage, so that the first call does not wait for this."""
        await self._call("")
        is_paced = self._config.pace.obeys and hasattr(self._config.storage, "evicts")
        if is_paced and await self._call("evicts", read=bool):
            self._log.warning(
                "Delays of hosts may be lost: the Redis of KOSTER_REDIS_URL can evict the locks of"
                " hosts if its memory is full. Set its maxmemory-policy to noeviction"
            )

    async def get(self, site: Site) -> CacheEntry | None:
        """Return the stored copy or failure of *site*, if any. None if the storage fails."""
        return await self._call("get", site, read=validated_entry)

    async def claim(self, site: Site, *, secs: float, unless_known: bool) -> Claimed:
        """Claim *site* for *secs* seconds, and return the result.

        With *unless_known*, a site with a stored copy or failure is not claimed. If the storage
        fails or has no claims, the claim succeeds.
        """
        if not self._has_claims:
            return Claimed(await self.get(site) if unless_known else None, 0.0)
        self._claims.add(site)  # before the call, because the answer may be lost
        how = {"now": self._clock.epoch(), "secs": secs, "unless_known": unless_known}
        claimed = await self._call("claim", site, self._owner, read=_sound_claim, **how) or GRANTED
        if claimed.lease_left or (unless_known and claimed.known is not None):
            self._claims.discard(site)
        return claimed

    async def put(self, site: Site, known: CacheEntry) -> None:
        """Store *known*, a copy or failure of *site*. This ends the claim.

        A value that no storage can keep is counted and logged, and the storage goes on.
        """
        try:
            check_storable(known)
        except ValueError as error:
            self._stats.inc_value("koster/storage/error")
            self._log.warning_once(
                "The robots.txt of %(site)s is not stored. The next crawl fetches it again, and"
                " this is not said again: %(error)s",
                site=site,
                error=error,
            )
            return
        owner = (self._owner,) if self._has_claims else ()
        if await self._call("put", site, known, *owner):
            self._claims.discard(site)

    async def release(self, site: Site) -> None:
        """End the claim of *site*, if any. If the storage fails, the claim expires."""
        if site in self._claims:
            self._claims.discard(site)
            await self._call("release", site, self._owner)

    async def begin_visit(self, host: str, secs: float) -> float:
        """Lock *host* for *secs* and return 0, or return the seconds until the next try.

        If the storage is no ``Pacing``, returns 0. If a storage fails after successful calls, the
        visits of other processes are unknown. Then no visit begins until the storage answers, for
        KOSTER_DEFER_LIMIT_SECS at most.
        """
        left_secs: float | None = 0.0
        if self._has_visits:
            how = {"now": self._clock.epoch(), "secs": secs}
            left_secs = await self._call("begin_visit", host, self._owner, read=seconds, **how)
        if left_secs is not None:
            return left_secs
        now, limit_secs = self._clock.now(), self._config.policy.defer_limit_secs
        if self._visits_fail_since == NEVER:
            self._visits_fail_since = now
            self._log.info(
                "The storage failed: hosts that request a delay are not visited until it answers,"
                " for %(secs)g s at most (KOSTER_DEFER_LIMIT_SECS)",
                secs=limit_secs,
            )
        return _REST_SECS if now - self._visits_fail_since < limit_secs else 0.0

    async def end_visit(self, host: str, secs: float) -> None:
        """End the lock on *host*, which then rests for *secs*. If the storage fails, it expires."""
        if self._has_visits:
            await self._call("end_visit", host, self._owner, now=self._clock.epoch(), secs=secs)

    async def close(self) -> None:
        """Prune and close the storage if it is open, and keep it closed."""
        if self._storage is not None and isinstance(self._storage, Pruning):
            policy = self._config.policy
            # A copy lives for expiry_max_secs at most, from its fetch.
            secs = policy.expiry_max_secs + max(policy.expiry_max_secs, policy.stale_if_error_secs)
            await self._call("prune", now=self._clock.epoch(), secs=secs)
        self._closed, self._rests_until = True, LONG_AGO
        if self._storage is not None:
            await self._call("close")
        self._threads.close()

    # A call.

    async def _call(
        self, method: str, *args: Any, read: Callable[[Any], Any] = lambda _: True, **how: Any
    ) -> Any | None:
        """Return the result of *method*, read by *read*. None if the call fails or is not made."""
        self._hanging = [call for call in self._hanging if not call.outcome]
        if self._hanging or self._clock.now() < self._rests_until:
            return None
        call = _Call(method, args, how, [])
        make: Callable[[], None] = partial(self._make, [call])
        if self._is_batched and method:
            self._waiting.append(call)
            make = self._make_waiting
        try:
            if self._config.storage.blocking:
                await self._clock.within(self._secs, self._threads.run(make))
            else:
                make()
            result = read(_checked(*call.outcome))
        except CANCELLED:  # the crawl or the loop ends, and the storage has not failed
            raise
        except LateError:
            self._hanging.append(call)
            self._failed(StorageError(f"a call has not ended within {self._secs:g} s"))
            return None
        except Exception as error:  # noqa: BLE001  # an error of the project's storage
            self._failed(error)
            return None
        if method:
            self._fails_since = NEVER
            if method == "begin_visit" or self._visits_fail_since == LONG_AGO:
                self._visits_fail_since = NEVER
        return result

    def _failed(self, error: Exception) -> None:
        self._stats.inc_value("koster/storage/error")
        now = self._clock.now()
        if now >= self._rests_until:  # calls that fail together count once
            self._fails_since = min(self._fails_since, now)
            secs = _REST_MOST_SECS if self._hanging else now - self._fails_since + _REST_SECS
            self._rests_until = now + min(secs, _REST_MOST_SECS)
        self._log.warning_once(
            "The storage of robots.txt failed. The crawl goes on, without it while it fails,"
            " and this is not said again: %(storage)s: %(error)s",
            storage=self._config.storage.__name__,
            error=error,
        )

    # These methods run in a thread if the storage is blocking.

    def _make_waiting(self) -> None:
        """Make up to 64 waiting calls together.

        This method runs once per call. So a later run may find no waiting call.
        """
        count = min(len(self._waiting), _TOGETHER)
        if calls := [self._waiting.popleft() for _ in range(count)]:
            self._make(calls)

    def _make(self, calls: Sequence[_Call]) -> None:
        outcomes: Sequence[Any] = [None]
        try:
            storage: Any = self._opened()
            method, args, how, _ = calls[0]
            if method and self._is_batched:
                outcomes = storage.call_together([call[:3] for call in calls])
            elif method:
                outcomes = [getattr(storage, method)(*args, **how)]
        except BaseException as error:  # noqa: BLE001  # ``_checked`` raises it in the loop
            outcomes = [error] * len(calls)
        for call, outcome in zip(calls, outcomes, strict=True):
            call.outcome.append(outcome)

    def _opened(self) -> Storage:
        with self._opening:
            if self._storage is None:
                opened = self._config.open_storage(self._robot)
                if self._closed:  # the crawl has closed during the opening
                    opened.close()
                self._storage = opened
            return self._storage


def _checked(outcome: Any) -> Any:
    """Return *outcome*. Raises StorageError if *outcome* is an exception."""
    if isinstance(outcome, StorageError):
        raise outcome
    if isinstance(outcome, BaseException):  # asyncio's CancelledError would end the crawl
        raise StorageError(f"it raised {error_text(outcome)}") from outcome
    return outcome


def _sound_claim(claimed: object) -> Claimed:
    if not isinstance(claimed, Claimed):
        raise StorageError(f"claim() returned a {type(claimed).__name__}, not a Claimed")
    return Claimed(validated_entry(claimed.known), seconds(claimed.lease_left))
