"""The crawl of `scrapy robots survey`: each URL is decided on, and no page is fetched."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from harness.archives import check
from harness.crawling import Crawl, CrawlResult, Running
from harness.replies import Gate, Reply
from harness.server import Server, Site
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.settings import Settings

from scrapy_koster.archive.folder import Folder
from scrapy_koster.commands.seeds import Seeds
from scrapy_koster.crawl import survey
from scrapy_koster.crawl.survey import (
    SURVEY_SETTINGS,
    SurveyReport,
    SurveySpider,
    survey_addons,
)
from scrapy_koster.protocol.site import site_of
from scrapy_koster.report.numbers import read

RULES = "User-agent: *\nDisallow: /private\nDisallow: /b\n"
PATHS = ["/", "/private/1", "/private/2", "/public", "/b;x", "/x/../private"]


class Shown:
    """What a survey has shown, the last of it."""

    def __init__(self) -> None:
        self.decided = self.sites = self.refused = 0

    def show(self, *, decided: int, sites: int, refused: int) -> None:
        assert (decided, sites, refused) >= (self.decided, self.sites, self.refused)
        self.decided, self.sites, self.refused = decided, sites, refused


class Surveys:
    """Surveys of lists, in crawls that share a storage."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self.seeds: list[Seeds] = []
        self.shown = Shown()

    def start(self, urls: list[str], **settings: Any) -> Running:
        seeds = Seeds()
        self.seeds.append(seeds)
        assert list(seeds.read(io.BytesIO("\n".join(urls).encode()))) == []
        self.shown = Shown()
        given = {**settings, **SURVEY_SETTINGS}
        given["ADDONS"] = survey_addons(Settings(settings))
        arguments = {"seeds": seeds, "progress": self.shown.show}
        return self._crawl.start(SurveySpider, robots=None, settings=given, arguments=arguments)

    async def of(self, urls: list[str], **settings: Any) -> CrawlResult:
        return await self.start(urls, **settings).result()


@pytest.fixture
def surveys(crawl: Crawl) -> Iterator[Surveys]:
    made = Surveys(crawl)
    yield made
    for seeds in made.seeds:
        seeds.close()


def numbers(result: CrawlResult) -> dict[str, Any]:
    report = result.crawler.get_extension(SurveyReport)
    assert report is not None
    return read(report.database).to_dict()


def spider(result: CrawlResult) -> SurveySpider:
    assert isinstance(result.crawler.spider, SurveySpider)
    return result.crawler.spider


def every_kind(server: Server) -> list[Site]:
    """Sites that answer their robots.txt in every way."""
    replies: list[Any] = [
        RULES,
        "User-agent: *\nDisallow: /\n",
        Reply(404),
        Reply(403),
        Reply(200, "<html></html>", headers={"Content-Type": "text/html"}),
        Reply(503),
        Reply(301, headers={"Location": "/robots.txt"}),
        "",
    ]
    sites = [server.site() for _ in replies]
    for site, reply in zip(sites, replies, strict=True):
        site.robots = reply
    return [*sites, server.down()]


async def test_it_says_what_a_crawl_is_refused_then(
    crawl: Crawl, surveys: Surveys, server: Server
) -> None:
    sites = every_kind(server)
    urls = [site.url(path) for site in sites for path in PATHS]
    surveyed = await surveys.of(urls)
    assert [site.pages_asked for site in sites] == [[] for _ in sites]
    assert spider(surveyed).decided == surveys.shown.decided == len(urls)
    assert not spider(surveyed).undecided
    found = numbers(surveyed)

    # With a storage of its own it asks for itself, and waits for nobody.
    alone = {"KOSTER_SQLITE_PATH": str(crawl.folder / "own"), "KOSTER_IDLE_LIMIT_SECS": 0}
    crawled = await crawl(urls=urls, settings=alone)
    verdicts = crawled.verdicts
    grounds = Counter(verdict.ground.value for verdict in verdicts)
    assert Counter(found["requests"]["refused"]) == grounds
    assert found["requests"]["allowed"] == len(urls) - grounds.total() == len(crawled.fetched)
    assert surveys.shown.refused == grounds.total()
    lines = Counter((str(v.site), v.line) for v in verdicts if v.ground.value == "rule")
    assert {(r["site"], r["line"]): r["refused"] for r in found["rules"]} == lines
    assert found["sites"] == surveys.shown.sites == len(sites)
    assert found["outcomes"]["unavailable"] == 3
    assert found["about"]["title"] == f"Survey of {len(urls)} URLs"


