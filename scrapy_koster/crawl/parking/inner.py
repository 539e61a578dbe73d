"""The inner scheduler: the one that DeferringScheduler wraps (KOSTER_FALLBACK_SCHEDULER)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.utils.job import job_dir

from scrapy_koster.crawl.engine.private import dupefilter_of
from scrapy_koster.crawl.messages.log import Log

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_RETURNED = "koster_returned"
_KEPT = "They are kept for the next run: start the same crawl again to go on"
_GIVEN_BACK = "They go back to the scheduler that is wrapped, which may keep them"
_DROPPED = "They are dropped: set {} to keep them for the next run"


class InnerScheduler:
    """Takes requests from the inner scheduler, and gives some back when the crawl ends."""

    def __init__(self, crawler: Crawler, scheduler: BaseScheduler, *, folder: Path | None) -> None:
        """*folder* is the JOBDIR, if the scheduler keeps its requests there."""
        self._scheduler = scheduler
        self._log = Log(__name__, crawler)
        self._is_broken = False
        self._has_told = False
        self._is_scrapys = is_scrapys(type(scheduler))
        self._folder = folder
        persist = getattr(scheduler, "persist", None)  # of scrapy-redis
        self.keeps_requests = folder is not None if persist is None else bool(persist)
        """Whether the next run finds the requests that it has when the crawl ends."""
        self.takes_back = self.keeps_requests or (persist is None and not self._is_scrapys)
        """Whether the next run may find the requests that it gets when the crawl ends."""

    @property
    def fate(self) -> str:
        """What becomes of requests that still wait when the crawl ends, for the log."""
        if self.keeps_requests:
            return _KEPT
        if self.takes_back:
            return _GIVEN_BACK
        return _DROPPED.format("JOBDIR" if self._is_scrapys else "SCHEDULER_PERSIST = True")

    def mark_seen(self, request: Request) -> None:
        """Tell the dupefilter of *request*: a process that was killed may not have written it."""
        dupefilter = dupefilter_of(self._scheduler)
        if dupefilter is not None and not request.dont_filter:
            dupefilter.request_seen(request)

    def take_back(self, requests: Iterable[Request]) -> str:
        """Have the scheduler take *requests* that it has seen; return what becomes of them."""
        count = 0
        for count, request in enumerate(requests, 1):  # noqa: B007  # how many there were
            self._scheduler.enqueue_request(_returned(request))
        if count and self._folder is not None:  # only those that the file did not take
            return f"{self.fate}. Those that cannot be written there: {count}"
        return self.fate

    def has_pending_requests(self) -> bool:
        """Return whether it has requests that can be read, or cannot say."""
        return not self._is_broken and self._scheduler.has_pending_requests()

    def next_request(self) -> Request | None:
        """Return its next request, None if it has none now."""
        if self._folder is None:
            request = self._scheduler.next_request()
        else:
            request = self._next_that_can_be_read()
        if request is not None and request.meta.pop(_RETURNED, False):
            # A redirect of this request must meet the dupefilter again.
            request = request.replace(dont_filter=False)
        return request

    def _next_that_can_be_read(self) -> Request | None:
        """Return the next request, without those for which the disk queues of Scrapy raise.

        A disk queue stores the number of its requests when it is closed. In the JOBDIR of a crawl
        that was killed there may be fewer, and the queue raises for each that is missing.
        """
        left = math.inf
        while True:
            try:
                request = self._scheduler.next_request()
            except Exception as error:  # noqa: BLE001  # a queue may be of any class
                self._tell(error)
                # Not before there is an error: len() sums over all queues.
                before, left = left, len(self._scheduler)  # type: ignore[arg-type]
                self._is_broken = left >= before
                if self._is_broken:
                    return None
            else:
                self._is_broken = False
                return request

    def _tell(self, error: Exception) -> None:
        if not self._has_told:
            self._has_told = True
            self._log.defect(
                "Part of the queue in the JOBDIR cannot be read, probably because a run was killed."
                " These requests are not crawled, the others are",
                error,
            )


def is_scrapys(scheduler: type) -> bool:
    """Return whether it is Scrapy's scheduler, or a subclass."""
    # Not issubclass(), which is true of any class with the methods of a scheduler.
    return Scheduler in scheduler.__mro__


def folder_of(scheduler: type, settings: BaseSettings) -> Path | None:
    """Return the JOBDIR, None if the inner *scheduler* keeps no requests there."""
    folder = job_dir(settings)
    return Path(folder) if folder and is_scrapys(scheduler) else None


def _returned(request: Request) -> Request:
    """Return a copy that the scheduler takes although it has seen it."""
    if request.dont_filter:
        return request
    return request.replace(dont_filter=True, meta={**request.meta, _RETURNED: True})
