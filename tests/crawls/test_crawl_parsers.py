"""Parsers of others that return a value of a wrong type: they open nothing."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from harness.comparison import RULES
from harness.crawling import Crawl, RecordingSpider, kept_log
from harness.server import Server
from scrapy.robotstxt import ProtegoRobotParser

from scrapy_koster import KosterRobotParser
from scrapy_koster.protocol.defect import ParserDefectError

LOGGER = "scrapy_koster.crawl.components.downloadermiddleware"


async def _soon() -> bool:
    return True


@pytest.fixture(autouse=True)
def warned() -> Iterator[None]:
    """A coroutine that nobody awaits is told of by a warning, which is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def returning(base: Any, method: str, value: Callable[[], Any]) -> Any:
    return type("Odd", (base,), {method: lambda self, *_: value()})


@pytest.mark.promise("docs/reliability.md", "a parser with a wrong answer opens no page")
@pytest.mark.parametrize(
    ("base", "value"),
    [
        (KosterRobotParser, lambda: (False, "a reason")),
        (KosterRobotParser, _soon),
        (ProtegoRobotParser, lambda: None),
    ],
    ids=["a tuple", "a coroutine", "None"],
)
async def test_only_true_opens(
    crawl: Crawl, server: Server, base: type, value: Callable[[], Any]
) -> None:
    site = server.site()
    site.robots = RULES
    parser = returning(base, "allowed", value)
    with kept_log() as log:
        running = crawl.start(urls=site.urls(3), settings={"KOSTER_PARSER": parser})
        with pytest.raises(AssertionError, match="Odd"):  # it is logged, with a traceback
            await running.result()
    spider = running.crawler.spider
    assert isinstance(spider, RecordingSpider)
    assert site.pages_asked == []
    [said] = [record for record in log if record.name == LOGGER]
    assert said.levelno == logging.ERROR
    assert "Odd" in said.getMessage()
    assert [type(error) for _, error in spider.refused] == [ParserDefectError] * 3


# ROBOTSTXT_PARSER, KOSTER_PARSER

PYTHON = "scrapy.robotstxt.PythonRobotParser"


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({"ROBOTSTXT_PARSER": "nowhere.Parser"}, True),
        ({"ROBOTSTXT_PARSER": PYTHON, "KOSTER_PARSER": PYTHON}, False),
        ({"ROBOTSTXT_PARSER": PYTHON, "KOSTER_PARSER": None}, True),
    ],
)
async def test_a_parser_for_scrapys_middleware_is_not_ignored_without_a_word(
    crawl: Crawl, server: Server, settings: dict[str, Any], *, warned: bool
) -> None:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /no"
    result = await crawl(urls=[site.url("/"), site.url("/no")], settings=settings)
    assert result.fetched == (site.url("/"),)
    warnings = result.warnings
    assert len(warnings) == warned
    assert all("ROBOTSTXT_PARSER = " in line and "KOSTER_PARSER" in line for line in warnings)
