"""The interface of a storage, and of its optional capabilities.

A capability is a separate Protocol. The crawl looks for capabilities with ``issubclass``. A storage
without capabilities still works.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from scrapy_koster.protocol.access import CacheEntry
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site


class StorageError(Exception):
    """The error raised by a storage. The message has the problem and the fix."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """The result of a claim."""

    known: CacheEntry | None
    """The copy or failure that was stored at the moment of the claim, or None."""
    lease_left: float
    """The seconds for which another owner may hold the site. 0 if the claim succeeded, or if a copy
    or failure was stored already (``unless_known``)."""


GRANTED = Claimed(None, 0.0)
"""A claim that has succeeded, without a stored value."""


class Settings(Protocol):
    """The part of Scrapy's settings that a storage uses. You can pass a dict instead."""

    def __getitem__(self, name: str, /) -> Any:
        """Return the value of the setting *name*."""

    def get(self, name: str, default: Any = None, /) -> Any:
        """Return the value of the setting *name*, or *default*."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that a storage declares: ``SETTINGS = {"MY_TIMEOUT_SECS": Setting(2.0, float)}``.

    Begin the name with a prefix of your own.
    """

    default: Any
    """The value if the setting is missing or None. ``read`` is called with the default, too."""
    read: Callable[[Any], Any]
    """Returns the value to use. Raises ValueError or TypeError for an invalid value. Such an
    error stops the crawl at the start; the message is logged."""
    in_data_dir: bool = False
    """Whether the value is a path, and a relative path is below Scrapy's data directory."""
    wanted: str = ""
    """The valid values, such as "a path". If set, it replaces the error's text in the message."""

    @classmethod
    def path(cls, default: str) -> Setting:
        """Return the setting of a path. A relative path is below Scrapy's data directory."""
        return cls(default, _path, in_data_dir=True, wanted="a path")

    @classmethod
    def whole(cls, default: int, *, least: int) -> Setting:
        """Return the setting of a whole number, *least* or more."""
        wanted = f"a whole number, {least} or more"
        return cls(default, lambda value: _whole(value, least), wanted=wanted)


def invalid(value: object, wanted: str) -> ValueError:
    """Return the error for an invalid *value*. *wanted* is the valid kind, such as "a path"."""
    return ValueError(f"{printable(repr(value))} is not {wanted}")


def _path(value: object) -> str:
    if isinstance(value, (str, os.PathLike)) and (path := str(value)):
        return path
    raise ValueError


def _whole(value: Any, least: int) -> int:
    if not isinstance(value, (bool, float)) and (number := int(value)) >= least:
        return number
    raise ValueError


class Storage(Protocol):
    """Keeps the copies and failures of sites for one robot.

    A site may send different files to different robots, so the storage of a robot never returns the
    copy of another robot. Methods raise StorageError if the storage fails or is closed. After any
    error, the crawl goes on without the storage, and calls the storage again later.

    A class may also have ``SETTINGS``, a mapping of names to ``Setting``. These settings are
    checked when a crawl starts.
    """

    blocking: ClassVar[bool]
    """Whether a call may wait for a lock or a network. If so, several threads call the storage at
    the same time. If not, the thread of the loop calls the storage."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Storage:
        """Open and return the storage.

        *settings* has valid values for the names in ``SETTINGS``. ROBOTSTXT_USER_AGENT is the name
        of the robot whose copies the storage keeps, or "" for a robot without a name.
        """

    def get(self, site: Site) -> CacheEntry | None:
        """Return the copy or failure of *site*, or None if no valid value is stored."""

    def put(self, site: Site, copy: CacheEntry) -> None:
        """If *copy*, a copy or failure, ``supersedes`` the stored value, store *copy* durably."""

    def sites(self) -> Iterator[tuple[Site, CacheEntry]]:
        """Iterate over the stored sites of the robot. Sites may change during the iteration."""

    def robots(self) -> list[str]:
        """Return the names of the robots that have stored sites, sorted."""

    def forget(self, site: Site) -> bool:
        """Forget *site*. Return False if *site* was not stored."""

    def close(self) -> None:
        """Close files and connections. A second call has no effect."""


@runtime_checkable
class Claiming(Protocol):
    """A storage that several processes share, so that only one process fetches a robots.txt.

    A process claims a site before fetching the robots.txt. The owner of a claim is a name, unique
    to the process. Without claims, every process fetches the robots.txt.
    """

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        """Reserve *site* for *owner* for *secs* from *now*, unless another owner holds *site*.

        If *owner* already holds the site, the claim is prolonged. *now* is in seconds since the
        epoch; a storage with a clock of its own may ignore *now*. With *unless_known*, a site with
        a stored copy or failure is not claimed. The call is atomic: two owners cannot both succeed.
        """

    def put(self, site: Site, copy: CacheEntry, owner: str = "") -> None:
        """Store *copy* as ``Storage.put`` does, and end a claim of *owner* in the same step.

        The claim ends even if *copy* is not stored.
        """

    def release(self, site: Site, owner: str) -> None:
        """End the claim of *owner*, if any. Claims of other owners stay."""


@runtime_checkable
class Pacing(Protocol):
    """A storage with locks on hosts, so that visits of several processes are apart (Crawl-delay).

    A visit begins with the lock on its host. When the visit ends, the host rests for its delay.
    Without such a storage, a process keeps the delay only between its own visits. Times are as in
    ``Claiming.claim``, and both calls are atomic.
    """

    def begin_visit(self, host: str, owner: str, *, now: float, secs: float) -> float:
        """Lock *host* for *owner* for *secs* from *now* and return 0.0.

        If another owner has the lock, or if *host* rests, return the remaining seconds and lock
        nothing. If *owner* has the lock already, the lock is prolonged.
        """

    def end_visit(self, host: str, owner: str, *, now: float, secs: float) -> None:
        """Unlock *host*, which rests for *secs* from *now*. With 0, a lock of *owner* just ends.

        A lock of another owner stays: the lease of *owner* was over. Without a lock, a rest that is
        longer stays.
        """


@runtime_checkable
class Pruning(Protocol):
    """A storage that deletes old values. A crawl calls this when it ends."""

    def prune(self, *, now: float, secs: float) -> None:
        """Delete values and visits from before *now* - *secs*, and what is left of others.

        The work is bounded: what is old may stay until a later call. Claims stay.
        """


def lease_left(left_secs: float, secs: float) -> float:
    """Return *left_secs*, the remaining seconds of a claim of *secs*; 0 if the claim is void.

    The claim is void if it has expired. If more than 2 * *secs* are left, a wrong clock wrote the
    claim, and the claim is void, too. The same applies to a lock on a host, and to its rest.
    """
    return left_secs if 0 < left_secs <= 2 * secs else 0.0
