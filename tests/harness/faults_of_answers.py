"""Faults of what is answered from a copy: links, overrides, a comparison."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from harness.clocks import JumpingClock
from harness.crawling import Crawl, RecordingSpider
from harness.faults_of_crawls import OPEN, SOON, CrawlFault
from harness.replies import Reply
from harness.server import Server
from harness.virtual import TIME
from scrapy_koster import (
    KosterRobotParser,
    RobotsUnavailable,
)

RULES = "User-agent: *\nDisallow: /private\n"
WILD = "User-agent: *\nDisallow: /*.gif\n"

Run = Callable[[Crawl, Server], Awaitable[None]]


# Links that are filtered.


class Linking(RecordingSpider):
    """Its first page has the links."""

    links: Any = ()
    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def page(self, response: Response) -> Iterator[Request]:
        if response.meta.get("depth", 0) == 0:
            self.meanwhile()
            yield from map(self.ask, self.links)


async def _links_after_expiry(crawl: Crawl, server: Server) -> None:
    """The copy that forbids a link has expired when the page is read, and the site fails then."""
    crawl.clock = clock = JumpingClock()
    site = server.site()
    site.robots = [RULES, Reply(503)]
    links = [site.url("/private"), site.url("/open")]
    result = await crawl(
        Linking,
        urls=[site.url("/")],
        arguments={"links": links, "meanwhile": lambda: setattr(clock, "ahead", 86_400.0 * 60)},
        settings={**SOON, "KOSTER_FILTER_LINKS": True},
    )
    assert site.pages_asked == ["/"]
    assert {url: type(error) for url, error in result.refused} == dict.fromkeys(
        links, RobotsUnavailable
    )
    assert "koster/links/filtered" not in result.stats


class NoLink(KosterRobotParser):
    """Cannot decide on what looks private."""

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        if "private" in str(url):
            raise CancelledError
        return super().allowed(url, user_agent)


async def _links_of_a_defect(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = OPEN
    running = crawl.start(
        Linking,
        urls=[site.url("/")],
        arguments={"links": [site.url("/private"), site.url("/open")]},
        settings={"KOSTER_FILTER_LINKS": True, "KOSTER_PARSER": NoLink},
    )
    await _with_an_error(running.result(), "allowed", "raised", NoLink)
    assert site.pages_asked == ["/", "/open"]
    assert _refused(running) == [site.url("/private")]


async def _with_an_error(result: Awaitable[object], method: str, does: str, parser: type) -> None:
    """The log has the error of the parser with its traceback: the harness fails such a crawl."""
    said = rf"{method}\(\) of the parser [\w.]+\.{parser.__qualname__} {does}"
    with pytest.raises(AssertionError, match=said):
        await result


def _refused(running: Any) -> list[str]:
    assert not running.crawler.crawling
    return [url for url, _ in running.crawler.spider.refused]


# A comparison with RFC 9309.


class NoComparison(KosterRobotParser):
    """A subclass whose comparison of a file raises."""

    def watch(self, robot: str | bytes) -> Any:
        raise CancelledError


class NoWatch(NoComparison):
    """A subclass that returns another type: it would be asked about each URL."""

    def watch(self, robot: str | bytes) -> Any:
        return self

    def hazard(self, url: str) -> Any:
        raise CancelledError


def _compared(parser: type[NoComparison]) -> Run:
    """Two sites have wildcards; whether a page may be sent is not known of either."""

    async def run(crawl: Crawl, server: Server) -> None:
        sites = [server.site() for _ in range(2)]
        for site in sites:
            site.robots = WILD
        urls = [site.url(path) for site in sites for path in ("/a", "/b.gif")]
        running = crawl.start(urls=urls, settings={"KOSTER_PARSER": parser})
        does = "returned" if parser is NoWatch else "raised"
        await _with_an_error(running.result(), "watch", does, parser)
        assert all(site.pages_asked == [] for site in sites)
        assert sorted(_refused(running)) == sorted(urls)

    return run


# Overrides.


async def _override_expires(crawl: Crawl, server: Server) -> None:
    """It is its last day when the first page is fetched, and the next day afterwards."""
    crawl.clock = clock = JumpingClock()
    site = server.site()
    site.robots = RULES
    today = datetime.fromtimestamp(TIME.epoch(), timezone.utc).date().isoformat()
    override = {"site": site.url(""), "reason": "agreed", "until": today, "allow": ["/private"]}
    result = await crawl(
        Linking,
        urls=[site.url("/private/first")],
        arguments={
            "links": site.urls(3, "/private/{}"),
            "meanwhile": lambda: setattr(clock, "ahead", 86_400.0),
        },
        settings={"KOSTER_OVERRIDES": [override], "KOSTER_EXPIRY_SECS": 10**7},
    )
    assert site.pages_asked == ["/private/first"]
    assert [verdict.line for verdict in result.verdicts] == [2] * 3
    assert result.stats["koster/override/allowed"] == 1
    assert site.asked("/robots.txt") == 1


_CLOSED = "no page is fetched; an error is logged"
_LINKS, _COMPARISON = "filtered links (KOSTER_FILTER_LINKS)", "the comparison with RFC 9309"
FAULTS = (
    CrawlFault(
        "the robots.txt has expired when the page is read, and is 503 now",
        "links are queued, then refused (RobotsUnavailable)",
        _links_after_expiry,
        _LINKS,
    ),
    CrawlFault(
        "a parser that raises at a link",
        "the link is refused, others are fetched; an error is logged",
        _links_of_a_defect,
        _LINKS,
    ),
    CrawlFault("a parser whose `watch` raises", _CLOSED, _compared(NoComparison), _COMPARISON),
    CrawlFault(
        "a parser whose `watch` returns another type", _CLOSED, _compared(NoWatch), _COMPARISON
    ),
    CrawlFault(
        "an entry expires in mid-crawl",
        "its pages are refused (RobotsForbidden) from then on, without another robots.txt",
        _override_expires,
        "KOSTER_OVERRIDES",
    ),
)
