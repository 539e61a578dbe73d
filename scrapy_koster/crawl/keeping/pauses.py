"""A crawl that the user pauses: what would happen to sites meanwhile is put off until its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.sites import SiteState

    Over: TypeAlias = Callable[[float, Iterable[SiteState]], None]


class Pauses:
    """Measures how long a crawl is paused, and keeps the sites that had their turn meanwhile."""

    def __init__(self, clock: Clock, over: Over) -> None:
        """*over* is called at the end of a pause, with its seconds and those sites."""
        self._clock = clock
        self._over = over
        self._began: Instant | None = None
        self._put_off: dict[SiteState, None] = {}

    @property
    def is_on(self) -> bool:
        """Whether the crawl is paused."""
        return self._began is not None

    def put_off(self, state: SiteState) -> None:
        """Have the site dealt with when the pause is over."""
        self._put_off[state] = None

    def begin(self) -> None:
        """The crawl is paused."""
        if self._began is None:
            self._began = self._clock.now()

    def end(self) -> None:
        """The crawl goes on."""
        if self._began is not None:
            secs, self._began = self._clock.now() - self._began, None
            put_off, self._put_off = self._put_off, {}
            self._over(secs, put_off)
