"""The stats of a crawl: one method for each fact that is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector

    from scrapy_koster.protocol.standing import Ground


class Stats:
    """Writes the facts of docs/stats.md.

    A fact that Scrapy's own middleware counts has Scrapy's name for it.
    """

    def __init__(self, collector: StatsCollector) -> None:
        self._collector = collector

    def inc(self, name: str, count: Any = 1) -> None:
        """Add *count* to the stat *name*."""
        self._collector.inc_value(name, count)

    def asked(self) -> None:
        """A site was asked for its robots.txt."""
        self.inc("robotstxt/request_count")

    def answered(self, status: int) -> None:
        """A site answered, redirects followed."""
        self.inc("robotstxt/response_count")
        self.inc(f"robotstxt/response_status_count/{status}")

    def raised(self, error: BaseException) -> None:
        """The request for a robots.txt ended with *error*."""
        self.inc(f"robotstxt/exception_count/{type(error)}")

    def forbidden(self, ground: Ground) -> None:
        """A request was refused."""
        self.inc("robotstxt/forbidden")
        self.inc(f"koster/forbidden/{ground.value}")

    def parked(self, count: int) -> None:
        """Requests still waited for their site when the crawl ended."""
        self.inc("koster/parked", count)

    def delay_met(self, *, is_clamped: bool) -> None:
        """A site asks for a delay; it is kept, or *is_clamped* to a shorter one, or refused."""
        self.inc("koster/crawl_delay/sites")
        if is_clamped:
            self.inc("koster/crawl_delay/clamped")

    def paced(self, secs: float) -> None:
        """A host that requests wait for is to be waited for so long; less than 0: not after all."""
        self.inc("koster/crawl_delay/waited_seconds", secs)

    def archived(self, records: int) -> None:
        """So many records were written to the archive."""
        self.inc("koster/archive/records", records)

    def archive_error(self) -> None:
        """The archive could not be written."""
        self.inc("koster/archive/error")

    def storage_hit(self) -> None:
        """What is known of a site was found in the storage."""
        self.inc("koster/storage/hit")

    def storage_miss(self) -> None:
        """Nothing was found of a site in the storage."""
        self.inc("koster/storage/miss")

    def storage_error(self) -> None:
        """The storage failed; that counts as a miss."""
        self.inc("koster/storage/error")
