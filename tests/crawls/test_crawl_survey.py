"""The crawl of `scrapy robots survey`: each URL is decided on, and no page is fetched."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from harness.crawling import Crawl, CrawlResult, Running
from harness.replies import Reply
from harness.reports import database_of
from harness.server import Server, Site
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings

from scrapy_koster.commands.seeds import Seeds
from scrapy_koster.commands.survey import SURVEY_SETTINGS, SurveySpider, survey_addons
from scrapy_koster.report.numbers import read

RULES = "User-agent: *\nDisallow: /private\nDisallow: /b\n"
PATHS = ["/", "/private/1", "/private/2", "/public", "/b;x", "/x/../private"]


class Surveys:
    """Surveys of lists, in crawls that share a storage."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self.seeds: list[Seeds] = []
        self.shown: dict[str, int] = {}

    def start(self, urls: list[str], **settings: Any) -> Running:
        seeds = Seeds()
        self.seeds.append(seeds)
        assert list(seeds.read(io.BufferedReader(io.BytesIO("\n".join(urls).encode())))) == []
        shown = self.shown = {"decided": 0}
        given = {**settings, **SURVEY_SETTINGS}
        given["ADDONS"] = survey_addons(Settings(settings))
        arguments = {"seeds": seeds, "progress": shown.update, "verdicts": lambda *_: None}
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
    return read(database_of(result.crawler))


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
    assert spider(surveyed).decided == surveys.shown["decided"] == len(urls)
    assert not spider(surveyed).undecided
    found = numbers(surveyed)

    # With a storage of its own it asks for itself, and waits for nobody.
    alone = {"KOSTER_SQLITE_PATH": str(crawl.folder / "own"), "KOSTER_IDLE_LIMIT_SECS": 0}
    crawled = await crawl(urls=urls, settings=alone)
    verdicts = crawled.verdicts
    grounds = Counter(verdict.ground.value for verdict in verdicts)
    assert Counter(found["requests"]["refused"]) == grounds
    assert found["requests"]["allowed"] == len(urls) - grounds.total() == len(crawled.fetched)
    assert surveys.shown["refused"] == grounds.total()
    lines = Counter((str(v.site), v.line) for v in verdicts if v.ground.value == "rule")
    assert {(r["site"], r["line"]): r["refused"] for r in found["rules"]} == lines
    assert found["sites"] == surveys.shown["sites"] == len(sites)
    assert found["outcomes"]["unavailable"] == 3
    assert found["about"]["title"] == f"Survey of {len(urls)} URLs"


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


async def test_no_page_is_fetched_whatever_the_project_has(
    surveys: Surveys, server: Server, crawl: Crawl
) -> None:
    Behind.urls.clear()
    site = server.site()
    site.robots = RULES
    paths = ["/", "/private", "/exempt", "/answered"]
    settings = {
        "DOWNLOADER_MIDDLEWARES": {
            Before: 10,
            Behind: 950,
            "scrapy_koster.KosterMiddleware": 940,
        },
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
