"""What is told of a request that is refused: to its errback, and at DEBUG to the log."""

from __future__ import annotations

import logging

from harness.crawling import Crawl, verdict_of
from harness.server import Server

from scrapy_koster import RobotsForbidden
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


async def test_what_the_log_says_of_a_request(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /private\n"
    result = await crawl(urls=[site.url("/private")], settings={"LOG_LEVEL": "DEBUG"})
    [said] = result.logged(logging.DEBUG, MIDDLEWARE)
    robots = site.url("/robots.txt")
    assert said.startswith(f"<GET {site.url('/private')}> is forbidden by {robots}: ")
    assert said == f"<GET {site.url('/private')}> is {verdict_of(result.refused[0][1])}"
