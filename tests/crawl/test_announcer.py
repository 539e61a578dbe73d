"""How many sites the log names. What it says of each is in first-crawl.md, word for word."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from harness.crawling import RecordingSpider
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_koster.crawl.config import config_of
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import CachedRobots, FetchFailure
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.step import Defer, Obey, Pass, Refuse

FILE = CachedRobots("http://fict.org/robots.txt", 200, b"User-agent: *\n", None, None, 1e9, 1e10)
SHUT = replace(FILE, status=403, body=b"")
FAILURE = FetchFailure("HTTP 503", 3, since=1e9, asked=1e9 + 20, retry=1e9 + 60, stale=None)


def test_twenty_sites_of_a_kind_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """Sites that are refused without a waiting request are not named."""
    crawler = Crawler(RecordingSpider, {"ROBOTSTXT_OBEY": True, "USER_AGENT": "fig"})
    crawler.spider = RecordingSpider()
    crawler.stats = MemoryStatsCollector(crawler)
    announcer = Announcer(crawler, config_of(crawler))
    for number in range(22):
        site = Site("http", f"s{number}.example", 80)
        for step in (Defer(FAILURE, 0), Refuse(FAILURE, 0), Pass(FAILURE, 0), Obey(SHUT, 0)):
            announcer.announce(SiteState(site), step, waiting=1)
        announcer.announce(SiteState(site), Refuse(FAILURE, 0), waiting=0)
        announcer.odd(SiteState(site), replace(FILE, cut_bytes=9))
    assert [record.levelno for record in caplog.records] == [logging.INFO] * 100
    assert crawler.stats.get_value("koster/cut") == 22
