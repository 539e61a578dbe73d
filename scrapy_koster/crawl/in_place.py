"""The requests that wait *in place*, inside the downloader, where no scheduler can keep them.

These are the requests of media pipelines, of ``engine.download_async``, and of a crawl with another
scheduler. They wait for the first answer of their site (``sites``), or for the lock on their host
(``pacing``).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from scrapy import Request

from scrapy_koster.crawl.clock import Clock, Ticks
from scrapy_koster.crawl.engine.private import Engine

# The time between two checks while a request waits in place. Scrapy has no signal for a crawl that
# begins to close.
_CLOSE_POLL_SECS = 0.5


@dataclass(eq=False)
class InPlace:
    """Counts the waits in place, and has them ended when the crawl begins to close."""

    clock: Clock
    engine: Engine

    def __post_init__(self) -> None:
        """Begin without waits."""
        self._count = 0
        self._ticks: Ticks | None = None
        self._end_all: Callable[[], object] = lambda: None

    def when_closing(self, end_all: Callable[[], object]) -> None:
        """Have *end_all*, which ends all waits in place, called when the crawl begins to close."""
        self._end_all = end_all

    @contextmanager
    def waiting(self, request: Request | None) -> Iterator[None]:
        """Return the context of a wait in place.

        *request* takes up no CONCURRENT_REQUESTS slot within this context. If the scheduler parks
        no requests, it takes up one, because only the slots limit waiting requests then. None for
        a wait without a request, or for a request that keeps its slot.
        """
        requests = self.engine.hooks.in_place
        self._count += 1
        if request is not None:
            requests.add(request)
            self.engine.wake()  # there may be a free place
        if self._ticks is None:
            self._ticks = Ticks(self.clock, _CLOSE_POLL_SECS, self._look)
        try:
            yield
        finally:
            self._count -= 1
            if request is not None:
                requests.discard(request)
            if not self._count and self._ticks is not None:
                self._ticks.stop()
                self._ticks = None

    def _look(self) -> None:
        if self.engine.is_closing:
            self._end_all()
