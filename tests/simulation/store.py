"""A storage that simulated processes share: it claims, fails, lags, forgets and lies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.storage import Claimed, StorageError, held_secs, supersedes
from simulation.loop import EPOCH

if TYPE_CHECKING:
    from scrapy_koster.protocol.access import Known
    from scrapy_koster.protocol.site import Site
    from simulation.loop import Clock


_LONG_SECS = 4.0
_NAN, _INF, _MANY = math.nan, math.inf, 10**400
_NOT_TIMES: Sequence[Any] = (_NAN, _INF, _MANY, "now", None)
# What would open a site, if it were believed.
_COPY = Copy("http://h/robots.txt", 200, b"", None, None, EPOCH, EPOCH + 1e6)
_FAILURE = Failure("a lie", 1, since=EPOCH, asked=EPOCH, retry=EPOCH + 1, stale=None)
_FIELDS: Mapping[str, Sequence[Any]] = {
    "body": ("", None),
    "url": (b"/",),
    "status": ("200", _MANY),
    "fetched": _NOT_TIMES,
    "expires": _NOT_TIMES,
}
_FIELDS_OF_FAILURES: Mapping[str, Sequence[Any]] = {
    "stale": ("x", 7),
    "reason": (b"x", None),
    "attempts": (None, _MANY, -_MANY),
    "since": _NOT_TIMES,
    "asked": _NOT_TIMES,
    "retry": _NOT_TIMES,
}


def _each_wrong(known: Known, fields: Mapping[str, Sequence[Any]]) -> Sequence[Any]:
    return [replace(known, **{name: each}) for name, values in fields.items() for each in values]


_WRONG: Sequence[Any] = (
    *(True, 0, "", b"", (), object(), NotImplemented, StorageError("returned, not raised")),
    *_each_wrong(_COPY, _FIELDS),
    *_each_wrong(_FAILURE, _FIELDS_OF_FAILURES),
)
_NO_SECS: Sequence[Any] = (_NAN, _INF, -1.0, _MANY, "1", None, (0.0,), b"0")
# Each is made anew: the traceback of one that is raised again would hold all histories before.
_ERRORS = (KeyError, MemoryError, RecursionError, AssertionError, NotImplementedError)


@dataclass
class Claim:
    """A site that is one owner's to ask."""

    owner: str
    until: float
    """By the clock of the storage, or of whoever claimed it."""


@dataclass
class Lock:
    """A host that is one owner's to visit, or that rests: then there is no owner."""

    owner: str
    until: float
    secs: float


@dataclass
class Disk:
    """What is stored, whoever runs; and how well that goes."""

    clock: Clock
    chance: Random
    own_clock: bool
    """Whether claims end by a clock of its own, as in Redis, or by that of who looks."""
    known: dict[Site, Known] = field(default_factory=dict)
    claims: dict[Site, Claim] = field(default_factory=dict)
    locks: dict[str, Lock] = field(default_factory=dict)
    failing: bool = False
    lag: float = 0.0
    forgot_at: float = -1000.0
    lies: Random | None = None
    """Makes up what it answers in place of the truth; None while it does not lie."""
    slow_until: float = -1000.0
    """Until then a call may be under way that takes long."""
    lagged_at: float = -1000.0
    """When a call last took longer than a claim allows for."""

    def secs(self) -> tuple[float, float]:
        """Return how long a call takes until it has its effect, and how long after that."""
        most = self.lag or 0.01
        if self.lag:
            self.slow_until = self.clock.now + 2 * most
        if most > _LONG_SECS:
            self.lagged_at = self.clock.now + 2 * most
        return self.chance.random() * most, self.chance.random() * most

    def answered(self, secs: float) -> None:
        """A call has taken so long for its caller, who may have been paused meanwhile."""
        if secs > _LONG_SECS:
            self.lagged_at = max(self.lagged_at, self.clock.now)

    def forget(self) -> None:
        """Lose everything, claims and all."""
        self.known.clear()
        self.claims.clear()
        self.locks.clear()
        self.forgot_at = self.clock.now

    def holds(self, site: Site, owner: str, now: float) -> bool:
        """Whether *site* is *owner*'s to ask, as everybody else would find."""
        claim = self.claims.get(site)
        return claim is not None and claim.owner == owner and self._now(now) < claim.until

    def _now(self, now: float) -> float:
        return self.clock.now if self.own_clock else now


