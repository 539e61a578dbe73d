"""What happens to a waiting request: a pure function of what is known, and of the crawl.

``protocol.step`` says what to do with a request to a site. This says what becomes of a request
that waits for that site, by what else the crawl has to do. docs/architecture.md has the whole
table, which is generated from here.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse

if TYPE_CHECKING:
    from scrapy_koster.protocol.step import Step


class Crawl(Enum):
    """What a crawl has to do besides waiting for sites."""

    BUSY = "busy"
    """There are requests to download, or pages to scrape."""
    IDLE = "idle"
    """There is nothing else to do, for less than KOSTER_IDLE_LIMIT_SECS."""
    OVER = "over"
    """There has been nothing else to do for KOSTER_IDLE_LIMIT_SECS."""
    CLOSING = "closing"
    """The crawl has begun to close."""


class Place(Enum):
    """Where a request waits."""

    IN_PLACE = "in place"
    """Inside the downloader: it never passed a scheduler that holds requests back."""
    PARKED = "parked"
    """In the scheduler, in a crawl whose requests end with it."""
    KEPT = "parked and kept"
    """In the scheduler, in a crawl whose queue is kept for the next run."""


class Fate(Enum):
    """What becomes of a request that waits."""

    WAIT = auto()
    """It waits on."""
    GO = auto()
    """It goes on, and is decided by the copy, or passes (KOSTER_UNAVAILABLE = "allow")."""
    GIVE_UP = auto()
    """It is refused: RobotsUnavailable."""
    KEEP = auto()
    """It stays where it is parked, for the next run, or until the scheduler hands it back."""


def fate(step: Step, crawl: Crawl, place: Place, *, has_failed: bool) -> Fate:
    """Return what becomes of a request in *place* whose site has this *step*.

    *has_failed*: the last attempt at the site failed, and it is not fetched from at this moment.
    """
    match step:
        case Obey() | Pass():
            return Fate.GO
        case Refuse():
            return Fate.GIVE_UP
        case Ask() | Defer():  # pragma: no branch
            return _waiting(crawl, place, has_failed=has_failed)


def _waiting(crawl: Crawl, place: Place, *, has_failed: bool) -> Fate:
    match crawl, place:
        case Crawl.CLOSING, Place.IN_PLACE:
            return Fate.GIVE_UP
        case Crawl.CLOSING, _:
            return Fate.KEEP
        case Crawl.OVER, Place.KEPT if has_failed:
            return Fate.KEEP
        case Crawl.OVER, _ if has_failed:
            return Fate.GIVE_UP
        case _:
            return Fate.WAIT
