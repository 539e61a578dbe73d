"""What is said at the end of a crawl, word for word."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from harness.crawling import RecordingSpider
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.messages.summary import Retrieval, Summary
from scrapy_koster.protocol.hazard import Cause
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.site_status import SiteStatus

HAZARDS = (
    "Fetched 4 pages that RFC 9309{} disallows (order 3, records 1). For example http://h/\\x1b is"
    " allowed because. Set KOSTER_PARSER ="
    ' "scrapy_koster.{}RobotParser" to refuse them'
)
HINT = ', or to "scrapy_koster.KosterRobotParser" to obey the draft without this warning'
STATS = {
    "robotstxt/forbidden": 3,
    "koster/dry_run/forbidden": 5,
}


def summary(stats: dict[str, int] | None = None, **settings: Any) -> Summary:
    crawler = Crawler(RecordingSpider, {"USER_AGENT": "fig", **settings})
    crawler.spider = RecordingSpider()
    crawler.stats = MemoryStatsCollector(crawler)
    crawler.stats.set_stats(dict(stats or {}))
    return Summary(crawler, Config.from_crawler(crawler))


def site(number: int) -> Site:
    return Site("http", f"s{number}.example", 80)


def said(summary: Summary, caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    summary.write()
    return [(record.levelname, record.getMessage()) for record in caplog.records]


@pytest.mark.parametrize(
    ("settings", "refused", "said_how"),
    [
        ({}, "refused: 3", False),
        ({"LOG_LEVEL": "INFO"}, "refused: 3", True),
        (
            {"LOG_LEVEL": "WARNING", "KOSTER_DRY_RUN": True},
            "that would be refused (KOSTER_DRY_RUN): 5",
            True,
        ),
        ({"LOG_LEVEL": "INFO"}, "refused: 0", False),
    ],
)
def test_where_the_lines_of_refusals_are_not_shown_it_says_how_to_see_them(
    caplog: pytest.LogCaptureFixture, settings: dict[str, Any], refused: str, *, said_how: bool
) -> None:
    [(_, line)] = said(summary(None if refused == "refused: 0" else STATS, **settings), caplog)[-1:]
    assert f"Sites: none. Requests {refused}. Copies" in line
    how = '. Which were refused, and by which line: LOG_LEVEL = "DEBUG", or scrapy robots explain'
    assert (how in line) is said_how


def test_a_site_is_counted_as_what_it_is_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    counting = summary(STATS)
    counting.stands(site(1), SiteStatus.UNAVAILABLE, None)
    counting.stands(site(1), SiteStatus.OBEYED, SiteStatus.UNAVAILABLE)
    counting.stands(site(2), SiteStatus.OBEYED, None)
    counting.stands(site(2), SiteStatus.RESTRICTED, SiteStatus.OBEYED)
    counting.stands(site(3), SiteStatus.UNAVAILABLE, None)
    counting.copies.update({Retrieval.FETCHED: 3, Retrieval.FROM_STORAGE: 2})
    line = (
        "Sites: 1 with a robots.txt, 1 restricted, 1 unavailable. Requests refused: 3. Copies of"
        " robots.txt: 3 fetched, 2 from storage, 0 confirmed unchanged"
    )
    closed = (
        "Closed sites at the end: 1 restricted (http://s2.example), 1 unavailable"
        " (http://s3.example). KOSTER_REPORT lists all of them"
    )
    assert said(counting, caplog) == [("WARNING", closed), ("INFO", line)]


def test_the_settings_in_force(caplog: pytest.LogCaptureFixture) -> None:
    """The line of a crawl with its defaults is in first-crawl.md."""
    caplog.set_level("INFO")
    opening = summary(
        KOSTER_PARSER="scrapy_koster.StrictestRobotParser",
        KOSTER_STORAGE="scrapy_koster.storage.memory.MemoryStorage",
        KOSTER_CRAWL_DELAY="obey",
        KOSTER_DRY_RUN=True,
    )
    opening.begin("FigTree-Images, figtree")
    [line] = caplog.messages
    assert line == (
        f"scrapy-koster {version('scrapy-koster')}: robot figtree-images, figtree,"
        " StrictestRobotParser, HTTP 401 and 403 close a site, copies in MemoryStorage, Crawl-delay"
        " obeyed, dry run: no request is refused"
    )


@pytest.mark.parametrize(
    ("settings", "level", "line"),
    [
        ({}, "WARNING", HAZARDS.format(", today's standard,", "Rfc9309") + HINT),
        (
            {"KOSTER_PARSER": "scrapy_koster.KosterRobotParser"},
            "INFO",
            HAZARDS.format("", "Strictest"),
        ),
    ],
)
def test_pages_that_rfc_9309_forbids_are_summed_up(
    settings: dict[str, Any], level: str, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    counting = summary(STATS, **settings)
    for url, cause in (
        ("http://h/1", Cause.RECORDS),
        ("http://h/\x1b", Cause.ORDER),
        ("http://h/2", Cause.ORDER),
        ("http://h/3", Cause.ORDER),
    ):
        counting.hazard_met(url, cause, "allowed because")
    assert said(counting, caplog)[:-1] == [(level, line)]
