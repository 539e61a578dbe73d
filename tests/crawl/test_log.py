"""Section 6: whatever text reaches the log of a crawl is printable and bounded."""

from __future__ import annotations

import logging

import pytest
from harness.crawling import RecordingSpider
from scrapy.crawler import Crawler

from scrapy_koster.crawl.messages.log import Log

NAME = "scrapy_koster.crawl.somewhere"
HOSTILE = "\x1b[2J\n\u2028\u202e\ud800\x9b"
SHOWN = "\\x1b[2J\\n\\u2028\\u202e\\ud800\\x9b"


@pytest.fixture
def crawler() -> Crawler:
    crawler = Crawler(RecordingSpider)
    crawler.spider = RecordingSpider()
    return crawler


@pytest.fixture
def log(crawler: Crawler) -> Log:
    return Log(NAME, crawler)


@pytest.mark.parametrize("level", ["debug", "info", "warning"])
def test_a_line_has_its_level_its_logger_its_spider_and_its_caller(
    level: str, log: Log, crawler: Crawler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    getattr(log, level)("%(site)s answers", site="http://example.com")
    [record] = caplog.records
    assert record.getMessage() == "http://example.com answers"
    assert (record.levelname, record.name) == (level.upper(), NAME)
    assert vars(record)["spider"] is crawler.spider
    assert record.pathname == __file__


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(f"a{HOSTILE}", f"a{SHOWN}", id="text"),
        pytest.param(ValueError(HOSTILE), f"ValueError: {SHOWN}", id="error"),
        pytest.param("x" * 1_000_000, "x" * 997 + "...", id="long"),
        pytest.param(None, "None", id="object"),
    ],
)
def test_a_value_is_made_printable(
    value: object, shown: str, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    log.info("%(value)s", value=value)
    assert caplog.messages == [shown]


def test_a_traceback_holds_no_text_of_others(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    try:
        _raise()
    except ValueError as error:
        log.defect("Error with %(site)s", error, site=HOSTILE)
    [record] = caplog.records
    assert record.levelname == "ERROR"
    lines = logging.Formatter("%(message)s").format(record).split("\n")
    assert all(line.isprintable() for line in lines)
    assert lines[0] == f"Error with {SHOWN}"
    assert lines[-1].endswith(f"UnexpectedError: ValueError: {SHOWN}")
    assert "in _raise" in "".join(lines)


def _raise() -> None:
    raise ValueError(HOSTILE) from KeyError(HOSTILE)


def test_the_last_line_at_info_says_that_more_follow(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for number in range(4):
        log.info_first(3, "kind", "%(site)s answers", site=number)
    more = ". Further messages like this are logged at DEBUG"
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("INFO", "0 answers"), ("INFO", "1 answers"), ("INFO", f"2 answers{more}"),
        ("DEBUG", "3 answers"),
    ]  # fmt: skip
