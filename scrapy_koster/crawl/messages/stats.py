"""The stats of a crawl: one method for each fact that is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector

    from scrapy_koster.protocol.hazard import Cause
    from scrapy_koster.protocol.html_page import HtmlPage
    from scrapy_koster.protocol.standing import Ground
    from scrapy_koster.protocol.usage import Preference


class Stats:
    """Writes the facts of docs/stats.md.

    A fact that Scrapy's own middleware counts has Scrapy's name for it.
    """

    def __init__(self, collector: StatsCollector) -> None:
        self._collector = collector

    def _inc(self, name: str, count: Any = 1) -> None:
        self._collector.inc_value(name, count)

    def asked(self) -> None:
        """A site was asked for its robots.txt."""
        self._inc("robotstxt/request_count")

    def answered(self, status: int) -> None:
        """A site answered, redirects followed."""
        self._inc("robotstxt/response_count")
        self._inc(f"robotstxt/response_status_count/{status}")

    def raised(self, error: BaseException) -> None:
        """The request for a robots.txt ended with *error*."""
        self._inc(f"robotstxt/exception_count/{type(error)}")

    def revalidated(self) -> None:
        """A stale copy was renewed by 304."""
        self._inc("koster/revalidated")

    def forbidden(self, ground: Ground) -> None:
        """A request was refused."""
        self._inc("robotstxt/forbidden")
        self._inc(f"koster/forbidden/{ground.value}")

    def overridden(self) -> None:
        """An override let a request pass that its site forbids."""
        self._inc("koster/override/allowed")

    def link_filtered(self) -> None:
        """A link was dropped before it was queued: with KOSTER_FILTER_LINKS."""
        self._inc("koster/links/filtered")

    def would_be_forbidden(self) -> None:
        """A request was not refused because of KOSTER_DRY_RUN."""
        self._inc("koster/dry_run/forbidden")

    def site_deferred(self) -> None:
        """Visits to a site began to be deferred."""
        self._inc("koster/deferred/sites")

    def requests_deferred(self, count: int) -> None:
        """Requests began to wait for a site that is deferred."""
        if count:
            self._inc("koster/deferred/requests", count)

    def request_dropped(self) -> None:
        """A request was given up together with its site: with KOSTER_UNAVAILABLE = "defer"."""
        self._inc("koster/deferred/dropped")

    def parked(self, count: int) -> None:
        """Requests still waited for their site when the crawl ended."""
        self._inc("koster/parked", count)

    def hazard_met(self, cause: Cause, *, is_new: bool) -> None:
        """A page was let through that RFC 9309 forbids; *is_new*: the first of its site."""
        self._inc("koster/hazard/urls")
        self._inc(f"koster/hazard/urls/{cause.value}")
        if is_new:
            self._inc(f"koster/hazard/sites/{cause.value}")

    def delay_met(self, *, is_clamped: bool) -> None:
        """A site asks for a delay; it is kept, or *is_clamped* to a shorter one, or refused."""
        self._inc("koster/crawl_delay/sites")
        if is_clamped:
            self._inc("koster/crawl_delay/clamped")

    def delay_refused(self) -> None:
        """A request was refused because of its site's delay."""
        self._inc("koster/crawl_delay/refused")

    def paced(self, secs: float) -> None:
        """A host that requests wait for is to be waited for so long; less than 0: not after all."""
        self._inc("koster/crawl_delay/waited_seconds", secs)

    def html_page_met(self, page: HtmlPage | None) -> None:
        """A site answered with *page*, which may be a challenge; None: with a file."""
        if page is not None:
            self._inc("koster/html/pages")
            if page.challenge:
                self._inc("koster/html/challenges")

    def cut(self) -> None:
        """A file was met that is longer than KOSTER_MAX_BYTES."""
        self._inc("koster/cut")

    def dropped(self, directive: str) -> None:
        """What a page yielded was dropped because of its *directive*."""
        self._inc(f"koster/meta/{directive}")

    def archived(self, records: int) -> None:
        """So many records were written to the archive."""
        self._inc("koster/archive/records", records)

    def archive_error(self) -> None:
        """The archive could not be written."""
        self._inc("koster/archive/error")

    def usage_stated(self, label: str, preference: Preference) -> None:
        """A page was fetched of which something is stated about the use *label*."""
        self._inc(f"koster/usage/{label}/{preference.name.lower()}")

    def usage_dropped(self) -> None:
        """An item was dropped because its page may not be used for a purpose of the crawl."""
        self._inc("koster/usage/dropped")

    def usage_refused(self) -> None:
        """A request was refused because its page may not be used for a purpose of the crawl."""
        self._inc("koster/usage/refused")

    def storage_hit(self) -> None:
        """What is known of a site was found in the storage."""
        self._inc("koster/storage/hit")

    def storage_miss(self) -> None:
        """Nothing was found of a site in the storage."""
        self._inc("koster/storage/miss")

    def storage_error(self) -> None:
        """The storage failed; that counts as a miss."""
        self._inc("koster/storage/error")
