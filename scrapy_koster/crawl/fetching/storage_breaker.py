"""A storage whose failure is a miss, never a dead crawl."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from secrets import token_hex
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from scrapy_koster.crawl.clock import LONG_AGO, NEVER, LateError
from scrapy_koster.crawl.engine.private import CANCELLED
from scrapy_koster.crawl.fetching.gathering import Gathering
from scrapy_koster.crawl.fetching.storage_calls import (
    Failing,
    called,
    checked,
    checked_pipeline,
    context,
    piped,
)
from scrapy_koster.crawl.fetching.storage_thread import THREADS, StorageThread
from scrapy_koster.protocol.verdict import Source
from scrapy_koster.storage.latest import judged, seconds, sound
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.port import (
    GRANTED,
    Batching,
    Claimed,
    Claiming,
    Pacing,
    Pipelining,
    StorageError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.protocol.access import Known
    from scrapy_koster.protocol.site import Site
    from scrapy_koster.storage.port import Storage

    _Ask = Callable[..., Awaitable[Any]]
    """Makes a call, given the name of a method and its arguments: see ``storage_calls``."""
    _Use: TypeAlias = Callable[[_Ask], Coroutine[Any, Any, "_T"]]

_T = TypeVar("_T")

# After a failure the storage is let alone for so long, each time for twice as long as before: one
# that is locked would cost each site its time-out. After one that comes late it begins anew.
_REST_SECS, _REST_MOST_SECS = 1.0, 30.0
# So long are all rests but the longest, one after the other.
_HELD_SECS = 31
# So long the end of a crawl waits for the storage.
_CLOSE_SECS = 5.0
# While so many calls hang, the storage is let alone: each keeps a thread.
_HANGS = 2


class StorageBreaker:
    """The storage of the settings, opened by ``open``, or when it is first needed.

    One that blocks is called in a thread (see ``storage_thread``), and not waited for any longer
    than KOSTER_TIMEOUT_SECS. Calls of one that does not are gathered (see ``gathering``). What goes
    wrong in it is counted, and said once in a crawl; after a failure it has a rest, a longer one
    after each. While two calls hang it is not called, but for a last try to close it.
    """

    def __init__(self, config: Config, stats: Stats, log: Log, clock: Clock) -> None:
        self._config = config
        self._stats = stats
        self._log = log
        self._clock = clock
        self._storage: Storage | None = None
        self._was_called = False
        self._closed = False
        self._warned = False
        self._rests_until = LONG_AGO
        self._rest_secs = 0.0
        self._has_answered = False
        self._visits_fail_since = NEVER
        self._has_held = False
        self._owner = token_hex(16)
        self._has_claims = issubclass(config.storage, Claiming)
        self._has_visits = issubclass(config.storage, Pacing)
        self._has_pipelines = issubclass(config.storage, Pipelining)
        self._has_batches = self._has_pipelines or issubclass(config.storage, Batching)
        self._keeps_delays = config.pace.obeys and self._has_visits
        self._lock = Lock()
        self._failing = Failing(self._let_alone)
        self._claims: set[Site] = set()
        self._claiming: set[Site] = set()
        """Sites whose claim nobody has been told of; if the crawl ends, it may come later."""
        self._gathering = Gathering(clock)
        self._thread = StorageThread(
            clock,
            most=self._most,
            secs=config.timeout_secs,
            together=self._together,
            hung=self._hung,
        )
        in_memory = issubclass(config.storage, MemoryStorage)
        self.source = Source.MEMORY if in_memory else Source.STORAGE

    async def open(self) -> None:
        """Open the storage, so that the first request does not wait for that."""
        await self._tolerate(None)

    async def get(self, site: Site) -> Known | None:
        """Return what is stored of *site*, as the settings of this crawl have it."""
        known = await self._get(site)
        if known is not None:
            self._stats.storage_hit()
        return known

    async def _get(self, site: Site) -> Known | None:
        async def get(ask: _Ask) -> Known | None:
            return self._judged(sound(await ask("get", site)))

        return await self._tolerate(get)

    def _judged(self, known: Known | None) -> Known | None:
        config = self._config
        if known is None:
            return None
        return judged(known, policy=config.policy, max_bytes=config.max_bytes)

    async def claim(self, site: Site, *, secs: float, unless_known: bool) -> Claimed:
        """Claim *site* for *secs*; granted where the storage fails, or has no claims.

        With *unless_known* nothing is claimed where something is known of the site.
        Granted then, the site was not found: that is a miss. Where delays are kept a storage that
        has just begun to fail is asked again first: it may know that the site asks for one.
        """
        claimed = GRANTED
        if self._has_claims:
            claim = partial(self._claim, site=site, secs=secs, unless_known=unless_known)
            self._claiming.add(site)
            answer = await self._tolerate(claim)
            while answer is None and unless_known and self._may_name_delays():
                await self._hold()
                answer = await self._tolerate(claim)
            claimed = answer or GRANTED
            self._claiming.discard(site)
        elif unless_known:
            claimed = Claimed(await self._get(site), 0.0)
        if unless_known and claimed.known is not None:
            self._stats.storage_hit()
        elif unless_known and not claimed.held_secs:
            self._stats.storage_miss()
        return claimed

    def _may_name_delays(self) -> bool:
        """Whether it has not failed for long, and may know of sites that ask for a delay."""
        is_new = self._has_answered and self._rest_secs < _REST_MOST_SECS
        return self._keeps_delays and is_new and not self._closed

    async def _hold(self) -> None:
        """Wait until the storage has had its rest."""
        if not self._has_held:
            self._has_held = True
            self._log.info(
                "The storage failed: new sites, which may request a delay, are asked for their"
                " robots.txt once it answers, or after %(secs)d s. This is not said again",
                secs=_HELD_SECS,
            )
        await self._clock.sleep(max(self._rests_until - self._clock.now(), 0.0))

    async def _claim(self, ask: _Ask, *, site: Site, secs: float, unless_known: bool) -> Claimed:
        self._claims.add(site)  # before the call, whose answer may be lost
        claim = partial(ask, "claim", site, self._owner, now=self._clock.epoch(), secs=secs)
        claimed = self._sound(await claim(unless_known=unless_known))
        if unless_known and claimed.known is not None and not self._judged(claimed.known):
            # It is of no use under the settings of today. By now another may have put more.
            unless_known = False
            claimed = self._sound(await claim())
        if claimed.held_secs or (unless_known and claimed.known is not None):
            self._claims.discard(site)
        return Claimed(self._judged(claimed.known), claimed.held_secs)

    def _sound(self, claimed: object) -> Claimed:
        if not isinstance(claimed, Claimed):
            raise StorageError(f"claim() returned a {type(claimed).__name__}, not a Claimed")
        return Claimed(sound(claimed.known), seconds(claimed.held_secs))

    async def visit(self, host: str, secs: float, *, begun: bool = False) -> float:
        """Return 0 where a visit to *host* may begin, else for how many seconds it may not yet.

        Visits of all who share the storage are *secs* apart. One that has *begun* is noted. While a
        storage fails that has answered before, none may, for KOSTER_DEFER_LIMIT_SECS at most:
        others may visit the host. One that never did, or does not keep visits, has nothing
        against it.
        """
        if not self._has_visits:
            return 0.0

        async def visit(ask: _Ask) -> float:
            now = self._clock.epoch()
            return seconds(await ask("visit", host, now=now, secs=secs, begun=begun))

        left_secs = await self._tolerate(visit)
        if left_secs is None:
            return max(secs, _REST_SECS) if self._holds_visits() else 0.0
        self._visits_fail_since = NEVER
        return left_secs

    def _holds_visits(self) -> bool:
        """Whether no visit begins: the storage has failed, and others may be told of theirs."""
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

        async def put(ask: _Ask) -> None:
            owner = (self._owner,) if self._has_claims else ()
            await ask("put", site, known, *owner)
            self._claims.discard(site)

        await self._tolerate(put)

    async def release(self, site: Site) -> None:
        """End the claim of *site*, if there is one still."""
        if site in self._claims and site not in self._claiming:  # else close() does
            await self._tolerate(partial(self._release, site=site))

    async def _release(self, ask: _Ask, *, site: Site) -> None:
        await ask("release", site, self._owner)
        self._claims.discard(site)

    async def close(self) -> None:
        """Release all claims and close the storage, if it was opened; open it no more."""
        self._closed = True
        self._gathering.close()
        if self._was_called:
            self._rests_until = LONG_AGO
            await self._tolerate(self._end, secs=_CLOSE_SECS)
        self._rests_until = NEVER
        self._thread.close()

    async def _end(self, ask: _Ask) -> None:
        try:
            for site in self._claims | self._claiming:
                await self._release(ask, site=site)
        finally:
            await ask("close")

    async def _tolerate(self, use: _Use[_T] | None, *, secs: float | None = None) -> _T | None:
        if self._rests():
            self._stats.storage_error()
            return None
        self._was_called = True
        try:
            if not self._config.storage.blocking:
                if secs is None:  # else it is the last call
                    await self._gathering.wait()
                return await self._use(None, use=use)
            return await self._in_time(use, secs)
        except CANCELLED:  # the crawl ends, which is no failure; Twisted's is an Exception
            raise
        except Exception as error:  # noqa: BLE001  # a storage may be anybody's
            self._stats.storage_error()
            if not self._warned:
                self._warned = True
                self._log.warning(
                    "The storage of robots.txt failed. The crawl goes on, without it"
                    " while it fails, and this is not said again: %(storage)s: %(error)s",
                    storage=self._config.storage.__name__,
                    error=error,
                )
            return None

    async def _in_time(self, use: _Use[_T] | None, secs: float | None) -> _T | None:
        """Use the storage in its thread; with *secs* for the last time, and wait no longer."""
        running = self._thread.run(partial(self._use, use=use), is_last=secs is not None)
        try:
            return await (running if secs is None else self._clock.within(secs, running))
        except LateError:
            secs = secs or self._config.timeout_secs
            raise StorageError(f"a call has not ended within {secs:g} s") from None

    def _most(self) -> int:
        # The first call opens it, which is done once.
        return 1 if self._has_batches or self._storage is None else THREADS

    def _hung(self) -> None:
        self._rest_secs = _REST_MOST_SECS
        self._rests_until = self._clock.now() + self._rest_secs

    def _rests(self) -> bool:
        if self._clock.now() < self._rests_until:
            return True
        return not self._closed and self._thread.hanging >= _HANGS

    # In the thread, if the storage blocks.

    @contextmanager
    def _together(self) -> Iterator[Any]:
        """Yield the pipeline for the calls of a batch, None if they are made one by one."""
        with self._failing:
            storage = self._opened() if self._has_batches else None
            # The last call closes it, which is no part of a batch.
            if storage is None or self._rests() or self._closed:
                yield None
            elif self._has_pipelines:
                with context("pipeline", cast("Pipelining", storage).pipeline()) as pipeline:
                    yield checked_pipeline(pipeline)
            else:
                with context("together", cast("Batching", storage).together()):
                    yield None

    async def _use(self, pipeline: Any, *, use: _Use[_T] | None) -> _T | None:
        """Use the storage, by *pipeline* if there is one; open it only, if *use* is None."""
        with self._failing:
            storage = self._storage or self._opened()
            # Others may have come here before it failed.
            if use is None or storage is None or self._rests():
                return None
            ask = partial(called, storage) if pipeline is None else partial(piped, pipeline)
            answer = await use(ask)
            self._has_answered = True
            return answer

    def _let_alone(self) -> None:
        """Have the storage rest: it has failed."""
        with self._lock:  # calls that fail together are one failure
            now = self._clock.now()
            if now < self._rests_until:
                return
            if now > self._rests_until + _REST_MOST_SECS:
                self._rest_secs = _REST_SECS
            else:
                self._rest_secs = min(2 * self._rest_secs, _REST_MOST_SECS)
            self._rests_until = now + self._rest_secs

    def _opened(self) -> Storage | None:
        if not self._rests() and self._is_still_needed():
            opened = checked(self._config.open_storage())
            if self._is_still_needed():
                self._storage = opened
            else:
                opened.close()
        return self._storage

    def _is_still_needed(self) -> bool:
        """Whether no thread has opened the storage meanwhile, and the crawl has not ended."""
        return self._storage is None and not self._closed
