"""What the keeper is given: the requests that wait elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from scrapy_koster.crawl.keeping.fate import Fate
    from scrapy_koster.crawl.sites import SiteState
    from scrapy_koster.protocol.step import Step


class Parked(Protocol):
    """The requests that wait in the scheduler. See ``parking.waiting``."""

    @property
    def is_open(self) -> bool:
        """Whether the scheduler of the crawl holds requests back."""

    @property
    def is_kept(self) -> bool:
        """Whether what is parked when the crawl ends is there for the next run."""

    def count(self, state: SiteState) -> int:
        """Return how many requests wait for the site."""

    def settled(self, state: SiteState, fate: Fate, step: Step) -> None:
        """Take note of what becomes of them, and of the step by which they are decided."""


class NothingParked:
    """No scheduler holds anything back."""

    is_open = is_kept = False

    def count(self, state: SiteState) -> int:  # noqa: ARG002
        """Return 0."""
        return 0

    def settled(self, state: SiteState, fate: Fate, step: Step) -> None:
        """Nobody waits."""


class TurnPacer(Protocol):
    """The requests that wait for a turn of their host. See ``pacing.pacer``."""

    def is_waited_for(self, state: SiteState) -> bool:
        """Whether requests to the site wait in place for a turn of its host."""

    def close(self) -> None:
        """Give no turn any more."""
