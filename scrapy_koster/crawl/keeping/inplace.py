"""Requests that wait for their site inside the downloader, not in the scheduler.

Those of media pipelines and of ``engine.download_async`` never pass the
scheduler; in a crawl with another scheduler it is all of them.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock, Ticks
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.keeping.patience import Patience

# Scrapy sends no signal when a crawl begins to close, nor one when it is idle but
# for these requests: while there are some, that is looked up this often.
_LOOK_SECS = 0.5


class InPlace:
    """Lets the crawl go on, become idle and close while requests wait in place."""

    def __init__(
        self, engine: Engine, clock: Clock, patience: Patience, close: Callable[[], None]
    ) -> None:
        """*close* is called when the crawl has begun to close."""
        self._engine = engine
        self._clock = clock
        self._patience = patience
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

    def _look(self) -> None:
        if self._engine.is_closing:
            self._close()
        elif self._engine.has_nothing_else(self._requests):
            self._patience.idle()
        else:
            self._patience.busy()
