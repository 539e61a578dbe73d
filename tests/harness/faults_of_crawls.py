"""Faults of single crawls: what changes in their course, code of others, parts that are missing."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise
from traceback import format_exception
from typing import Any, TypeAlias

import pytest
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.exceptions import NotConfigured
from scrapy.robotstxt import RobotParser

from harness.crawling import Crawl
from harness.replies import Reply
from harness.server import Server
from scrapy_koster import KosterMiddleware, KosterRobotParser, RobotsForbidden, RobotsUnavailable

OPEN = "User-agent: *\nDisallow:\n"
CLOSED = "User-agent: *\nDisallow: /\n"
LIMIT_SECS = 3.0
SOON: dict[str, Any] = {
    "KOSTER_DEFER_FIRST_SECS": 0.5,
    "KOSTER_DEFER_MAX_SECS": 0.5,
    "KOSTER_DEFER_LIMIT_SECS": LIMIT_SECS,
    "KOSTER_IDLE_LIMIT_SECS": LIMIT_SECS,
    "RETRY_ENABLED": False,
}


Run: TypeAlias = Callable[[Crawl, Server], Awaitable[None]]


@dataclass(frozen=True)
class CrawlFault:
    group: str
    name: str
    promised: str
    run: Run


# What changes between the decision and the sending.


async def _renewed(crawl: Crawl, server: Server) -> None:
    site = server.site()
    first = Reply(200, OPEN, headers={"Cache-Control": "max-age=2"})
    site.robots = [first, Reply(200, CLOSED, headers={"Cache-Control": "max-age=1000"})]
    settings = {"DOWNLOAD_DELAY": 0.5, "CONCURRENT_REQUESTS": 6, "KOSTER_EXPIRY_MIN_SECS": 0}
    result = await crawl(urls=site.urls(12), settings=settings)
    asked = [request.path for request in site.requests]
    renewed = len(asked) - 1 - asked[::-1].index("/robots.txt")
    assert renewed > 0
    assert len(asked) - 1 - renewed <= 1  # one may be under way
    assert len(result.refused) == 12 - len(site.pages_asked)
    assert {type(error) for _, error in result.refused} == {RobotsForbidden}


class NamesAnother:
    """A downloader middleware that sets the Host header once the request has been decided on."""

    def process_request(self, request: Request) -> None:
        if "late" in request.url:
            request.headers["Host"] = "b.example"


def _host(path: str, **settings: Any) -> Run:
    """Request *path*, with another site's name as its Host header, and a page without."""

    async def run(crawl: Crawl, server: Server) -> None:
        site = server.site()
        named = Request(site.url(path), headers={} if "late" in path else {"Host": "b.example"})
        given = {"DOWNLOADER_MIDDLEWARES": {NamesAnother: 900}, **settings}
        result = await crawl(urls=[named, site.url("/y")], settings=given)
        assert site.pages_asked == ["/y"]
        [(url, error)] = result.refused
        assert url == named.url
        assert isinstance(error, RobotsUnavailable)
        assert "put that name into the URL" in str(error)

    return run


# Parsers with a defect.


class NoLines(KosterRobotParser):
    """A subclass whose method for the lines raises."""

    def lines(self, robot: Any, /, *fields: bytes) -> Any:
        raise ZeroDivisionError


async def _no_lines(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = "User-agent: *\nCrawl-delay: 0.15\n"
    settings = {
        "KOSTER_CRAWL_DELAY": "obey",
        "KOSTER_CRAWL_DELAY_MAX_SECS": 0.3,
        "KOSTER_PARSER": NoLines,
    }
    running = crawl.start(urls=site.urls(3), settings=settings)
    with pytest.raises(AssertionError, match="Error while reading the delay"):
        await running.result()
    times = sorted(asked.at for asked in site.requests)
    assert len(times) == 4
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.2


# Parts that cannot be built.


class Unlicensed(RobotParser):
    @classmethod
    def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> Any:
        raise NotConfigured("no licence")

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return True


class NotOpening(Scheduler):
    def open(self, spider: Spider) -> Any:
        raise OSError("no queue")


class NotBuilt(Scheduler):
    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        raise NotConfigured("no queue")


class KosterOff(KosterMiddleware):
    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        raise NotConfigured("no luck")


def _not_begun(says: str, **settings: Any) -> Run:
    async def run(crawl: Crawl, server: Server) -> None:
        site = server.site()
        with pytest.raises(Exception) as caught:  # noqa: PT011  # whichever
            await crawl(urls=[site.url()], settings=settings)
        # Scrapy may stumble over what is not there once it has failed.
        assert re.search(says, "".join(format_exception(caught.value)))
        assert site.requests == ()

    return run


_COURSE, _PARTS = "the course of the crawl", "the parts of the crawl"
_PARSERS = "a parser with a defect"
_NOT_SENT = "refused (RobotsUnavailable) with advice"
_STOPS = "the crawl stops at the start with a message"
FAULTS = (
    CrawlFault(
        _COURSE,
        "the robots.txt is renewed while pages wait for DOWNLOAD_DELAY",
        "the new file decides",
        _renewed,
    ),
    CrawlFault(
        _COURSE,
        'a Host header names another site, KOSTER_UNAVAILABLE = "allow"',
        _NOT_SENT,
        _host("/x", KOSTER_UNAVAILABLE="allow"),
    ),
    CrawlFault(
        _COURSE,
        'a later middleware sets such a Host header, KOSTER_UNAVAILABLE = "allow"',
        _NOT_SENT,
        _host("/late", KOSTER_UNAVAILABLE="allow"),
    ),
    CrawlFault(
        _PARSERS,
        "its `lines` raises",
        "the delay is KOSTER_CRAWL_DELAY_MAX_SECS; an error is logged",
        _no_lines,
    ),
    *(
        CrawlFault(_PARTS, name, _STOPS, _not_begun(says, **settings))
        for name, says, settings in (
            ("KOSTER_REPORT cannot be written", "cannot be written", {"KOSTER_REPORT": "."}),
            ("a parser that raises NotConfigured", "licence", {"KOSTER_PARSER": Unlicensed}),
            ("a scheduler that does not open", "no queue", {"SCHEDULER": NotOpening}),
            ("a scheduler that raises NotConfigured", "no queue", {"SCHEDULER": NotBuilt}),
            (
                "a KosterMiddleware that raises NotConfigured",
                "there is no KosterMiddleware",
                {"DOWNLOADER_MIDDLEWARES": {KosterMiddleware: None, KosterOff: 100}},
            ),
        )
    ),
)
