"""The requests that the last run has left behind in the JOBDIR."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING

from scrapy_koster.crawl.parking.identity import digest
from scrapy_koster.protocol.site import site_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


class LastRun:
    """Which requests wait from the last run, so that none of them is crawled twice.

    A process that was killed may not have taken a request out of Scrapy's queue
    on disk when it parked it, and a spider requests its start URLs in each run.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.waiting: Counter[bytes] = Counter()
        """How often each is still to be found, by what tells it from others."""
        self._first: OrderedDict[str, Request] = OrderedDict()

    def add(self, request: Request) -> None:
        """Note that *request* waits."""
        if (known_by := self._known_by(request)) is not None:
            self.waiting[known_by] += 1
        self._first.setdefault(str(site_of(request.url)), request)

    @property
    def is_new(self) -> bool:
        """Whether there is something for ``take_first``."""
        return bool(self._first)

    def take_first(self) -> tuple[str, Request]:
        """Return the next site and a request to it, for which it is to be asked; each once."""
        return self._first.popitem(last=False)

    def has(self, request: Request) -> bool:
        """Return whether *request* is one that waits; each is found once."""
        known_by = self._known_by(request)
        if known_by is None or known_by not in self.waiting:
            return False
        self.waiting[known_by] -= 1
        if not self.waiting[known_by]:
            del self.waiting[known_by]  # once all were found, nothing is looked up any more
        return True

    def _known_by(self, request: Request) -> bytes | None:
        """Return what tells it from others, None if it cannot have been written to a file."""
        try:
            fields = request.to_dict(spider=self._crawler.spider)
        except Exception:  # noqa: BLE001  # its callback is no method of the spider, or worse
            return None
        said = [fields[name] for name in ("callback", "errback", "cb_kwargs", "meta")]
        fingerprinter = self._crawler.request_fingerprinter
        assert fingerprinter is not None  # a crawl has one
        return fingerprinter.fingerprint(request) + digest(said)
