"""What is told of a request that is refused: to its errback, and at DEBUG to the log."""

from __future__ import annotations

import logging

import pytest
from harness.crawling import Crawl, verdict_of
from harness.replies import Hang, Reply
from harness.server import Server
from scrapy import Request
from test_crawl_ending import SCHEDULERS, WITHOUT_STORAGE

from scrapy_koster import KosterRobotParser, RobotsForbidden, RobotsUnavailable
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.ruling import Ruling
from scrapy_koster.protocol.standing import Ground
from scrapy_koster.protocol.verdict import Source

MIDDLEWARE = "scrapy_koster.crawl.enforcement"


async def test_where_the_copy_came_from(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /private\n"
    for source in (Source.FETCHED, Source.STORAGE):
        result = await crawl(urls=[site.url("/private")])
        [(_, error)] = result.refused
        assert isinstance(error, RobotsForbidden)
        verdict = error.verdict
        assert (verdict.source, verdict.ground, verdict.line) == (source, Ground.RULE, 2)
    assert site.asked("/robots.txt") == 1


class Raises(KosterRobotParser):
    def allowed(self, url: str | bytes, robot: str | bytes) -> bool:
        raise ZeroDivisionError


class RaisesForTheLine(KosterRobotParser):
    def ruling(self, url: str | bytes, robot: str | bytes) -> Ruling:
        raise ZeroDivisionError


@pytest.mark.parametrize("parser", [Raises, RaisesForTheLine])
async def test_a_parser_that_raises_opens_nothing(
    crawl: Crawl, server: Server, parser: type[KosterRobotParser]
) -> None:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /private\n"
    with pytest.raises(AssertionError, match=r"Raises\w* has a defect"):  # it is logged
        await crawl(urls=site.urls(3, "/private{}"), settings={"KOSTER_PARSER": parser})
    assert site.pages_asked == []


async def test_what_the_log_says_of_a_request(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /private\n"
    result = await crawl(urls=[site.url("/private")], settings={"LOG_LEVEL": "DEBUG"})
    [said] = result.logged(logging.DEBUG, MIDDLEWARE)
    robots = site.url("/robots.txt")
    assert said.startswith(f"<GET {site.url('/private')}> is forbidden by {robots}: ")
    assert said == f"<GET {site.url('/private')}> is {verdict_of(result.refused[0][1])}"


async def test_who_waits_in_place_is_told_that_the_crawl_is_closing(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = Hang()
    settings = {**SCHEDULERS["in place"], **WITHOUT_STORAGE}
    running = crawl.start(urls=site.urls(1), settings=settings)
    await crawl.until(lambda: site.asked("/robots.txt"))
    result = await running.stop()
    [(_, error)] = result.refused
    assert isinstance(error, RobotsUnavailable)
    known = error.verdict.known
    assert isinstance(known, Failure)
    assert (known.reason, known.attempts, known.stale) == ("the crawl is closing", 0, None)
    assert error.verdict.to_dict()["reason"] == "the crawl is closing"


async def test_a_robots_txt_that_is_a_page_is_fetched_whatever_is_known_of_its_site(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = Reply(503)
    result = await crawl(
        urls=[Request(site.url("/robots.txt"), meta={"handle_httpstatus_all": True})],
        settings={"RETRY_ENABLED": False},
    )
    assert result.fetched == (site.url("/robots.txt"),)