async def test_urls_that_scrapy_takes_for_one_are_decided_each(
    surveys: Surveys, server: Server
) -> None:
    """Each stands in the list: the order of a query may matter to a rule."""
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /?b\n"
    result = await surveys.of(
        [site.url("/?a=1&b=2"), site.url("/?b=2&a=1"), site.url("/?a=1&b=2#c")]
    )
    assert spider(result).decided == len(surveys.seeds[0])
    assert numbers(result)["requests"]["refused"]["rule"] == 1


async def test_what_a_project_raises_is_counted_as_undecided(
    surveys: Surveys, server: Server
) -> None:
    site = server.site()
    settings = {"DOWNLOADER_MIDDLEWARES": {Raises: 10}}
    result = await surveys.of([site.url("/a"), site.url("/raises"), site.url("/b")], **settings)
    assert spider(result).undecided == {"ZeroDivisionError": 1}
    assert spider(result).decided == surveys.shown.decided == 2


class Raises:
    """A middleware of a project that fails at a page."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/raises"):
            raise ZeroDivisionError


async def test_a_site_that_hangs_is_asked_once_and_holds_up_nobody(
    surveys: Surveys, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many URLs as may be under way would wait for it, if all of them did.
    monkeypatch.setattr(survey, "URLS_AT_ONCE", 20)
    gate, hanging, quick = server.gate(), server.site(), server.site()
    hanging.robots, quick.robots = Reply(gate=gate), RULES
    running = surveys.start(hanging.urls(50) + quick.urls(50), KOSTER_TIMEOUT_SECS=2)
    await Crawl.until(lambda: surveys.shown.decided == 50)
    assert surveys.shown.sites == 1
    result = await running.result()
    gate.open()
    requests = numbers(result)["requests"]
    assert requests["allowed"] == requests["refused"]["unavailable"] == 50
    assert sum(requests["refused"].values()) == 50
    assert hanging.asked("/robots.txt") == 1
    assert result.seconds < 10


@pytest.mark.parametrize("unavailable", ["allow", "disallow"])
async def test_koster_unavailable_is_obeyed(
    surveys: Surveys, server: Server, unavailable: str
) -> None:
    site = server.site()
    site.robots = Reply(503)
    result = await surveys.of(site.urls(3), KOSTER_UNAVAILABLE=unavailable)
    requests = numbers(result)["requests"]
    refused = {"allow": 0, "disallow": 3}[unavailable]
    assert (requests["allowed"], requests["refused"]["unavailable"]) == (3 - refused, refused)
    assert site.pages_asked == []


async def test_one_that_was_ended_goes_on(
    surveys: Surveys, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "SITES_AT_ONCE", 4)
    gates: dict[Site, Gate] = {server.site(): server.gate() for _ in range(12)}
    for site, gate in gates.items():
        site.robots = Reply(200, RULES, gate=gate)
    urls = [url for site in gates for url in site.urls(2)]

    def asked() -> list[Site]:
        return [site for site in gates if site.asked("/robots.txt")]

    running = surveys.start(urls)
    await Crawl.until(lambda: len(asked()) == 4)
    for site in asked():
        gates[site].open()
    await Crawl.until(lambda: len(asked()) == 8 and surveys.shown.decided == 8)
    ended = await running.stop()
    assert (spider(ended).decided, surveys.shown.sites) == (8, 4)
    assert numbers(ended)["requests"]["allowed"] == 8

    for gate in gates.values():
        gate.open()
    again = await surveys.of(urls)
    assert numbers(again)["requests"]["allowed"] == spider(again).decided == len(urls)
    assert again.stats["koster/storage/hit"] == 4
    assert again.stats["robotstxt/request_count"] == 8


async def test_few_are_under_way_at_a_time(
    surveys: Surveys, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "SITES_AT_ONCE", 3)
    monkeypatch.setattr(survey, "URLS_AT_ONCE", 5)
    under_way = []
    request = SurveySpider.request_of
    made = 0

    def counted(self: SurveySpider, url: str, **arguments: Any) -> Request:
        nonlocal made
        made += 1
        under_way.append((len(self._asked), made - self.decided))
        return request(self, url, **arguments)

    monkeypatch.setattr(SurveySpider, "request_of", counted)
    result = await surveys.of([url for _ in range(10) for url in server.site().urls(40)])
    assert numbers(result)["requests"]["allowed"] == 400
    assert max(sites for sites, _ in under_way) == 3
    # One of each site that begins is not held back.
    assert max(urls for _, urls in under_way) <= 5 + 3


# In a project


class Before:
    """A middleware of a project's own, in front of KosterMiddleware."""

    def process_request(self, request: Request) -> Response | None:
        if request.url.endswith("/exempt"):
            request.meta["dont_obey_robotstxt"] = True
        return Response(request.url) if request.url.endswith("/answered") else None


