"""Learning what is known of sites as a crawl does, in a crawl of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

from scrapy_koster.crawl.assembly import build_sites, storage_of
from scrapy_koster.crawl.clock import clock_of
from scrapy_koster.crawl.config import config_of
from scrapy_koster.crawl.fetching.fetcher import Fetcher
from scrapy_koster.crawl.fetching.storage_calls import StorageCalls
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.messages.stats import Stats
from scrapy_koster.protocol.access import Answer, Copy
from scrapy_koster.protocol.policy import Unavailable
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.step import Obey, Pass, Refuse, waits
from scrapy_koster.protocol.usage_lines import UsageLines, usage_lines
from scrapy_koster.protocol.verdict import Source
from scrapy_koster.signals import robots_retrieved
from scrapy_koster.storage.port import GRANTED, Claimed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser

    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.sites import Sites
    from scrapy_koster.protocol.access import Known, NoAnswer

QUIET: dict[str, Any] = {
    # It runs beside the project's crawls, and must not touch what is theirs.
    "FEEDS": {},
    "ITEM_PIPELINES": {},
    "JOBDIR": None,
    "KOSTER_REPORT": None,
    "KOSTER_ARCHIVE": None,
    "TELNETCONSOLE_ENABLED": False,
}


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a crawl would go by."""

    step: Obey | Pass | Refuse
    source: Source
    parser: RobotParser | None
    """Of the body of the copy, where it has one."""
    content_type: str | None = None
    """As its site has answered now, "" for none; None where it was not asked."""

    def usage(self, config: Config) -> UsageLines | None:
        """Return the usage statements of the copy that is obeyed."""
        match self.step:
            case Obey(copy) if self.parser is not None:
                body, labels = copy.in_utf8, config.usage.labels
                return usage_lines(body, self.parser, labels=labels, digest=copy.digest)
            case _:
                return None


class LookupSpider(Spider):
    """Asks the sites of *urls* for their robots.txt, and requests nothing else.

    With *refresh* also those of which there is a fresh copy.
    """

    name = "scrapy-koster"

    def __init__(
        self, *, urls: Iterable[str], learnt: dict[str, Learnt], refresh: bool, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._urls = urls
        self._refresh = refresh
        self._learnt = learnt
        self._types: dict[Site, str] = {}

    async def start(self) -> AsyncIterator[Any]:
        """Ask. There are no start_urls: a generator has to yield something."""
        self.crawler.signals.connect(self._retrieved, robots_retrieved)
        sites = lookup_sites(self.crawler, refresh=self._refresh)
        try:
            for url in self._urls:
                state = sites.state_of(url)
                assert state is not None  # it is an http or https URL
                step = await sites.wait(state, Request(url))
                if waits(state.step):
                    return  # the crawl was told to end
                sent = self._types.get(state.site)
                self._learnt[url] = Learnt(step, state.source, state.parser, sent)
        finally:
            await sites.close()
        for request in self.start_urls:
            yield request

    def _retrieved(self, site: Site, result: Answer | NoAnswer | None) -> None:
        if isinstance(result, Answer):
            self._types[site] = result.headers.get("content-type", "")


class _Refreshed(StorageCalls):
    """A storage in which no copy is found, so that the site is asked.

    Its answer is stored. A failure is not: it would take the place of a copy.
    """

    async def get(self, site: Site) -> None:  # noqa: ARG002
        return None

    async def claim(self, site: Site, *, secs: float, unless_known: bool) -> Claimed:  # noqa: ARG002
        return GRANTED

    async def put(self, site: Site, known: Known) -> None:
        if isinstance(known, Copy):
            await super().put(site, known)


def lookup_sites(crawler: Crawler, *, refresh: bool) -> Sites:
    """Return the sites of a crawl that asks each once, and does not wait for a better answer."""
    config = config_of(crawler)
    if config.policy.defers:  # a site that failed is asked again when its retry is due
        policy = replace(config.policy, unavailable=Unavailable.DISALLOW)
        config = replace(config, policy=policy)
    return build_sites(
        crawler,
        config,
        Announcer(crawler, config),
        fetcher=Fetcher(crawler, config, Stats(crawler.stats), clock_of(crawler)),
        store=storage_of(crawler, config, kind=_Refreshed if refresh else StorageCalls),
    )
