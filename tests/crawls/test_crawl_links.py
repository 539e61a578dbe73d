"""KOSTER_FILTER_LINKS and is_allowed(): what is known of a link before it is queued."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Reply
from harness.server import Server, Site
from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_koster import KosterMiddleware, RobotsForbidden, RobotsReport
from scrapy_koster.protocol.standing import Ground
from scrapy_koster.report.numbers import read

RULES = "User-agent: *\nDisallow: /private\n"
FILTER: dict[str, Any] = {"KOSTER_FILTER_LINKS": True}


@pytest.fixture
def site(server: Server) -> Site:
    site = server.site()
    site.robots = RULES
    return site


class Linking(RecordingSpider):
    """Its first page has the links; pages that come later have none."""

    links: Any = ()

    def page(self, response: Response) -> Any:
        if response.meta.get("depth", 0) == 0:
            for link in self.links:
                yield self.ask(response.urljoin(link) if isinstance(link, str) else link)

    def fail(self, failure: Failure) -> Any:
        super().fail(failure)
        return None


def linked(site: Site, *paths: str) -> dict[str, Any]:
    return {"urls": [site.url("/")], "arguments": {"links": paths}}


def enqueued(result: CrawlResult) -> int:
    return int(result.stats["scheduler/enqueued"])


async def test_forbidden_links_are_not_queued(crawl: Crawl, server: Server, site: Site) -> None:
    other = server.site()
    other.robots = RULES
    paths = ("/private/a", "/open", "/private/b", other.url("/private"), "mailto:a@b.example")
    result = await crawl(Linking, **linked(site, *paths[:4]), settings=FILTER)
    assert enqueued(result) == 3
    assert site.pages_asked == ["/", "/open"]
    assert {url: type(error) for url, error in result.refused} == {
        site.url("/private/a"): RobotsForbidden,
        site.url("/private/b"): RobotsForbidden,
        other.url("/private"): RobotsForbidden,  # its robots.txt was not known: it was queued
    }
    assert [verdict.line for verdict in result.verdicts] == [2, 2, 2]
    assert result.stats["koster/links/filtered"] == 2
    assert result.stats["robotstxt/forbidden"] == 3
    assert result.stats["koster/forbidden/rule"] == 3
    line = next(each for each in result.logged(logging.DEBUG) if "Not queued" in each)
    assert line.startswith(f"Not queued: <GET {site.url('/private/a')}> is forbidden by ")


async def test_without_the_setting_they_are(crawl: Crawl, site: Site) -> None:
    result = await crawl(Linking, **linked(site, "/private/a", "/private/b"))
    assert enqueued(result) == 3
    assert "koster/links/filtered" not in result.stats


@pytest.mark.parametrize(
    ("settings", "meta", "fetched"),
    [({"KOSTER_DRY_RUN": True}, {}, 2), ({}, {"dont_obey_robotstxt": True}, 2)],
    ids=["dry run", "dont_obey_robotstxt"],
)
async def test_what_is_not_filtered(
    crawl: Crawl, site: Site, settings: dict[str, Any], meta: dict[str, Any], fetched: int
) -> None:
    class One(Linking):
        def page(self, response: Response) -> Any:
            if response.url == site.url("/"):
                yield self.ask(site.url("/private"), meta=meta)

    result = await crawl(One, urls=[site.url("/")], settings=FILTER | settings)
    assert len(result.fetched) == fetched
    assert "koster/links/filtered" not in result.stats


async def test_a_site_that_cannot_be_asked_is_not_filtered(crawl: Crawl, server: Server) -> None:
    site, failing = server.site(), server.site()
    failing.robots = Reply(503)
    settings = FILTER | {"KOSTER_UNAVAILABLE": "disallow"}
    urls = [failing.url("/a"), site.url("/")]
    result = await crawl(
        Linking, urls=urls, arguments={"links": [failing.url("/b")]}, settings=settings
    )
    assert len(result.refused) == 2
    assert enqueued(result) == 3


async def test_a_page_that_may_not_be_used_is_filtered(crawl: Crawl, site: Site) -> None:
    site.robots = RULES + "Content-Usage: /closed train-ai=n\n"
    settings = {"KOSTER_USAGE_PURPOSES": ["train-ai"], "KOSTER_USAGE_ACTION": "refuse"}
    result = await crawl(Linking, **linked(site, "/closed", "/open"), settings=FILTER | settings)
    assert site.pages_asked == ["/", "/open"]
    [verdict] = result.verdicts
    assert (verdict.ground, verdict.line) == (Ground.USAGE, 3)
    for stat in ("links/filtered", "forbidden/usage", "usage/refused"):
        assert result.stats[f"koster/{stat}"] == 1


async def test_a_site_whose_delay_is_too_long_is_filtered(crawl: Crawl, site: Site) -> None:
    site.robots = "User-agent: *\nCrawl-delay: 99\n"

    class First(Linking):
        """Its page is sent in spite of the delay, and its link is not."""

        def ask(self, url: str | Request, **arguments: Any) -> Request:
            request = super().ask(url, **arguments)
            if request.url == site.url("/"):
                request.meta["dont_obey_robotstxt"] = True
            return request

    settings = FILTER | {"KOSTER_CRAWL_DELAY": "refuse", "KOSTER_CRAWL_DELAY_MAX_SECS": 10}
    urls = [site.url("/first"), site.url("/")]
    result = await crawl(First, urls=urls, arguments={"links": ["/a"]}, settings=settings)
    assert [verdict.ground for verdict in result.verdicts] == [Ground.DELAY] * 2
    assert result.stats["koster/crawl_delay/refused"] == 2
    assert site.pages_asked == ["/"]


# Errbacks.


class Errbacks(RecordingSpider):
    """Each link has the errback of its name."""

    names: Any = ()

    def page(self, response: Response) -> Any:
        if response.url.endswith("/"):
            for name in self.names:
                errback = getattr(self, name) if name else None
                yield self.ask(response.urljoin(f"/private/{name}"), errback=errback)
            yield self.ask(response.urljoin("/last"))

    def item(self, failure: Failure) -> Any:
        assert isinstance(failure.value, RobotsForbidden)
        return {"url": failure.request.url, "line": failure.value.verdict.line}  # type: ignore[attr-defined]

    def generator(self, failure: Failure) -> Iterator[Any]:
        yield self.item(failure)
        yield self.ask(failure.request.url.replace("private", "open"))  # type: ignore[attr-defined]

    async def coroutine(self, failure: Failure) -> Any:
        return [self.item(failure)]

    async def asynchronous(self, failure: Failure) -> AsyncIterator[Any]:
        yield self.item(failure)

    def passes_on(self, failure: Failure) -> Any:
        return failure

    def raises(self, failure: Failure) -> Any:
        raise ZeroDivisionError

    def raises_late(self, failure: Failure) -> Iterator[Any]:
        yield self.item(failure)
        raise ZeroDivisionError

    def closes(self, failure: Failure) -> Any:
        raise CloseSpider("enough")


@pytest.mark.parametrize(
    ("names", "items"),
    [
        (["item"], 1), (["generator"], 1), (["coroutine"], 1), (["asynchronous"], 1),
        (["passes_on", ""], 0),
    ],
    ids=lambda part: str(part[0]) if isinstance(part, list) else "",
)  # fmt: skip
async def test_errbacks(crawl: Crawl, site: Site, names: list[str], items: int) -> None:
    result = await crawl(
        Errbacks, urls=[site.url("/")], arguments={"names": names}, settings=FILTER
    )
    wanted = [{"url": site.url(f"/private/{names[0]}"), "line": 2}] * items
    assert list(result.items) == wanted
    assert site.url("/last") in result.fetched
    assert result.stats["koster/links/filtered"] == len(names)
    assert result.logged(logging.ERROR) == []
    if names == ["generator"]:
        # What it yields passes the other spider middlewares: it has a depth and a referer.
        [request] = [each for each in site.requests if each.path == "/open/generator"]
        assert request.header("Referer") == site.url("/")
        assert result.stats["request_depth_max"] == 1


async def test_an_errback_that_raises_loses_nothing_else(crawl: Crawl, site: Site) -> None:
    names = ["raises", "raises_late", "item"]
    settings = FILTER | {"LOG_LEVEL": "CRITICAL"}  # else the harness takes it for a defect of ours
    result = await crawl(
        Errbacks, urls=[site.url("/")], arguments={"names": names}, settings=settings
    )
    assert [item["url"].rpartition("/")[2] for item in result.items] == ["raises_late", "item"]
    assert result.stats["spider_exceptions/ZeroDivisionError"] == 2
    assert site.url("/last") in result.fetched


async def test_an_errback_that_closes_the_spider(crawl: Crawl, site: Site) -> None:
    result = await crawl(
        Errbacks, urls=[site.url("/")], arguments={"names": ["closes"]}, settings=FILTER
    )
    assert result.finish_reason == "enough"


# What it costs, and what is counted.


FILTERED_LINKS = int(os.environ.get("FILTERED_LINKS", "400"))
LINKS_OF_A_PAGE = max(100, FILTERED_LINKS // 1_000)
KEPT_AT_MOST = 300
"""Refused requests that are alive at a time: those in reference cycles are freed now and then."""
GROWTH_AT_MOST_MB = 15.0
"""Between two samples of memory: 1,000 pages without a link take 1.4 MB of the test."""


class Counting(Spider):
    """Each of its pages has links of their own, all of them forbidden; it keeps none of them."""

    name = "counting"
    site: Site

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.count = 0
        self.most_kept = 0
        self.memory_mb: list[float] = []
        """After each 50,000 links."""
        self._alive: WeakSet[Request] = WeakSet()

    async def start(self) -> AsyncIterator[Any]:
        for first in range(0, FILTERED_LINKS, LINKS_OF_A_PAGE):
            yield Request(self.site.url(f"/page/{first}"), cb_kwargs={"first": first})

    def parse(self, response: Response, first: int) -> Iterator[Request]:
        for n in range(first, first + LINKS_OF_A_PAGE):
            yield Request(response.urljoin(f"/private/{n}"), errback=self.refuse)

    def refuse(self, failure: Failure) -> None:
        assert isinstance(failure.value, RobotsForbidden)
        self._alive.add(failure.request)  # type: ignore[attr-defined]  # set by Scrapy
        self.count += 1
        self.most_kept = max(self.most_kept, len(self._alive))
        if not self.count % 50_000:
            self.memory_mb.append(_resident_mb())
            self.logger.info("%d links: %.1f MB", self.count, self.memory_mb[-1])


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


@pytest.mark.bound(60 + FILTERED_LINKS / 100)
async def test_many_links_leave_nothing_in_the_jobdir(
    crawl: Crawl, site: Site, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    settings = FILTER | {"JOBDIR": str(job), "LOG_LEVEL": "INFO"}
    result = await crawl(Counting, arguments={"site": site}, settings=settings)
    spider = result.crawler.spider
    assert isinstance(spider, Counting)
    assert spider.count == result.stats["koster/links/filtered"] == FILTERED_LINKS
    assert spider.most_kept <= KEPT_AT_MOST
    assert max(spider.memory_mb, default=0) <= min(spider.memory_mb, default=0) + GROWTH_AT_MOST_MB
    assert enqueued(result) == FILTERED_LINKS // LINKS_OF_A_PAGE
    assert result.stats["scheduler/dequeued/disk"] == enqueued(result)
    assert b"private" not in b"".join(p.read_bytes() for p in job.rglob("*") if p.is_file())


async def test_the_report_counts_each_url_once(crawl: Crawl, site: Site, tmp_path: Path) -> None:
    links = ["/private/a", "/private/b", "/private/a", "/private/start", "/private/a"]
    settings = FILTER | {"KOSTER_REPORT": str(tmp_path / "report.html")}
    urls = [site.url("/private/start"), site.url("/")]
    settings |= {"CONCURRENT_REQUESTS": 1}
    result = await crawl(Linking, urls=urls, arguments={"links": links}, settings=settings)
    report = result.crawler.get_extension(RobotsReport)
    assert report is not None
    assert read(report.database).refused["rule"] == 3
    assert result.stats["koster/forbidden/rule"] == 3
    assert result.stats["koster/links/filtered"] == 5
    assert len(result.refused) == 6  # each errback is called


async def test_of_one_spider(crawl: Crawl, site: Site) -> None:
    filtering = type("Filtering", (Linking,), {"custom_settings": FILTER})
    first, second = await crawl.together(
        crawl(filtering, **linked(site, "/private")), crawl(Linking, **linked(site, "/private"))
    )
    assert (enqueued(first), enqueued(second)) == (1, 2)


async def test_by_hand_it_has_to_have_a_place(crawl: Crawl, site: Site) -> None:
    settings = FILTER | {
        "ROBOTSTXT_OBEY": True,
        "SCHEDULER": "scrapy_koster.DeferringScheduler",
        "DOWNLOADER_MIDDLEWARES": {
            "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
            "scrapy_koster.KosterMiddleware": 100,
        },
    }
    with pytest.raises(RuntimeError, match="LinkFilterMiddleware is not in the crawl"):
        await crawl(urls=[site.url("/")], settings=settings, robots=None)
    settings["SPIDER_MIDDLEWARES"] = {"scrapy_koster.LinkFilterMiddleware": 1000}
    result = await crawl(Linking, **linked(site, "/private"), settings=settings, robots=None)
    assert result.stats["koster/links/filtered"] == 1


# What is known of a URL.


class Knowing(RecordingSpider):
    """Asks what is known, before and after its first page."""

    asked: Any = ()

    async def start(self) -> AsyncIterator[Any]:
        self.before = self.known()
        async for request in super().start():
            yield request

    def page(self, response: Response) -> Any:
        self.after = self.known()

    def known(self) -> list[bool | None]:
        middleware = self.crawler.get_downloader_middleware(KosterMiddleware)
        assert middleware is not None
        return [middleware.is_allowed(*each) for each in self.asked]


async def test_is_allowed(crawl: Crawl, server: Server, site: Site) -> None:
    site.robots = f"{RULES}\nUser-agent: figtree\nDisallow: /fig\n"
    override = {
        "site": site.url(""),
        "allow": ["/private/x"],
        "reason": "so",
        "until": "2999-01-01",
    }
    private = site.url("/private")
    passing = Request(private, meta={"dont_obey_robotstxt": True})
    by_name = Request(site.url("/fig"), meta={"robotstxt_user_agent": "figtree"})
    table: list[tuple[Any, bool | None, bool | None]] = [
        ((site.url("/"),), None, True),
        ((private,), None, False),
        ((Request(private),), None, False),
        ((site.url("/private/x"),), None, True),
        ((site.url("/x/../private"),), None, False),
        ((private, "figtree"), None, True),
        ((site.url("/fig"), "FigTree/1.0 (+https://a.example)"), None, False),
        ((by_name,), None, False),
        ((site.url("/robots.txt"),), True, True),
        ((passing,), True, True),
        (("data:,a",), True, True),
        ((server.site().url("/"),), None, None),
    ]
    result = await crawl(
        Knowing,
        urls=[site.url("/")],
        arguments={"asked": [each for each, _, _ in table]},
        settings={"KOSTER_OVERRIDES": [override]},
    )
    spider: Any = result.crawler.spider
    assert spider.before == [before for _, before, _ in table]
    assert spider.after == [after for _, _, after in table]
    assert site.asked("/robots.txt") == 1
    assert len(site.requests) == 2


@pytest.mark.parametrize(
    ("robots", "settings", "known"),
    [
        (Reply(403), {}, False),
        (Reply(503), {"KOSTER_UNAVAILABLE": "disallow"}, None),
        (Reply(503), {"KOSTER_UNAVAILABLE": "allow"}, True),
        (Reply(404), {"KOSTER_MISSING": "disallow"}, False),
        (Reply(200, "User-agent: *\nCrawl-delay: 99"), {"KOSTER_CRAWL_DELAY": "refuse"}, False),
        (Reply(200, "User-agent: *\nCrawl-delay: 99"), {}, True),
        (
            Reply(200, "", headers={"Cache-Control": "max-age=0"}),
            {"KOSTER_EXPIRY_MIN_SECS": 0},
            None,
        ),
    ],
)
async def test_is_allowed_by_what_a_site_is(
    crawl: Crawl, server: Server, *, robots: Reply, settings: dict[str, Any], known: bool | None
) -> None:
    first, site = server.site(), server.site()
    first.robots = RULES
    site.robots = robots

    class Later(Knowing):
        def fail(self, failure: Failure) -> Any:
            super().fail(failure)
            return self.ask(first.url("/"))

        def page(self, response: Response) -> Any:
            super().page(response)
            if response.url != first.url("/"):
                return self._later()
            return None

        async def _later(self) -> Any:
            await crawl.sleep(1.5)
            return self.ask(first.url("/"))

    result = await crawl(
        Later,
        urls=[site.url("/")],
        arguments={"asked": [(site.url("/a"),)]},
        settings={"KOSTER_CRAWL_DELAY_MAX_SECS": 10, **settings},
    )
    assert vars(result.crawler.spider)["after"] == [known]


async def test_what_is_no_url_and_no_robot(crawl: Crawl, site: Site) -> None:
    result = await crawl(Knowing, urls=[site.url("/")])
    middleware = result.crawler.get_downloader_middleware(KosterMiddleware)
    assert middleware is not None
    for wrong in (("nothing",), ("http://",), (site.url("/"), " fig")):
        with pytest.raises(ValueError, match=r"."):
            middleware.is_allowed(*wrong)
    assert pickle.dumps(middleware.is_allowed(site.url("/")))
