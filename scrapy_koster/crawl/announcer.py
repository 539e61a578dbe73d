"""What a crawl says and counts of its sites, up to the summary at its end."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING

from scrapy_koster.crawl.log import Log
from scrapy_koster.crawl.sites import SiteState, Standing
from scrapy_koster.protocol.access import (
    Access,
    Answer,
    Copy,
    Failure,
    Known,
    NoAnswer,
    Policy,
    access,
)
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, Step

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.stats import Stats


class _Learnt(Enum):
    """How a copy came to be known."""

    FETCHED = "fetched"
    FROM_STORAGE = "from storage"
    REVALIDATED = "revalidated"


_STANDING = {
    Access.RULES: Standing.OBEYED,
    Access.UNRESTRICTED: Standing.WITHOUT_ROBOTS_TXT,
    Access.RESTRICTED: Standing.RESTRICTED,
}


class Announcer:
    """Says once what becomes of each site, and counts it."""

    def __init__(self, crawler: Crawler, policy: Policy, stats: Stats) -> None:
        self._crawler = crawler
        self._policy = policy
        self._stats = stats
        self._log = Log(__name__, crawler)
        self._sites: Counter[Standing] = Counter()
        self._copies: Counter[_Learnt] = Counter()

    def from_storage(self) -> None:
        """A copy was found in the storage, and is fresh."""
        self._copies[_Learnt.FROM_STORAGE] += 1

    def answered(self, result: Answer | NoAnswer, known: Known) -> None:
        """A site was asked, and *known* is what is known now."""
        match result, known:
            case Answer(status=304), Copy():
                self._stats.revalidated()
                self._copies[_Learnt.REVALIDATED] += 1
            case _, Copy():
                self._copies[_Learnt.FETCHED] += 1
            case _:
                pass

    def cut(self, state: SiteState, cut_bytes: int) -> None:
        """Only the first *cut_bytes* octets of the site's file are read."""
        self._stats.cut()
        self._log.info(
            "The robots.txt of %(site)s is longer than KOSTER_MAX_BYTES = %(cut_bytes)d: what is"
            " behind the last whole line of these is not read",
            site=state.site,
            cut_bytes=cut_bytes,
        )

    def failed(self, state: SiteState, error: BaseException) -> None:
        """Something that is ours went wrong."""
        self._log.defect(
            "Error while asking for the robots.txt of %(site)s", error, site=state.site
        )

    def awaited(self, state: SiteState) -> None:
        """Somebody waits for a page of the site, which is being asked."""
        self._log.info("Waiting for the robots.txt of %(site)s", site=state.site)

    def begins_to_wait(self, state: SiteState) -> None:
        """Count a request that waits for a site which is deferred already.

        Those from before are counted when that is announced.
        """
        if state.standing is Standing.UNAVAILABLE:
            self._stats.requests_deferred(1)

    def announce(self, state: SiteState, step: Step) -> None:
        """Say what the step for a site has become, if it is news."""
        before = state.standing
        match step:
            case Obey(copy):
                self._count(state, _STANDING[access(copy, self._policy)])
                if before is Standing.UNAVAILABLE:
                    self._answers_again(state, copy)
            case Defer(failure) if before is not Standing.UNAVAILABLE:
                self._count(state, Standing.UNAVAILABLE)
                self._deferred(state, failure)
            case Refuse(failure):
                self._count(state, Standing.UNAVAILABLE)
                if state.wanted:
                    self._given_up(state, failure)
            case Pass():
                self._count(state, Standing.UNAVAILABLE)
            case Defer() | Ask():
                pass

    def _count(self, state: SiteState, standing: Standing) -> None:
        if state.standing is not None:
            self._sites[state.standing] -= 1
        self._sites[standing] += 1
        state.standing = standing

    def _answers_again(self, state: SiteState, copy: Copy) -> None:
        self._log.info(
            "%(site)s answers again: HTTP %(status)d", site=state.site, status=copy.status
        )

    def _deferred(self, state: SiteState, failure: Failure) -> None:
        self._stats.site_deferred()
        self._stats.requests_deferred(state.wanted)
        self._log.info(
            "Deferring visits to %(site)s: its robots.txt cannot be retrieved (%(reason)s)."
            " Requests that wait: %(wanted)d. It is asked again in %(secs).0f seconds",
            site=state.site,
            reason=failure.reason,
            wanted=state.wanted,
            secs=failure.retry - failure.asked,
        )

    def _given_up(self, state: SiteState, failure: Failure) -> None:
        self._log.info(
            "Giving up %(site)s: its robots.txt cannot be retrieved (%(reason)s), attempts:"
            " %(attempts)d. Requests that are refused: %(wanted)d",
            site=state.site,
            reason=failure.reason,
            attempts=failure.attempts,
            wanted=state.wanted,
        )

    def sum_up(self) -> None:
        """Say at the end of the crawl what became of all sites."""
        get = self._crawler.stats.get_value
        if hazards := get("koster/hazard/wildcards", 0):
            self._log.warning(
                "Files with wildcards in the record that was obeyed: %(hazards)d", hazards=hazards
            )
        self._log.info(
            "Sites: %(obeyed)d obeyed, %(without robots.txt)d without robots.txt,"
            " %(restricted)d restricted, %(unavailable)d unavailable. Requests refused:"
            " %(refused)d. Copies of robots.txt: %(fetched)d fetched, %(from storage)d from"
            " storage, %(revalidated)d revalidated",
            **{standing.value: self._sites[standing] for standing in Standing},
            **{learnt.value: self._copies[learnt] for learnt in _Learnt},
            refused=get("robotstxt/forbidden", 0),
        )
