"""The inner scheduler, which DeferringScheduler wraps (KOSTER_FALLBACK_SCHEDULER)."""

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

_KEPT = "They are kept for the next run: start the same crawl again to go on"
_LOST = ". Those that cannot be written there: {}"
_GIVEN_BACK = "They go back to the scheduler that is wrapped, which may keep them"
_DROPPED = "They are dropped: set {} to keep them for the next run"


class InnerScheduler:
    """The inner scheduler: requests come from it, and some return to it when the crawl ends."""

    def __init__(self, crawler: Crawler, scheduler: BaseScheduler, *, folder: Path | None) -> None:
        """*folder* is the JOBDIR if the scheduler keeps its requests there, else None."""
        self._scheduler = scheduler
        self._log = Log(__name__, crawler)
        self._is_broken = False
        self._is_scrapys = is_scrapys(type(scheduler))
        self._folder = folder
        persist = getattr(scheduler, "persist", None)  # of scrapy-redis
        self.keeps_requests = folder is not None if persist is None else bool(persist)
        """Whether the next run finds the requests in the scheduler."""
        self.takes_back = self.keeps_requests or (persist is None and not self._is_scrapys)
        """Whether the next run may find requests that are given back when the crawl ends."""

    def fate(self, unwritten: int) -> str:
        """Return the words of the log about requests that still wait when the crawl ends.

        *unwritten* is the number of requests that could not be written.
        """
        if self.keeps_requests:
            return f"{_KEPT}{_LOST.format(unwritten) if unwritten else ''}"
        if self.takes_back:
            return _GIVEN_BACK
        return _DROPPED.format("JOBDIR" if self._is_scrapys else "SCHEDULER_PERSIST = True")

    def mark_seen(self, request: Request) -> None:
        """Add *request* to the dupefilter. A process that was killed may not have saved it."""
        dupefilter = dupefilter_of(self._scheduler)
        if dupefilter is not None and not request.dont_filter:
            dupefilter.request_seen(request)

    def take_back(self, requests: Iterable[Request]) -> None:
        """Enqueue *requests* again, although the dupefilter has seen them."""
        for request in requests:
            self._scheduler.enqueue_request(request.replace(dont_filter=True))

    def has_pending_requests(self) -> bool:
        """Return whether there are requests that can be read."""
        return not self._is_broken and self._scheduler.has_pending_requests()

    def next_request(self) -> Request | None:
        """Return the next request, or None.

        In a JOBDIR the disk queue of Scrapy stores the number of its requests when it is closed. If
        a crawl was killed, requests may be missing. The queue raises, and the request is skipped.
        """
        left = math.inf
        while True:
            try:
                request = self._scheduler.next_request()
            except Exception as error:
                if self._folder is None:
                    raise
                self._tell(error)
                # Only after an error: len() adds up all queues.
                before, left = left, len(self._scheduler)  # type: ignore[arg-type]
                self._is_broken = left >= before
                if self._is_broken:
                    return None
            else:
                self._is_broken = False
                return request

    def _tell(self, error: Exception) -> None:
        if self._log.is_first("broken"):
            self._log.defect(
                "Part of the queue in the JOBDIR cannot be read, probably because a run was killed."
                " These requests are not crawled, the others are",
                error,
            )


def is_scrapys(scheduler: type) -> bool:
    """Return whether *scheduler* is Scrapy's scheduler, or a subclass."""
    # issubclass() is true for any class with the methods of a scheduler.
    return Scheduler in scheduler.__mro__


def folder_of(scheduler: type, settings: BaseSettings) -> Path | None:
    """Return the JOBDIR, or None if the inner *scheduler* keeps no requests there."""
    folder = job_dir(settings)
    return Path(folder) if folder and is_scrapys(scheduler) else None
