"""The main job: no request that is forbidden leaves, and each says why."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from harness.crawling import IN_PLACE, Crawl, RecordingSpider, Robots
from harness.replies import Reply, redirect
from harness.server import Server
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.robotstxt import RobotParser

from scrapy_koster import RobotsForbidden
from scrapy_koster.crawl.engine.compat import robots_parsed
from scrapy_koster.protocol.verdict import Verdict

FORBIDDEN = "User-agent: *\nDisallow: /\n"
MANY = {"CONCURRENT_REQUESTS": 64, "CONCURRENT_REQUESTS_PER_DOMAIN": 64}


@pytest.mark.parametrize(
    ("robots", "settings"),
    [("koster", {}), (None, IN_PLACE)],
    ids=["in the scheduler", "in place, without our scheduler"],
)
async def test_all_who_wait_for_one_robots_txt_obey_it(
    crawl: Crawl, server: Server, robots: Robots, settings: dict[str, Any]
) -> None:
    site, requests = server.site(), 100
    site.robots = Reply(body=FORBIDDEN, delay=0.5)
    result = await crawl(urls=site.urls(requests), robots=robots, settings=MANY | settings)
    assert [request.path for request in site.requests] == ["/robots.txt"]
    assert result.stats["robotstxt/forbidden"] == requests
    assert len(result.refused) == requests
    assert all(isinstance(error, RobotsForbidden) for _, error in result.refused)


async def test_a_refusal_says_site_line_rule_and_record(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = Reply(body="# hello\nUser-agent: a\nUser-agent: Scrapy\nDisallow: /pri%76ate\n")
    result = await crawl(urls=[site.url("/private/x")])
    [(_, error)] = result.refused
    assert isinstance(error, RobotsForbidden)
    assert isinstance(error, IgnoreRequest)
    told = error.verdict.to_dict()
    assert told["site"] == site.url("")
    assert (told["robot"], told["status"]) == ("scrapy", 200)
    assert result.stats["robotstxt/request_count"] == 1
    assert result.stats["robotstxt/response_count"] == 1
    assert result.stats["robotstxt/response_status_count/200"] == 1
    assert result.stats["robotstxt/forbidden"] == 1
    assert result.stats["koster/forbidden/rule"] == 1
    said = (
        f"forbidden by {site.url('/robots.txt')}: line 4 'Disallow: /pri%76ate' in the"
        " group for a, Scrapy (line 2); draft 3.2.2"
    )
    assert str(error) == said
    assert f"<GET {site.url('/private/x')}> is {said}" in result.logged(logging.DEBUG)


async def test_requests_that_wait_for_no_robots_txt(crawl: Crawl, server: Server) -> None:
    """3.2.2: a request for the robots.txt is allowed also while it cannot be retrieved."""
    failing, exempt = server.site(), server.site()
    failing.robots, exempt.robots = Reply(503), Reply(body=FORBIDDEN)
    exempted = Request(exempt.url("/a"), meta={"dont_obey_robotstxt": True})
    result = await crawl(
        urls=[failing.url("/robots.txt"), exempted],
        settings={"RETRY_ENABLED": False, "HTTPERROR_ALLOW_ALL": True},
    )
    assert sorted(result.fetched) == sorted([failing.url("/robots.txt"), exempt.url("/a")])
    assert failing.asked("/robots.txt") == 1
    assert exempt.asked("/robots.txt") == 0


async def test_robots_parsed_is_sent_as_scrapy_does(crawl: Crawl, server: Server) -> None:
    seen = []

    def parsed(robotparser: RobotParser, request: Request) -> None:
        seen.append((robotparser.crawl_delay("scrapy"), request.url))

    site = server.site()
    site.robots = Reply(body="User-agent: *\nCrawl-delay: 2.5\nDisallow: /x\n")
    running = crawl.start(urls=site.urls(3))
    running.crawler.signals.connect(parsed, signal=robots_parsed)
    result = await running.result()
    assert seen == [(2.5, site.url("/page0"))]
    assert len(result.fetched) == 3
    assert result.seconds < 2.5


async def test_a_dry_run_refuses_nothing(crawl: Crawl, server: Server) -> None:
    """A verdict is that of its own request: none after a redirect to an allowed page."""
    verdicts: dict[str, Verdict | None] = {}

    class Looking(RecordingSpider):
        def page(self, response: Response) -> None:
            verdicts[response.url] = response.meta.get("koster_verdict")

    site, failing = server.site(), server.site()
    site.robots, failing.robots = "User-agent: *\nDisallow: /page\n", Reply(503)
    site.page("/page4", redirect(site.url("/allowed")))
    settings = {"KOSTER_DRY_RUN": True, "KOSTER_UNAVAILABLE": "disallow"}
    urls = [*site.urls(5), failing.url("/a")]
    result = await crawl(Looking, urls=urls, settings=settings)
    assert len(result.fetched) == 6
    assert result.stats["koster/dry_run/forbidden"] == 6
    assert "robotstxt/forbidden" not in result.stats
    assert verdicts.pop(site.url("/allowed")) is None
    assert sorted(verdict.line or 0 for verdict in verdicts.values() if verdict) == [0, 2, 2, 2, 2]
    assert "Requests refused now: 1. KOSTER_DRY_RUN: they are sent all the same" in "\n".join(
        result.logged()
    )
