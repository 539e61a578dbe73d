"""The scheduler that is wrapped: what of it differs from one to another."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.utils.job import job_dir

from scrapy_koster.crawl.engine.private import dupefilter_of
from scrapy_koster.crawl.messages.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_RETURNED = "koster_returned"
_KEPT = "They are kept for the next run: start the same crawl again to go on"
_GIVEN_BACK = "They go back to the scheduler that is wrapped, which may keep them"
_DROPPED = "They are dropped: set {} to keep them for the next run"


class Wrapped:
    """Takes requests from the wrapped scheduler, and gives some back to it."""

    def __init__(self, crawler: Crawler, scheduler: BaseScheduler, *, folder: Path | None) -> None:
        """*folder* is the JOBDIR, if the scheduler keeps its requests there."""
        self._scheduler = scheduler
        self._log = Log(__name__, crawler)
        self._is_broken = False
        self._told = False
        self._is_scrapys = is_scrapys(type(scheduler))
        self._folder = folder
        self._is_silent: Callable[[], bool] | None = None

    def leave_alone_while(self, is_silent: Callable[[], bool]) -> None:
        """Do not ask the scheduler for requests while *is_silent*: the crawl would stand still."""
        self._is_silent = is_silent

    @property
    def keeps_requests(self) -> bool:
        """Whether what it holds when the crawl ends is known to be there for the next run."""
        # That of scrapy-redis says whether it empties its queue at the end.
        return bool(getattr(self._scheduler, "persist", self._folder is not None))

    @property
    def takes_back(self) -> bool:
        """Whether it may keep what it is given when the crawl ends."""
        return bool(getattr(self._scheduler, "persist", self._folder or not self._is_scrapys))

    @property
    def fate(self) -> str:
        """What becomes of requests that still wait when the crawl ends."""
        if self.keeps_requests:
            return _KEPT
        if self.takes_back:
            return _GIVEN_BACK
        return _DROPPED.format("JOBDIR" if self._is_scrapys else "SCHEDULER_PERSIST = True")

    def mark_seen(self, request: Request) -> None:
        """Have the dupefilter know *request*: a process that was killed may not have said so."""
        dupefilter = dupefilter_of(self._scheduler)
        if dupefilter is not None and not request.dont_filter:
            dupefilter.request_seen(request)

    def give_back(self, requests: Iterable[Request]) -> str:
        """Have the scheduler take these again, although it has seen them; return their fate."""
        count = 0
        for count, request in enumerate(requests, 1):  # noqa: B007  # how many there were
            self._scheduler.enqueue_request(_returned(request))
        if count and self._folder is not None:  # there they are what its file did not take
            return f"{self.fate}. Those that cannot be written there: {count}"
        return self.fate

    def has_pending_requests(self) -> bool:
        """Whether it has requests that can be read, or cannot say."""
        if self._is_silent is not None and self._is_silent():
            return True
        return not self._is_broken and self._scheduler.has_pending_requests()

    def next_request(self) -> Request | None:
        """Return its next request, None if it has none now."""
        if self._is_silent is not None and self._is_silent():
            return None
        if self._folder is None:
            request = self._scheduler.next_request()
        else:
            request = self._next_that_can_be_read()
        if request is not None and request.meta.pop(_RETURNED, False):
            # A redirect of this request must meet the dupefilter again.
            request = request.replace(dont_filter=False)
        return request

    def _next_that_can_be_read(self) -> Request | None:
        """Pass over what Scrapy's own disk queues raise for.

        They note how many requests they have when they are closed. In the
        JOBDIR of a crawl that was killed that may be more than there are, and
        they raise for each of these whenever they are asked.
        """
        left = math.inf
        while True:
            try:
                request = self._scheduler.next_request()
            except Exception as error:  # noqa: BLE001  # a queue may be anybody's
                self._tell(error)
                # Not before there is an error: it sums over all queues.
                before, left = left, len(self._scheduler)  # type: ignore[arg-type]
                self._is_broken = left >= before
                if self._is_broken:
                    return None
            else:
                self._is_broken = False
                return request

    def _tell(self, error: Exception) -> None:
        if not self._told:
            self._told = True
            self._log.defect(
                "Part of the queue in the JOBDIR cannot be read, probably because a run was killed."
                " These requests are not crawled, the others are",
                error,
            )


def is_scrapys(scheduler: type) -> bool:
    """Return whether it is Scrapy's scheduler, or a subclass."""
    # Not issubclass(), which is true of whatever has a scheduler's methods.
    return Scheduler in scheduler.__mro__


def folder_of(scheduler: type, settings: BaseSettings) -> Path | None:
    """Return the JOBDIR, None if the *scheduler* that is wrapped keeps no requests there."""
    folder = job_dir(settings)
    return Path(folder) if folder and is_scrapys(scheduler) else None


def _returned(request: Request) -> Request:
    """Return a copy that the scheduler takes although it has seen it."""
    if request.dont_filter:
        return request
    return request.replace(dont_filter=True, meta={**request.meta, _RETURNED: True})