class Store:
    """The storage as one process has it."""

    blocking: ClassVar[bool] = True

    def __init__(self, disk: Disk, told: Any) -> None:
        """*told* is the process: ``failed_at`` is when a call of it last failed."""
        self._disk = disk
        self._told = told

    def _call(self) -> Disk:
        # Half of what fails has had its effect: the answer was lost.
        if self._told.dead or (self._disk.failing and self._disk.chance.random() < 0.5):
            self._fail()
        return self._disk

    def _fail(self) -> None:
        self._told.failed_at = self._disk.clock.now
        raise StorageError("the storage failed")

    def _answer(self) -> None:
        """The call has had its effect; whether its caller is told is another matter."""
        if self._disk.failing:
            self._fail()
        if (error := self._lie(_ERRORS, 0.2, None)) is not None:
            raise error

    def _lie(self, lies: Sequence[Any], chance: float, truth: Any) -> Any:
        """Return one of *lies* by *chance*, else the *truth*."""
        liar = self._disk.lies
        if liar is None or liar.random() >= chance:
            return truth
        self._told.failed_at = self._disk.clock.now
        return liar.choice(lies)

    def get(self, site: Site) -> Any:
        disk = self._call()
        self._answer()
        return self._lie(_WRONG, 0.3, disk.known.get(site))

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Any:
        disk = self._call()
        if unless_known and site in disk.known:
            self._answer()
            return self._claimed(disk.known[site], 0.0)
        at, claim = disk._now(now), disk.claims.get(site)
        held = 0.0
        if claim is not None and claim.owner != owner:
            held = held_secs(claim.until - at, secs)
        if not held:
            disk.claims[site] = Claim(owner, at + secs)
        self._answer()
        return self._claimed(disk.known.get(site), held)

    def _claimed(self, known: Known | None, held: float) -> Any:
        claimed = Claimed(self._lie(_WRONG, 0.3, known), self._lie(_NO_SECS, 0.3, held))
        return self._lie((None, True, (None, 0.0), known), 0.2, claimed)

    def begin_visit(self, host: str, owner: str, *, now: float, secs: float) -> Any:
        disk = self._call()
        at, lock = disk._now(now), disk.locks.get(host)
        left = 0.0
        if lock is not None and lock.owner != owner:
            left = held_secs(lock.until - at, lock.secs)
        if not left:
            disk.locks[host] = Lock(owner, at + secs, secs)
        self._answer()
        return self._lie(_NO_SECS, 0.5, left)

    def end_visit(self, host: str, owner: str, *, now: float, secs: float) -> None:
        disk = self._call()
        at, lock = disk._now(now), disk.locks.get(host)
        left = held_secs(lock.until - at, lock.secs) if lock else 0.0
        is_own = lock is None or lock.owner == owner
        if is_own or not left or (lock and not lock.owner and left < secs):
            disk.locks[host] = Lock("", at + secs, secs)
        self._answer()

    def put(self, site: Site, copy: Known, owner: str = "") -> None:
        disk = self._call()
        if supersedes(copy, disk.known.get(site)):
            disk.known[site] = copy
        self._release(disk, site, owner)
        self._answer()

    def release(self, site: Site, owner: str) -> None:
        self._release(self._call(), site, owner)
        self._answer()

    @staticmethod
    def _release(disk: Disk, site: Site, owner: str) -> None:
        claim = disk.claims.get(site)
        if claim is not None and claim.owner == owner:
            del disk.claims[site]

    def close(self) -> None:
        self._answer()


class BatchedStore(Store):
    """One that gets several calls in one message, which may be lost."""

    def call_together(self, calls: Sequence[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> Any:
        try:
            self._call()
        except StorageError as error:
            return [error] * len(calls)
        return [self._outcome(*call) for call in calls]

    def _outcome(self, method: str, args: tuple[Any, ...], how: dict[str, Any]) -> Any:
        try:
            return getattr(self, method)(*args, **how)
        except Exception as error:  # noqa: BLE001  # the caller raises it
            return error
