"""The settings by which a crawl deals with today's web, wherever a user may put them.

Each is given by `custom_settings`, as text (`-s`), in a dry run, with a report, and to the workers
of a fleet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from harness.challenge_pages import ANUBIS
from harness.comparison import HTML
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.fleet import closed_clients, of_scrapy_redis
from harness.redis_server import redis_server
from harness.replies import Handler, Reply
from harness.server import Server, Site
from scrapy import Request
from scrapy.http import Response

from scrapy_koster import RobotsForbidden, RobotsReport, RobotsUnavailable
from scrapy_koster.report.numbers import read

RULES = "User-agent: *\nDisallow: /private\n"
PAGE = "/private"
OTHERS: dict[str, Any] = {
    "USER_AGENT": "figtree (+http://fict.org)",
    "KOSTER_DEFER_FIRST_SECS": 0.1,
    "KOSTER_DEFER_LIMIT_SECS": 0.3,
}


def _override(site: Site) -> list[dict[str, Any]]:
    return [{"site": site.url(""), "disallow": [PAGE], "reason": "so", "until": "2999-12-31"}]


@dataclass(frozen=True)
class Choice:
    """A setting without which the page is fetched, and with which it is refused."""

    setting: str
    value: Callable[[Site], Any]
    text: Callable[[Site], str]
    robots: Handler
    error: type[Exception] = RobotsForbidden
    reason: str = "rule"
    """Where the report counts the page as refused."""

    def settings(self, site: Site) -> dict[str, Any]:
        return {self.setting: self.value(site)}


def _said(setting: str, value: Any, text: str, robots: Handler, *refused: Any) -> Choice:
    return Choice(setting, lambda _: value, lambda _: text, robots, *refused)


def _page(body: str) -> Reply:
    return Reply(200, body, headers={"Content-Type": "text/html"})


STRICTEST = "scrapy_koster.StrictestRobotParser"
CHOICES = {
    "an HTML page is a refusal": _said(
        "KOSTER_HTML_ROBOTSTXT", "disallow", "disallow", _page(HTML), RobotsForbidden, "html"
    ),
    "an HTML page is a failure": _said(
        "KOSTER_HTML_ROBOTSTXT", "defer", "defer", _page(HTML), RobotsUnavailable, "unavailable"
    ),
    "an override": Choice(
        "KOSTER_OVERRIDES",
        _override,
        lambda site: json.dumps(_override(site)),
        "User-agent: *\nDisallow:\n",
        reason="override",
    ),
    "several names": _said(
        "ROBOTSTXT_USER_AGENT",
        ["images", "figtree"],
        "images, figtree",
        "User-agent: images\nDisallow: /private\n\nUser-agent: *\nDisallow: /x\n",
    ),
    "the strictest parser": _said(
        "KOSTER_PARSER", STRICTEST, STRICTEST, f"User-agent: *\nAllow: /\n{RULES}"
    ),
    "misspelled lines": _said(
        "KOSTER_PARSER", STRICTEST, STRICTEST, "User agent: *\nDissallow: /private\n"
    ),
}
# scrapy-redis 0.9.1 logs so that it finds a queue with requests.
in_a_fleet = pytest.mark.filterwarnings(
    "ignore:Spider.log:scrapy.exceptions.ScrapyDeprecationWarning"
)
each_choice = pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)


@pytest.fixture
def site(server: Server) -> Site:
    return server.site()


def is_refused(result: CrawlResult, choice: Choice) -> bool:
    assert len(result.fetched) + len(result.refused) == 1
    assert {type(error) for _, error in result.refused} <= {choice.error}
    return bool(result.refused)


@each_choice
async def test_of_one_spider(crawl: Crawl, site: Site, choice: Choice) -> None:
    site.robots = choice.robots
    # Else the failure that one has stored is a failure to the other, too.
    settings = {**OTHERS, "KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage"}
    spider = type("Own", (RecordingSpider,), {"custom_settings": choice.settings(site)})
    own, plain = await crawl.together(
        crawl(spider, urls=[site.url(PAGE)], settings=settings),
        crawl(urls=[site.url(PAGE)], settings=settings),
    )
    assert (is_refused(own, choice), is_refused(plain, choice)) == (True, False)


@each_choice
async def test_as_text(crawl: Crawl, site: Site, choice: Choice) -> None:
    site.robots = choice.robots
    settings = {**OTHERS, choice.setting: choice.text(site)}
    assert is_refused(await crawl(urls=[site.url(PAGE)], settings=settings), choice)
    assert site.pages_asked == []


@each_choice
@pytest.mark.parametrize("dry_run", [False, True])
async def test_in_the_report(
    crawl: Crawl, site: Site, tmp_path: Path, *, choice: Choice, dry_run: bool
) -> None:
    site.robots = choice.robots
    settings = {
        **OTHERS,
        **choice.settings(site),
        "KOSTER_DRY_RUN": dry_run,
        "KOSTER_REPORT": str(tmp_path / "report.html"),
    }
    result = await crawl(urls=[site.url(PAGE)], settings=settings)
    assert is_refused(result, choice) is not dry_run
    assert result.stats.get("koster/dry_run/forbidden", 0) == int(dry_run)
    assert result.stats.get("robotstxt/forbidden", 0) == int(not dry_run)
    report = result.crawler.get_extension(RobotsReport)
    assert report is not None
    refused = read(report.database).refused
    assert {reason: count for reason, count in refused.items() if count} == {choice.reason: 1}
    assert (tmp_path / "report.html").exists()


# A fleet: workers of scrapy-redis, which share copies by RedisStorage.


@pytest.fixture
def fleet() -> Iterator[dict[str, Any]]:
    with redis_server() as redis, closed_clients():
        shared = {
            "KOSTER_STORAGE": "scrapy_koster.storage.redis.RedisStorage",
            "KOSTER_REDIS_URL": redis.url(),
            "KOSTER_REDIS_PREFIX": f"test-{token_hex(6)}",
        }
        yield {**OTHERS, **of_scrapy_redis(redis), **shared}


@in_a_fleet
@each_choice
async def test_in_a_fleet(crawl: Crawl, site: Site, fleet: dict[str, Any], choice: Choice) -> None:
    """Two workers have the setting; one that has not shares the copy, and obeys its own."""
    site.robots = choice.robots
    settings = {**fleet, **choice.settings(site)}
    urls = [site.url(f"{PAGE}/{number}") for number in range(6)]
    workers = await crawl.together(
        crawl(urls=urls[:3], settings=settings), crawl(urls=urls[3:], settings=settings)
    )
    assert site.pages_asked == []
    ended = [refused for worker in workers for refused in worker.refused]
    assert sorted(url for url, _ in ended) == urls
    assert {type(error) for _, error in ended} == {choice.error}
    if choice.error is RobotsForbidden:
        asked = site.asked("/robots.txt")
        assert asked == 1
        plain = await crawl(urls=[site.url(PAGE)], settings=fleet)
        assert len(plain.fetched) == 1
        other = "ROBOTSTXT_USER_AGENT" in settings  # a robot has copies of its own
        assert site.asked("/robots.txt") == asked + other


@in_a_fleet
async def test_a_challenge_in_a_fleet(crawl: Crawl, site: Site, fleet: dict[str, Any]) -> None:
    """One worker meets it: the others know, and do not ask before their time."""
    site.robots = _page(ANUBIS)
    settings = {
        **fleet,
        "KOSTER_DEFER_FIRST_SECS": 20,
        "KOSTER_DEFER_MAX_SECS": 20,
        "KOSTER_DEFER_LIMIT_SECS": 5,
    }
    urls = [site.url(f"/{number}") for number in range(4)]
    workers = await crawl.together(
        crawl(urls=urls[:2], settings=settings), crawl(urls=urls[2:], settings=settings)
    )
    ended = [refused for worker in workers for refused in worker.refused]
    assert sorted(url for url, _ in ended) == urls
    assert {type(error) for _, error in ended} == {RobotsUnavailable}
    assert all("a challenge page (Anubis)" in str(error) for _, error in ended)
    assert site.asked("/robots.txt") == 1


# KOSTER_FILTER_LINKS: the page is refused in any case, and queued without it.


class Linking(RecordingSpider):
    def page(self, response: Response) -> Iterator[Request]:
        yield self.ask(response.urljoin(PAGE))


@in_a_fleet
async def test_links_in_a_fleet(crawl: Crawl, server: Server, fleet: dict[str, Any]) -> None:
    """No worker puts a forbidden link into the common queue."""
    sites = [server.site() for _ in range(2)]
    for each in sites:
        each.robots = RULES
    settings = {**fleet, "KOSTER_FILTER_LINKS": "True"}
    workers = await crawl.together(
        *(crawl(Linking, urls=[each.url("/")], settings=settings) for each in sites)
    )
    assert [each.pages_asked for each in sites] == [["/"], ["/"]]
    stats = [worker.stats for worker in workers]
    assert sum(each.get("koster/links/filtered", 0) for each in stats) == 2
    assert sum(each.get("scheduler/enqueued/redis", 0) for each in stats) == 2
    assert sum(len(worker.refused) for worker in workers) == 2
