"""Faults of what is answered from a copy: links, sitemaps, overrides, pages in its place."""

from __future__ import annotations

import gzip
import logging
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.spiders import SitemapSpider

from harness.challenge_pages import ANUBIS
from harness.clocks import JumpingClock
from harness.crawling import Crawl, RecordingSpider
from harness.faults_of_crawls import OPEN, SOON, CrawlFault
from harness.replies import Handler, Hang, Reply
from harness.server import Server, Site
from harness.virtual import TIME
from scrapy_koster import (
    KosterRobotParser,
    RobotsForbidden,
    RobotsSitemapMixin,
    RobotsUnavailable,
)

RULES = "User-agent: *\nDisallow: /private\n"
WILD = "User-agent: *\nDisallow: /*.gif\n"
_HTML = {"Content-Type": "text/html"}

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


def _links_to(robots: Handler, **settings: Any) -> Run:
    """A page has links to a site that cannot be asked, and to its own."""

    async def run(crawl: Crawl, server: Server) -> None:
        site, failing = server.site(), server.site(host="127.0.0.2")
        site.robots, failing.robots = RULES, robots
        links = [*failing.urls(3), site.url("/private"), site.url("/open"), *failing.urls(5)]
        result = await crawl(
            Linking,
            urls=[site.url("/")],
            arguments={"links": links},
            settings={**SOON, "KOSTER_TIMEOUT_SECS": 1, "KOSTER_FILTER_LINKS": True, **settings},
        )
        assert site.pages_asked == ["/", "/open"]
        assert failing.pages_asked == []
        assert failing.asked("/robots.txt") > 0
        assert result.stats["koster/links/filtered"] == 1
        refused = {url: type(error) for url, error in result.refused}
        assert refused == {
            site.url("/private"): RobotsForbidden,
            **dict.fromkeys(failing.urls(5), RobotsUnavailable),
        }
        assert len(result.refused) == 6

    return run


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

    def hazard(self, url: str, *, is_plain: bool) -> Any:
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


# Sitemaps.


class Mapped(RobotsSitemapMixin, SitemapSpider):
    name = "mapped"

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.fetched: list[str] = []

    def parse(self, response: Response) -> None:
        self.fetched.append(response.url)


def _map_of(*urls: str) -> str:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'


def _mapped(broken: Callable[[Site], Handler], *fetched: str) -> Run:
    """A broken sitemap, of whose pages *fetched* are crawled, and two that are not broken."""

    async def run(crawl: Crawl, server: Server) -> None:
        site, healthy = server.site(), server.site()
        for each in (site, healthy):
            each.robots = f"{RULES}Sitemap: /a.xml\nSitemap: /b.xml\n"
            each.page("/a.xml", Reply(200, _map_of(each.url("/1"), each.url("/private"))))
            each.page("/b.xml", Reply(200, _map_of(each.url("/2"))))
        site.page("/a.xml", broken(site))
        result = await crawl(
            Mapped,
            arguments={"sitemap_urls": [each.url("/robots.txt") for each in (site, healthy)]},
            settings={"DOWNLOAD_TIMEOUT": 1, "RETRY_ENABLED": False, "LOG_LEVEL": "CRITICAL"},
        )  # what fails is logged by Scrapy, with a traceback
        wanted = [site.url(path) for path in ("/2", *fetched)]
        wanted += [healthy.url(path) for path in ("/1", "/2")]
        assert sorted(result.fetched) == sorted(wanted)
        assert site.asked("/private") == healthy.asked("/private") == 0
        assert [each.asked("/robots.txt") for each in (site, healthy)] == [1, 1]
        assert result.finish_reason == "finished"

    return run


def _two_pages(site: Site) -> bytes:
    return _map_of(site.url("/1"), site.url("/3")).encode()


def _torn(site: Site) -> Reply:
    """It ends after its first page, as if it were whole."""
    return Reply(200, _two_pages(site).partition(b"</url>")[0])


def _gzip_cut(site: Site) -> Reply:
    packed = gzip.compress(_two_pages(site))
    return Reply(200, packed[:30], headers={"Content-Type": "application/gzip"})


