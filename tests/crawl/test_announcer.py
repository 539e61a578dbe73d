"""What is said of a site, word for word, and when it is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.clocks import StillClock, set_clock
from harness.crawling import RecordingSpider
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_koster.crawl.config import config_of
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import CachedRobots, FetchFailure
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.site_status import SiteStatus
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, Step

SITE = Site("http", "fict.org", 80)
URL = "http://fict.org/robots.txt"
FILE = CachedRobots(URL, 200, b"User-agent: *\n", None, None, 1e9, 1e9 + 60)
GONE = replace(FILE, status=404, body=b"")
SHUT = replace(FILE, status=403, body=b"")
PAGE = replace(FILE, body=b"<html>")
FAILURE = FetchFailure("HTTP 503", 3, since=1e9, asked=1e9 + 20, retry=1e9 + 60, stale=None)
FRESH = "fresh until 2001-09-09T01:47:40Z)"


@pytest.fixture
def crawler() -> Crawler:
    crawler = Crawler(RecordingSpider, {"ROBOTSTXT_OBEY": True, "USER_AGENT": "fig"})
    crawler.spider = RecordingSpider()
    crawler.stats = MemoryStatsCollector(crawler)
    set_clock(crawler, StillClock(FAILURE.asked + 10))
    return crawler


@pytest.fixture
def announcer(crawler: Crawler) -> Announcer:
    assert crawler.stats is not None
    return Announcer(crawler, config_of(crawler))


def state_of(status: SiteStatus | None = None, *, is_deferred: bool = False) -> SiteState:
    state = SiteState(SITE)
    state.status, state.is_deferred = status, is_deferred
    return state


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def assert_said(caplog: pytest.LogCaptureFixture, *starts: str) -> None:
    """The lines at INFO begin so; first-crawl.md has most of them word for word."""
    for (level, line), start in zip(said(caplog), starts, strict=True):
        assert level == "INFO"
        assert line.startswith(start)


DEFERRING = (
    "Holding requests to http://fict.org until its robots.txt can be fetched (HTTP 503). Waiting"
    " requests: 2. Next attempt in 30 s"
)
GIVING_UP = "Giving up http://fict.org: its robots.txt cannot be retrieved (HTTP 503), attempts: 3."
LETTING = "Letting requests to http://fict.org through (KOSTER_UNAVAILABLE): its robots.txt cannot"
RESTRICTED = "http://fict.org is restricted: its robots.txt answers HTTP 403, so no page may be"
NO_RULES = "http://fict.org has no rules: its robots.txt answers HTTP"
AGAIN = "http://fict.org answers again: HTTP "


@pytest.mark.parametrize(
    ("before", "step", "lines", "status"),
    [
        (None, Obey(FILE, 0), [], SiteStatus.OBEYED),
        (None, Obey(GONE, 0), [f"{NO_RULES} 404"], SiteStatus.WITHOUT_ROBOTS_TXT),
        (None, Obey(SHUT, 0), [RESTRICTED], SiteStatus.RESTRICTED),
        (SiteStatus.RESTRICTED, Obey(SHUT, 0), [], SiteStatus.RESTRICTED),
        (None, Obey(PAGE, 0), [f"{NO_RULES} 200 with an HTML page, {URL}"], SiteStatus.HTML),
        (SiteStatus.UNAVAILABLE, Obey(FILE, 0), [f"{AGAIN}200"], SiteStatus.OBEYED),
        (
            SiteStatus.LET_THROUGH,
            Obey(GONE, 0),
            [AGAIN, NO_RULES],
            SiteStatus.WITHOUT_ROBOTS_TXT,
        ),
        (None, Defer(FAILURE, 0), [DEFERRING], SiteStatus.UNAVAILABLE),
        (SiteStatus.UNAVAILABLE, Defer(FAILURE, 0), [], SiteStatus.UNAVAILABLE),
        (SiteStatus.UNAVAILABLE, Refuse(FAILURE, 0), [GIVING_UP], SiteStatus.UNAVAILABLE),
        (None, Pass(FAILURE, 0), [LETTING], SiteStatus.LET_THROUGH),
        (SiteStatus.LET_THROUGH, Pass(FAILURE, 0), [], SiteStatus.LET_THROUGH),
        (SiteStatus.OBEYED, Ask(None), [], SiteStatus.OBEYED),
    ],
)
def test_what_a_step_is_announced_as(
    before: SiteStatus | None,
    step: Step,
    lines: list[str],
    *,
    status: SiteStatus,
    announcer: Announcer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = state_of(before, is_deferred=before is SiteStatus.UNAVAILABLE)
    announcer.announce(state, step, waiting=2)
    assert_said(caplog, *lines)
    assert state.status is status


def test_a_403_that_opens_the_site_names_the_setting(
    crawler: Crawler, caplog: pytest.LogCaptureFixture
) -> None:
    crawler.settings.set("KOSTER_RESTRICTED", "allow")
    Announcer(crawler, config_of(crawler)).announce(state_of(), Obey(SHUT, 0), waiting=2)
    assert_said(caplog, f"{NO_RULES} 403, which opens the site (KOSTER_RESTRICTED)")


def test_twenty_sites_of_a_kind_are_named(
    announcer: Announcer, crawler: Crawler, caplog: pytest.LogCaptureFixture
) -> None:
    """Sites that are refused without a waiting request are not named."""
    for _ in range(22):
        for step in (Defer(FAILURE, 0), Refuse(FAILURE, 0), Pass(FAILURE, 0), Obey(SHUT, 0)):
            announcer.announce(state_of(), step, waiting=1)
        announcer.announce(state_of(), Refuse(FAILURE, 0), waiting=0)
        announcer.odd(state_of(), replace(FILE, cut_bytes=9))
    assert [level for level, _ in said(caplog)] == ["INFO"] * 100
    assert crawler.stats is not None
    assert crawler.stats.get_value("koster/cut") == 22


def test_a_site_that_is_deferred_again_is_counted_again(
    announcer: Announcer, crawler: Crawler, caplog: pytest.LogCaptureFixture
) -> None:
    """After it was given up; in between nobody is told that nothing has changed."""
    state = state_of()
    for step in (Defer(FAILURE, 0), Defer(FAILURE, 0), Refuse(FAILURE, 0)) * 2:
        announcer.announce(state, step, waiting=2)
    assert_said(caplog, *[DEFERRING, GIVING_UP] * 2)
    assert crawler.stats is not None
    assert crawler.stats.get_value("koster/deferred/sites") == 2
