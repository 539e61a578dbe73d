"""Where the copies of robots.txt are kept between two crawls (3.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from scrapy_koster.protocol.access import (
    Copy,
    Failure,
    Known,
    Policy,
    has_been,
    longest_deferral_secs,
    longest_life_secs,
)
from scrapy_koster.protocol.line import whole_lines
from scrapy_koster.protocol.site import Site

LATE_SECS = 86400.0
"""What is later by more was read off a wrong clock. See ``supersedes``."""


class StorageError(Exception):
    """The one error that a storage raises; its message says what to do."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """What the claim of a site came to."""

    known: Known | None
    """What is known of the site at that moment."""
    held_secs: float
    """0 where the site is the owner's to ask; else for so long it may be another's, in seconds."""


GRANTED = Claimed(None, 0.0)
"""Where there is nothing to claim."""


class StorageConfig(Protocol):
    """What the settings say to a storage that is being opened."""

    @property
    def sqlite_path(self) -> str:
        """KOSTER_SQLITE_PATH, below the project's data directory."""

    @property
    def memory_sites(self) -> int:
        """KOSTER_MEMORY_SITES."""

    @property
    def redis_url(self) -> str:
        """KOSTER_REDIS_URL, which may have a password in it."""

    @property
    def redis_prefix(self) -> str:
        """KOSTER_REDIS_PREFIX."""

    @property
    def redis_ttl_secs(self) -> int:
        """KOSTER_REDIS_TTL_SECS."""


class Storage(Protocol):
    """What is known of each site; called from any thread, also at once.

    Every method raises StorageError, and nothing else, when the storage
    fails or is closed.

    Processes that share a storage have a site asked by one of them: the owner
    of its claim. An owner is a name that no other process has. A storage
    whose ``put`` takes no *owner* has no claims, and each of its processes
    asks for itself.
    """

    blocking: ClassVar[bool]
    """Whether a call may wait for a disk, a lock or a network."""

    @classmethod
    def from_config(cls, config: StorageConfig) -> Storage:
        """Open the storage; StorageError if it is seen at once to be unusable."""

    def get(self, site: Site) -> Known | None:
        """Return what is known of *site*; what is not valid is not known."""

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        """Let *owner* alone ask *site* for *secs* from *now*, unless another may.

        Again, it is prolonged. *now* is in seconds since the epoch. With
        *unless_known* nothing is claimed where something is known of the site.
        """

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> float:
        """Return 0.0 where a visit to *host* may begin *now*, and note it as begun.

        Else return for how many seconds it may not: visits are to be *secs* apart. With *begun* it
        is noted whatever was before. A storage without this method keeps them apart for nobody.
        """

    def put(self, site: Site, copy: Known, owner: str = "") -> None:
        """Keep *copy*, for good at return, unless it is superseded already.

        In the same step a claim of *owner* ends.
        """

    def release(self, site: Site, owner: str) -> None:
        """End the claim of *owner*; that of another stays."""

    def sites(self) -> Iterator[tuple[Site, Known]]:
        """Iterate over all that is known."""

    def forget(self, site: Site) -> bool:
        """Forget *site*; False if nothing was stored for it."""

    def close(self) -> None:
        """Give everything back that is held open; again does nothing."""


def supersedes(new: Known, old: Known | None) -> bool:
    """Return whether *new* takes the place of *old*: the later one is kept.

    Writers race by the time of one fetch. A time that is further ahead was
    read off a wrong clock, and must not keep its place until that time comes.
    """
    if old is None:
        return True
    late_secs = learnt(old) - learnt(new)
    return not 0 < late_secs <= LATE_SECS


def is_news(found: Known, known: Known | None, *, now: float) -> bool:
    """Return whether *found* says more of a site than what is *known* of it.

    A time that is ahead of *now* was read off a wrong clock, and says nothing.
    """
    if known is None or not has_been(learnt(known), now):
        return has_been(learnt(found), now)
    return learnt(known) < learnt(found) and has_been(learnt(found), now)


def held_secs(left_secs: float, secs: float) -> float:
    """Return for how long a claim holds that says *left_secs*, where claims are of *secs*.

    What says more than two of them was written by a wrong clock, and is void.
    """
    return left_secs if 0 < left_secs <= 2 * secs else 0.0


def judged(known: Known, *, policy: Policy, max_bytes: int) -> Known | None:
    """Return *known*, which may have been stored under other settings, by those of today.

    None for a copy that was cut where today more of the file is read: it must
    be fetched again, for a 304 would renew what was cut.
    """
    match known:
        case Copy():
            return _judged(known, policy, max_bytes)
        case Failure(stale=stale, asked=asked, retry=retry):  # pragma: no branch
            return replace(
                known,
                stale=None if stale is None else _judged(stale, policy, max_bytes),
                retry=min(retry, asked + longest_deferral_secs(policy)),
            )


def _judged(copy: Copy, policy: Policy, max_bytes: int) -> Copy | None:
    if copy.cut_bytes is not None and copy.cut_bytes < max_bytes:
        return None
    return replace(
        copy,
        body=whole_lines(copy.body, max_bytes),
        expires=min(copy.expires, copy.fetched + longest_life_secs(copy, policy)),
        cut_bytes=copy.cut_bytes if len(copy.body) <= max_bytes else max_bytes,
    )


def learnt(known: Known) -> float:
    """Return when it was learnt, in seconds since the epoch."""
    return known.fetched if isinstance(known, Copy) else known.asked