class Behind:
    """Another, behind it; robots.txt alone gets so far."""

    urls: list[str] = []

    def process_request(self, request: Request) -> None:
        self.urls.append(request.url)


@pytest.mark.parametrize("by_hand", [False, True])
async def test_no_page_is_fetched_whatever_the_project_has(
    surveys: Surveys, server: Server, crawl: Crawl, *, by_hand: bool
) -> None:
    Behind.urls.clear()
    site = server.site()
    site.robots = RULES
    paths = ["/", "/private", "/exempt", "/answered"]
    placed: dict[Any, int] = {"scrapy_koster.KosterMiddleware": 940} if by_hand else {}
    settings = {
        "DOWNLOADER_MIDDLEWARES": {Before: 10, Behind: 950, **placed},
        "ADDONS": {"scrapy_koster.Addon": None},
        "ROBOTSTXT_OBEY": False,
        "KOSTER_DRY_RUN": True,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_IGNORE_MISSING": True,
        "HTTPCACHE_DIR": str(crawl.folder / "cache"),
        "SCHEDULER": "no.such.Scheduler",
        "SPIDER_MIDDLEWARES": {"no.such.SpiderMiddleware": 1},
        "CLOSESPIDER_TIMEOUT_NO_ITEM": 1,
        "URLLENGTH_LIMIT": 1,
    }  # fmt: skip
    result = await surveys.of([site.url(path) for path in paths], **settings)
    assert [asked.path for asked in site.requests] == ["/robots.txt"]
    assert Behind.urls == [site.url("/robots.txt")]
    assert spider(result).undecided == {"a downloader middleware answered it": 1}
    assert spider(result).decided == 3
    assert numbers(result)["requests"]["refused"]["rule"] == 1


class Filter:
    """An extension of a project that has requests dropped without a word."""

    def __init__(self, crawler: Crawler) -> None:
        crawler.signals.connect(self.scheduled, signal=signals.request_scheduled)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Filter:
        return cls(crawler)

    def scheduled(self) -> None:
        raise IgnoreRequest


async def test_no_page_of_a_report_is_made(surveys: Surveys, server: Server, crawl: Crawl) -> None:
    """The command makes one if it is told to, whatever KOSTER_REPORT says."""
    page = crawl.folder / "page.html"
    result = await surveys.of([server.site().url("/")], KOSTER_REPORT=str(page))
    assert numbers(result)["requests"]["allowed"] == 1
    assert len(list((crawl.folder / "reports").glob("*.sqlite3"))) == 1
    assert not page.exists()


async def test_what_a_project_drops_is_decided_on(surveys: Surveys, server: Server) -> None:
    site = server.site()
    result = await surveys.of([site.url("/"), site.url("/public")], EXTENSIONS={Filter: 1})
    assert spider(result).decided == 2
    assert numbers(result)["requests"]["allowed"] == 2


async def test_it_does_not_begin_where_nothing_obeys(surveys: Surveys, server: Server) -> None:
    class Remover:
        def update_settings(self, settings: Settings) -> None:
            settings["DOWNLOADER_MIDDLEWARES"].clear()

    site = server.site()
    running = surveys.start([site.url("/")], ADDONS={Remover: 600})
    with pytest.raises(ValueError, match="needs a KosterMiddleware"):
        await running.result()
    assert site.requests == ()


def test_its_add_ons_are_those_of_the_project_and_ours() -> None:
    ours = {survey.SurveyAddon: 1_000_000}
    added, path = {"scrapy_koster.Addon": 500}, "scrapy_koster.addon.Addon"
    cases: list[tuple[dict[str, Any], dict[str, int]]] = [
        ({}, added),
        ({"scrapy_koster.Addon": None}, added),
        ({"scrapy_koster.Addon": 7}, {"scrapy_koster.Addon": 7}),
        ({path: 7}, {path: 7}),
    ]
    for given, kept in cases:
        found: dict[Any, Any] = {**kept, **ours}
        assert survey_addons(Settings({"ADDONS": given})) == found


async def test_a_survey_writes_an_archive(crawl: Crawl, surveys: Surveys, server: Server) -> None:
    sites = every_kind(server)
    folder = crawl.folder / "evidence"
    await surveys.of([site.url("/") for site in sites], KOSTER_ARCHIVE=str(folder))
    check(folder)
    archive = Folder(str(folder))
    assert [len(archive.outcomes(home)) for site in sites if (home := site_of(site.url()))] == [
        1 for _ in sites
    ]
