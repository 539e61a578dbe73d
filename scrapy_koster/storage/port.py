"""The interface of a storage, and what some storages can do beyond it.

A capability is a Protocol of its own, which the crawl looks for with ``issubclass``. Without it
the crawl does without, so a storage goes on working when a capability is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.site import Site


class StorageError(Exception):
    """The error that a storage raises; its message says what happened and what to do."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """The result of a claim."""

    known: Known | None
    """What is known of the site at that moment."""
    held_secs: float
    """0 if the claim succeeded; else the seconds for which another owner may hold the site."""


GRANTED = Claimed(None, 0.0)
"""The result of a claim in a storage that has no claims."""


class Settings(Protocol):
    """Scrapy's settings, as far as a storage needs them; a dict will do."""

    def __getitem__(self, name: str, /) -> Any:
        """Return the value of the setting *name*."""

    def get(self, name: str, default: Any = None, /) -> Any:
        """Return the value of the setting *name*, *default* if it has none."""


class Storage(Protocol):
    """Keeps what is known of each site.

    Methods are called from any thread, also at the same time. They raise StorageError when the
    storage fails or is closed. Whatever they raise, the crawl goes on without the storage.

    A class may also have ``SETTINGS``, a mapping of names to ``Setting``: its own settings, which
    are checked when a crawl starts.
    """

    blocking: ClassVar[bool]
    """Whether a call may wait for a disk, a lock or a network; it is called in a thread then."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Storage:
        """Open the storage; called in a thread if it is blocking, when it is first needed.

        *settings* has a valid value for each name in ``SETTINGS``.
        """

    def get(self, site: Site) -> Known | None:
        """Return what is known of *site*, None if that is nothing, or cannot be read."""

    def put(self, site: Site, copy: Known) -> None:
        """Keep *copy*, for good on return, unless what is stored ``supersedes`` it."""

    def sites(self) -> Iterator[tuple[Site, Known]]:
        """Iterate over all that is known; sites may be put and forgotten meanwhile."""

    def forget(self, site: Site) -> bool:
        """Forget *site*; return False if nothing was stored for it."""

    def close(self) -> None:
        """Release what is held open; a second call does nothing."""


@runtime_checkable
class Claiming(Protocol):
    """A storage that several processes share, so that one of them fetches a robots.txt.

    A process claims a site before it fetches its robots.txt. An owner is a name that no other
    process has. Without claims each process fetches for itself.
    """

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        """Reserve *site* for *owner* for *secs* from *now*, unless another owner holds it.

        The owner's own claim is prolonged. *now* is in seconds since the epoch; a storage with a
        clock of its own uses that one. With *unless_known* nothing is claimed if something is
        known of the site. All of it is one step: two owners cannot both succeed.
        """

    def put(self, site: Site, copy: Known, owner: str = "") -> None:
        """Keep *copy* as ``Storage.put`` does; in the same step a claim of *owner* ends.

        The claim also ends if *copy* is superseded.
        """

    def release(self, site: Site, owner: str) -> None:
        """End the claim of *owner*, if there is one; a claim of another owner stays."""


@runtime_checkable
class Pacing(Protocol):
    """A storage that keeps the visits of several processes to a host apart (Crawl-delay).

    Without it each process keeps a delay by itself.
    """

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> float:
        """Record a visit to *host* that begins *now* and return 0.0, unless it is too early.

        Visits are to be *secs* apart. If the last one was less than that ago nothing is recorded,
        and the seconds that are left are returned. With *begun* it is recorded in any case. All of
        it is one step.
        """


@runtime_checkable
class Batching(Protocol):
    """A storage that keeps several calls in one step, such as one transaction.

    Without it each call is a step of its own.
    """

    def together(self) -> AbstractContextManager[object]:
        """Return a context: calls made in it, in the same thread, are kept when it ends.

        Each call sees what those before it have done. One that raises leaves the others as they
        are. If the context itself raises, on entry or exit, nothing of its calls is kept. Calls of
        other threads wait. Contexts are not nested.
        """


def held_secs(left_secs: float, secs: float) -> float:
    """Return for how many seconds a claim of *secs* holds that says *left_secs*; 0 if it is void.

    A claim that says more than twice its length was written by a wrong clock.
    """
    return left_secs if 0 < left_secs <= 2 * secs else 0.0
