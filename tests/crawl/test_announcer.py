"""How many sites the log names. What it says of each is in first-crawl.md, word for word."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import pytest
from harness.crawling import RecordingSpider
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_koster.crawl.config import config_of
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import Answer, CachedRobots, FetchFailure, after_answer
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.step import Defer, Obey, Pass, Refuse, next_step

FILE = CachedRobots("http://fict.org/robots.txt", 200, b"User-agent: *\n", None, None, 1e9, 1e10)
SHUT = replace(FILE, status=403, body=b"")
FAILURE = FetchFailure("HTTP 503", 3, since=1e9, asked=1e9 + 20, retry=1e9 + 60, stale=None)


def a_crawler() -> Crawler:
    crawler = Crawler(RecordingSpider, {"ROBOTSTXT_OBEY": True, "USER_AGENT": "fig"})
    crawler.spider = RecordingSpider()
    crawler.stats = MemoryStatsCollector(crawler)
    return crawler


def test_twenty_sites_of_a_kind_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """Sites that are refused without a waiting request are not named."""
    announcer = Announcer(crawler := a_crawler(), config_of(crawler))
    for number in range(22):
        site = Site("http", f"s{number}.example", 80)
        for step in (Defer(FAILURE, 0), Refuse(FAILURE, 0), Pass(FAILURE, 0), Obey(SHUT, 0)):
            announcer.announce(SiteState(site), step, waiting=1)
        announcer.announce(SiteState(site), Refuse(FAILURE, 0), waiting=0)
        announcer.odd(SiteState(site), replace(FILE, cut_bytes=9))
    assert [record.levelno for record in caplog.records] == [logging.INFO] * 100
    assert crawler.stats.get_value("koster/cut") == 22


def test_an_attempt_after_the_limit_is_not_promised(caplog: pytest.LogCaptureFixture) -> None:
    """KOSTER_DEFER_LIMIT_SECS is 300, so the site is given up before."""
    config = config_of(crawler := a_crawler())
    announcer, now = Announcer(crawler, config), time.time()
    answer = Answer(FILE.url, 429, {"retry-after": "400"})
    known = after_answer(answer, None, now=now, policy=config.policy, jitter=0)
    step = next_step(known, now=now, policy=config.policy)
    announcer.announce(SiteState(Site("http", "fict.org", 80)), step, waiting=1)
    assert "400 s, which is too late: if the crawl still runs in 300 s, it gives" in caplog.text


OUT_OF_FILES = "raise the limit (ulimit -n), and run the crawl again"
OFFLINE = "No robots.txt could be fetched in this crawl: check your network and your proxy"


@pytest.mark.parametrize(
    ("reason", "failed", "others", "said"),
    [
        ("ConnectBindError: Couldn't bind: 24: Too many open files.", 1, 1, OUT_OF_FILES),
        ("ConnectionRefusedError", 6, 0, OFFLINE),
        ("ConnectionRefusedError", 5, 0, "KOSTER_OVERRIDES"),
        ("ConnectionRefusedError", 6, 1, "KOSTER_OVERRIDES"),
    ],
)
def test_what_to_do_about_a_fault_of_the_crawl(
    reason: str, failed: int, others: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its sites did nothing wrong: no override, and no longer wait, would help."""
    announcer = Announcer(crawler := a_crawler(), config_of(crawler))
    failure = replace(FAILURE, reason=reason)
    steps = [Obey(FILE, 0)] * others + [Refuse(failure, 0)] * failed
    for number, step in enumerate(steps):
        site = Site("http", f"s{number}.example", 80)
        announcer.log_retrieved(site, step.copy if isinstance(step, Obey) else failure)
        announcer.announce(SiteState(site), step, waiting=1)
    announcer.summary.write()
    *_, given_up, closed, _ = caplog.messages
    assert said in given_up
    for fault in (OUT_OF_FILES, OFFLINE):
        assert (fault in closed) is (fault in given_up) is (fault == said)
