"""What is said at the start and at the end of a crawl with settings of its own.

What is said by default is in first-crawl.md, word for word.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from harness.crawling import RecordingSpider
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.messages.summary import Summary
from scrapy_koster.protocol.hazard import Cause


def summary(**settings: Any) -> Summary:
    crawler = Crawler(RecordingSpider, {"USER_AGENT": "fig", **settings})
    crawler.spider = RecordingSpider()
    crawler.stats = MemoryStatsCollector(crawler)
    return Summary(crawler, Config.from_crawler(crawler))


def test_the_settings_in_force_are_told(caplog: pytest.LogCaptureFixture) -> None:
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


def test_who_has_chosen_the_draft_is_not_warned_of_what_rfc_9309_forbids(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    counting = summary(KOSTER_PARSER="scrapy_koster.KosterRobotParser")
    counting.hazard_met("http://h/1", Cause.ORDER, "allowed because")
    counting.write()
    [told, _] = caplog.records
    assert told.levelname == "INFO"
    assert told.getMessage().startswith("Fetched 1 page that RFC 9309 disallows (order 1).")
