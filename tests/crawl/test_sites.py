"""Sites, driven with a fetch that asks nobody: sites, requests that wait, memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from harness.clocks import JumpingClock, set_clock, sleep
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_koster.crawl.context import CrawlContext, Parts
from scrapy_koster.crawl.engine.private import Engine
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import Answer, CachedRobots, NoAnswer
from scrapy_koster.protocol.site import Site

MEMORY = "scrapy_koster.storage.memory.MemoryStorage"
SQLITE = "scrapy_koster.storage.sqlite.SQLiteStorage"
RULES = b"User-agent: *\n" + b"".join(b"Disallow: /directory/%d\n" % n for n in range(30))
Fetch: TypeAlias = Callable[[Site, CachedRobots | None], Answer | NoAnswer]


def found(site: Site, stale: CachedRobots | None) -> Answer:
    return Answer(site.robots_url, 200, {"etag": '"1"'}, RULES)


class Open(Engine):
    """An engine that runs, and has something else to do."""

    is_closing = False
    under_way: Collection[Request] = ()
    active: Any = ()

    def wake(self) -> None:
        pass


class Driven:
    """The sites of a crawl whose fetches are answered by a function, and nobody's crawl."""

    def __init__(self, folder: Path, fetch: Fetch, settings: Mapping[str, Any]) -> None:
        given = {"KOSTER_SQLITE_PATH": str(folder / "robots.sqlite3"), "KOSTER_STORAGE": MEMORY}
        crawler = Crawler(Spider, {**given, **settings})
        crawler.stats = MemoryStatsCollector(crawler)
        self.stats = crawler.stats
        self.clock = JumpingClock()
        set_clock(crawler, self.clock)
        self.engine = Open(crawler)
        fetcher: Any = self
        parts = Parts(fetcher=lambda *_, **__: fetcher, engine=lambda _: self.engine)
        self.sites = CrawlContext(crawler, parts).sites
        self.asked: list[str] = []
        self._answer = fetch

    async def fetch(
        self, site: Site, page: Request, stale: CachedRobots | None, **_: object
    ) -> Answer | NoAnswer:
        self.asked.append(str(site))
        await sleep(0)
        return self._answer(site, stale)

    def state_of(self, url: str) -> SiteState:
        state = self.sites.records.state_of(url)
        assert state is not None
        return state

    async def wait(self, url: str) -> SiteState:
        state = self.state_of(url)
        await self.sites.wait(state, Request(url))
        return state


@pytest.fixture
def driven(tmp_path: Path) -> Callable[..., Driven]:
    return lambda fetch=found, **settings: Driven(tmp_path, fetch, settings)


# Which site a URL belongs to.

A_COM = ("http://a.com/", "http://a.com", "http://a.com:80/x", "http://A.Com/x", "HTTP://a.com/x")


@pytest.mark.parametrize("first", A_COM)
def test_one_site_in_all_its_spellings(driven: Callable[..., Driven], first: str) -> None:
    driver = driven()
    state = driver.state_of(first)
    for url in (*A_COM, "http://u@a.com/", "http://u:p@a.com:80/?x", "http://a.com?x=/y", first):
        assert driver.state_of(url) is state
    assert str(state.site) == "http://a.com"


OTHERS = (
    "https://a.com/",
    "http://a.com:8/",
    "http://a.com:8080/",
    "http://a.co/",
    "http://a.com.au/",
    "http://www.a.com/",
    "https://a.com:80/",
    "http://a.com:443/",
    "http://a.com@b.com/",
    "http://[::1]/",
    "http://[::1]:8080/",
)


@pytest.mark.parametrize("order", ["it first", "the others first"])
def test_other_sites(driven: Callable[..., Driven], order: str) -> None:
    driver = driven()
    urls = [*A_COM, *OTHERS] if order == "it first" else [*OTHERS, *A_COM]
    state = {url: driver.state_of(url) for url in urls}
    assert len({state[url] for url in OTHERS}) == len(OTHERS)
    assert state["http://a.com/"] not in {state[url] for url in OTHERS}
    for url in reversed(urls):
        assert driver.state_of(url) is state[url]


@pytest.mark.parametrize("shorter", ["http://a.co", "http://a.com:8"])
def test_a_url_without_a_path_is_not_cut_short(driven: Callable[..., Driven], shorter: str) -> None:
    """http://a.com is not http://a.co, nor a.com:80 a.com:8."""
    driver = driven()
    other = driver.state_of(f"{shorter}/")
    for url in ("http://a.com", "http://a.com:80"):
        assert driver.state_of(url) is not other
    assert driver.state_of(f"{shorter}/") is other
    assert driver.state_of(shorter) is other


# Waiting.
