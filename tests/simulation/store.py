"""A storage that simulated processes share: it claims, fails, lags and forgets."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy_koster.storage import Claimed, StorageError, lease_left, supersedes

if TYPE_CHECKING:
    from scrapy_koster.protocol.access import CacheEntry
    from scrapy_koster.protocol.site import Site
    from simulation.loop import Clock


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
    known: dict[Site, CacheEntry] = field(default_factory=dict)
    claims: dict[Site, Claim] = field(default_factory=dict)
    locks: dict[str, Lock] = field(default_factory=dict)
    failing: bool = False
    lag: float = 0.0

    def secs(self) -> tuple[float, float]:
        """Return how long a call takes until it has its effect, and how long after that."""
        most = self.lag or 0.01
        return self.chance.random() * most, self.chance.random() * most

    def forget(self) -> None:
        """Lose everything, claims and all."""
        self.known.clear()
        self.claims.clear()
        self.locks.clear()

    def claims_of(self, owner: str) -> list[Any]:
        """Return the sites that are *owner*'s to ask, and the hosts that are its to visit."""
        sites = [site for site, claim in self.claims.items() if claim.owner == owner]
        return [*sites, *(host for host, lock in self.locks.items() if lock.owner == owner)]

    def _now(self, now: float) -> float:
        return self.clock.now if self.own_clock else now


class Store:
    """The storage as one process has it."""

    blocking: ClassVar[bool] = True

    def __init__(self, disk: Disk, process: Any) -> None:
        """*process* calls it, until it is dead."""
        self._disk = disk
        self._process = process

    def _call(self) -> Disk:
        # Half of what fails has had its effect: the answer was lost.
        if self._process.dead or (self._disk.failing and self._disk.chance.random() < 0.5):
            raise StorageError("the storage failed")
        return self._disk

    def _answer(self) -> None:
        """The call has had its effect; whether its caller is told is another matter."""
        if self._disk.failing:
            raise StorageError("the storage failed")

    def get(self, site: Site) -> CacheEntry | None:
        disk = self._call()
        self._answer()
        return disk.known.get(site)

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Any:
        self._process.owner = owner
        disk = self._call()
        if unless_known and site in disk.known:
            self._answer()
            return Claimed(disk.known[site], 0.0)
        at, claim = disk._now(now), disk.claims.get(site)
        held = 0.0
        if claim is not None and claim.owner != owner:
            held = lease_left(claim.until - at, secs)
        if not held:
            disk.claims[site] = Claim(owner, at + secs)
        self._answer()
        return Claimed(disk.known.get(site), held)

    def begin_visit(self, host: str, owner: str, *, now: float, secs: float) -> Any:
        disk = self._call()
        at, lock = disk._now(now), disk.locks.get(host)
        left = 0.0
        if lock is not None and lock.owner != owner:
            left = lease_left(lock.until - at, lock.secs)
        if not left:
            disk.locks[host] = Lock(owner, at + secs, secs)
        self._answer()
        return left

    def end_visit(self, host: str, owner: str, *, now: float, secs: float) -> None:
        disk = self._call()
        at, lock = disk._now(now), disk.locks.get(host)
        left = lease_left(lock.until - at, lock.secs) if lock else 0.0
        is_own = lock is None or lock.owner == owner
        if is_own or not left or (lock and not lock.owner and left < secs):
            disk.locks[host] = Lock("", at + secs, secs)
        self._answer()

    def put(self, site: Site, copy: CacheEntry, owner: str = "") -> None:
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