async def _sitemaps_of_a_cut_file(crawl: Crawl, server: Server) -> None:
    site = server.site()
    known = f"{RULES}Sitemap: /a.xml\n"
    site.robots = f"{known}Sitemap: /b.xml\n"
    site.pages(Reply(200, _map_of(site.url("/private"), site.url("/1"))))
    result = await crawl(
        Mapped,
        arguments={"sitemap_urls": [site.url("/robots.txt")]},
        settings={"KOSTER_MAX_BYTES": len(known) + 10},
    )
    assert site.pages_asked == ["/a.xml", "/1"]
    [warning] = [each for each in result.logged(logging.WARNING) if "after the cut" in each]
    assert "raise KOSTER_MAX_BYTES" in warning


# Pages in place of a robots.txt.


def _in_its_place(body: str, setting: str, error: type[Exception], *then: str) -> Run:
    async def run(crawl: Crawl, server: Server) -> None:
        site, healthy = server.site(), server.site(host="127.0.0.2")
        site.robots = [Reply(200, body, headers=_HTML), *then]
        healthy.robots = RULES
        urls = [site.url("/"), site.url("/private"), healthy.url("/")]
        result = await crawl(urls=urls, settings={**SOON, "KOSTER_HTML_ROBOTSTXT": setting})
        wanted = [site.url("/")] if then else []
        assert sorted(result.fetched) == sorted([*wanted, healthy.url("/")])
        assert site.pages_asked == (["/"] if then else [])
        assert {type(each) for _, each in result.refused} == {error}
        assert len(result.refused) == 3 - len(result.fetched)

    return run


async def _renewed_as_a_challenge(crawl: Crawl, server: Server) -> None:
    """Rules are obeyed; when they have expired the site asks who we are."""
    crawl.clock = clock = JumpingClock()
    site = server.site()
    site.robots = [RULES, Reply(200, ANUBIS, headers=_HTML)]
    result = await crawl(
        Linking,
        urls=[site.url("/")],
        arguments={
            "links": [site.url("/private"), site.url("/open")],
            "meanwhile": lambda: setattr(clock, "ahead", 86_400.0 * 60),
        },
        settings=SOON,
    )
    assert site.pages_asked == ["/"]
    assert [type(error) for _, error in result.refused] == [RobotsUnavailable] * 2


_NO_LINKS = "links to it are queued, then refused (RobotsUnavailable); others are fetched"
_CLOSED = "no page is fetched; an error is logged"
_OTHERS = "its other sitemaps and other sites are crawled"
_LINKS, _MAPS = "filtered links (KOSTER_FILTER_LINKS)", "a sitemap (RobotsSitemapMixin)"
_COMPARISON, _PLACE = "the comparison with RFC 9309", "a page in place of a robots.txt"
_UNAVAILABLE = "retried, then refused (RobotsUnavailable)"
FAULTS = (
    CrawlFault("the robots.txt of a linked site is 503", _NO_LINKS, _links_to(Reply(503)), _LINKS),
    CrawlFault(
        'the robots.txt of a linked site is 503, KOSTER_UNAVAILABLE = "disallow"',
        _NO_LINKS,
        _links_to(Reply(503), KOSTER_UNAVAILABLE="disallow"),
        _LINKS,
    ),
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
    CrawlFault("its XML ends early", _OTHERS, _mapped(_torn, "/1"), _MAPS),
    CrawlFault("gzip that is cut", _OTHERS, _mapped(_gzip_cut), _MAPS),
    CrawlFault("no XML", _OTHERS, _mapped(lambda _: Reply(200, b"\0\xff" * 500)), _MAPS),
    CrawlFault("hangs", _OTHERS, _mapped(lambda _: Hang()), _MAPS),
    CrawlFault(
        "its line in the robots.txt is after the cut (KOSTER_MAX_BYTES)",
        "sitemaps before the cut are crawled; one warning",
        _sitemaps_of_a_cut_file,
        _MAPS,
    ),
    CrawlFault(
        "a challenge page, then rules",
        "retried, then its rules are obeyed",
        _in_its_place(ANUBIS, "allow", RobotsForbidden, RULES),
        _PLACE,
    ),
    CrawlFault(
        "rules, then a challenge page when they have expired",
        _UNAVAILABLE,
        _renewed_as_a_challenge,
        _PLACE,
    ),
)
