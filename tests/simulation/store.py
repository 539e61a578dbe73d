"""A storage that simulated processes share: it claims, fails, lags and forgets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy_koster.storage import Claimed, StorageError, held_secs, supersedes

if TYPE_CHECKING:
    from scrapy_koster.protocol.access import Known
    from scrapy_koster.protocol.site import Site
    from simulation.loop import Clock


_LONG_SECS = 4.0


@dataclass
class Claim:
    """A site that is one owner's to ask."""

    owner: str
    until: float
    """By the clock of the storage, or of whoever claimed it."""


@dataclass
class Disk:
    """What is stored, whoever runs; and how well that goes."""

    clock: Clock
    chance: Random
    own_clock: bool
    """Whether claims end by a clock of its own, as in Redis, or by that of who looks."""
    known: dict[Site, Known] = field(default_factory=dict)
    claims: dict[Site, Claim] = field(default_factory=dict)
    visits: dict[str, float] = field(default_factory=dict)
    failing: bool = False
    lag: float = 0.0
    forgot_at: float = -1000.0
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
        self.visits.clear()
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
        if self._disk.failing:
            self._fail()

    def get(self, site: Site) -> Known | None:
        found = self._call().known.get(site)
        self._answer()
        return found

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        disk = self._call()
        if unless_known and site in disk.known:
            self._answer()
            return Claimed(disk.known[site], 0.0)
        at, claim = disk._now(now), disk.claims.get(site)
        held = 0.0
        if claim is not None and claim.owner != owner:
            held = held_secs(claim.until - at, secs)
        if not held:
            disk.claims[site] = Claim(owner, at + secs)
        self._answer()
        return Claimed(disk.known.get(site), held)

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> float:
        disk = self._call()
        at, last = disk._now(now), disk.visits.get(host)
        left = 0.0 if begun or last is None else held_secs(secs - (at - last), secs)
        if not left:
            disk.visits[host] = at
        self._answer()
        return left

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

    def sites(self) -> Iterator[tuple[Site, Known]]:
        return iter(list(self._disk.known.items()))

    def forget(self, site: Site) -> bool:
        return self._disk.known.pop(site, None) is not None

    def close(self) -> None:
        self._answer()
