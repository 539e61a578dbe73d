"""The interface of a storage, and of its optional capabilities.

Each capability is a separate Protocol, which the crawl looks for with ``issubclass``. A storage
without it still works.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.site import Site

_T_co = TypeVar("_T_co", covariant=True)


class StorageError(Exception):
    """The error that a storage raises. Its message has the problem and the fix."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """The result of a claim."""

    known: Known | None
    """The stored copy or failure of the site at that moment, if any."""
    held_secs: float
    """0 if the claim succeeded. Otherwise the seconds for which another owner may hold the site."""


GRANTED = Claimed(None, 0.0)
"""The result of a claim in a storage without claims."""


class Settings(Protocol):
    """Scrapy's settings, as a storage uses them. You can pass a dict."""

    def __getitem__(self, name: str, /) -> Any:
        """Return the value of the setting *name*."""

    def get(self, name: str, default: Any = None, /) -> Any:
        """Return the value of the setting *name*, *default* if it has none."""


class Storage(Protocol):
    """Keeps the copy, or the failure, of each site.

    Methods can be called from several threads at the same time. They raise StorageError if the
    storage fails or is closed. Whatever they raise, the crawl continues without the storage.

    A class may also have ``SETTINGS``, a mapping of names to ``Setting``. These settings are
    checked when a crawl starts.
    """

    blocking: ClassVar[bool]
    """Whether a call may wait for a disk, a lock or a network. If so, a thread calls it."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Storage:
        """Open the storage, when it is first needed; in a thread if it is blocking.

        *settings* has a valid value for each name in ``SETTINGS``.
        """

    def get(self, site: Site) -> Known | None:
        """Return the copy or failure of *site*, None if there is none or it cannot be read."""

    def put(self, site: Site, copy: Known) -> None:
        """Store *copy* durably, unless the stored one ``supersedes`` it."""

    def sites(self) -> Iterator[tuple[Site, Known]]:
        """Iterate over all stored sites. Sites may be stored and forgotten meanwhile."""

    def forget(self, site: Site) -> bool:
        """Forget *site*; return False if nothing was stored for it."""

    def close(self) -> None:
        """Close files and connections. A second call does nothing."""


@runtime_checkable
class Claiming(Protocol):
    """A storage that several processes share, so that one of them fetches a robots.txt.

    A process claims a site before it fetches its robots.txt. The owner of a claim is a name that is
    unique to the process. Without claims, each process fetches for itself.
    """

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        """Reserve *site* for *owner* for *secs* from *now*, unless another owner holds it.

        If *owner* already holds it, the claim is prolonged. *now* is in seconds since the epoch; a
        storage with its own clock may ignore it. With *unless_known*, a site with a stored copy or
        failure is not claimed. The call is atomic: two owners cannot both succeed.
        """

    def put(self, site: Site, copy: Known, owner: str = "") -> None:
        """Store *copy* as ``Storage.put`` does, and end a claim of *owner* in the same step.

        The claim ends even if *copy* is superseded.
        """

    def release(self, site: Site, owner: str) -> None:
        """End the claim of *owner*, if any. Claims of other owners stay."""


@runtime_checkable
class Pacing(Protocol):
    """A storage that spaces the visits of several processes to a host (Crawl-delay).

    Without it, each process keeps the delay only between its own visits.
    """

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> float:
        """Record a visit to *host* that begins *now* and return 0.0, unless it is too early.

        Visits must be *secs* apart. If the last one was more recent, nothing is recorded, and the
        remaining seconds are returned. With *begun*, the visit is recorded in any case. The call is
        atomic.
        """


@runtime_checkable
class Batching(Protocol):
    """A storage that can commit several calls together, for example in one transaction.

    Without it, each call is committed separately.
    """

    def together(self) -> AbstractContextManager[object]:
        """Return a context manager: calls inside it, in the same thread, are committed at its end.

        Each call sees the effects of earlier calls. If a call raises, the others are kept. If the
        context itself raises, on entry or exit, none of its calls is kept. Calls of other threads
        wait. Contexts are not nested.
        """


class Later(Protocol[_T_co]):
    """A call of a pipeline, whose result comes later. A ``concurrent.futures.Future`` is one."""

    def result(self) -> _T_co:
        """Return what the call returns, or raise what it raises. It may wait for the answer."""


@runtime_checkable
class Pipelining(Protocol):
    """A storage that can send several calls before it waits for an answer.

    A batch of calls then takes one round trip. Without it, each call waits for its own answer.
    """

    def pipeline(self) -> AbstractContextManager[Any]:
        """Return a context manager, whose value has the methods of the storage.

        These are ``get``, ``put``, and ``claim``, ``release`` and ``visit`` if the storage has
        them. Each returns a ``Later``. Results are asked for within the context, after all calls
        were made; more calls may follow. A call that fails concerns no other call. All calls have
        been made when the context ends. They may have their effect in any order. If the context
        ends with an error, calls that were not sent yet should not be sent.
        """


def held_secs(left_secs: float, secs: float) -> float:
    """Return the remaining seconds of a claim of *secs* with *left_secs* left; 0 if it is invalid.

    If more than twice its length is left, a wrong clock wrote the claim.
    """
    return left_secs if 0 < left_secs <= 2 * secs else 0.0
