"""Requests that wait for their site inside the downloader, not in the scheduler.

Those of media pipelines and of ``engine.download_async`` never pass the
scheduler; in a crawl with another scheduler it is all of them.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from scrapy_koster.crawl.clock import LONG_AGO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock, Ticks
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.keeping.patience import Patience

# Scrapy sends no signal when a crawl begins to close, nor one when it is idle but
# for these requests: while there are some, that is looked up this often.
_LOOK_SECS = 0.5


class Movement:
    """Notes when something was last scheduled, fetched or scraped.

    A response is being scraped while its item waits for the picture of another item, and while
    its callback waits for another callback: nobody can tell that from work. So what moves nothing
    for *limit_secs* is no work any more.
    """

    def __init__(self, engine: Engine, clock: Clock, limit_secs: float) -> None:
        self._engine = engine
        self._clock = clock
        self._limit_secs = limit_secs
        self._last = LONG_AGO
        self._is_new = True
        """Whether something has moved since this was last asked."""
        self._scraped_count = 0
        self._end: Callable[[], None] | None = None

    def begin(self) -> None:
        """Look from now on."""
        self._end = self._engine.when_moving(self.noted)
        self.noted()

    def end(self) -> None:
        """Look no more."""
        if self._end is not None:
            self._end()
            self._end = None

    def noted(self) -> None:
        """Something moves."""
        self._last = self._clock.now()
        self._is_new = True

    def has_ended(self, waiting: int) -> bool:
        """Whether nothing has moved since this was last asked, and nothing else is being done.

        *waiting*: requests that wait in place, each for a response that is being scraped.
        """
        if (scraped_count := self._engine.scraped_count) != self._scraped_count:
            self._scraped_count = scraped_count
            self.noted()
        is_new, self._is_new = self._is_new, False
        if is_new:
            return False
        return scraped_count <= waiting or self._clock.now() - self._last >= self._limit_secs


class InPlace:
    """Lets the crawl go on, become idle and close while requests wait in place."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        *,
        patience: Patience,
        movement: Movement,
        close: Callable[[], None],
    ) -> None:
        """*close* is called when the crawl has begun to close."""
        self._engine = engine
        self._clock = clock
        self._patience = patience
        self._movement = movement
        self._close = close
        self._requests: Counter[Request] = Counter()
        """How many times each waits: somebody may download the same one twice at once."""
        self._watch: Ticks | None = None

    def __len__(self) -> int:
        return len(self._requests)

    @contextmanager
    def waiting(self, request: Request, *, gives_place: bool) -> Iterator[None]:
        """Have *request* wait meanwhile.

        With *gives_place* it holds no place of CONCURRENT_REQUESTS. In a crawl
        whose scheduler holds nothing back those places are all that bounds how
        many requests wait.
        """
        self._requests[request] += 1
        if self._watch is None:
            self._watch = self._clock.every(_LOOK_SECS, self._look)
            self._movement.begin()
        try:
            with self._engine.place_given_up(request) if gives_place else nullcontext():
                yield
        finally:
            self._requests[request] -= 1
            if not self._requests[request]:
                del self._requests[request]
            if not self._requests:
                self._watch.stop()
                self._watch = None
                self._movement.end()

    def _look(self) -> None:
        if self._engine.is_closing:
            self._close()
        elif not self._engine.has_nothing_else(self._requests):
            self._movement.noted()
            self._patience.busy()
        elif self._movement.has_ended(len(self._requests)):
            self._patience.idle()
        else:
            self._patience.busy()
