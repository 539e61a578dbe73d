"""KOSTER_PARSER, and the setting of the parser of Scrapy's own middleware."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl
from harness.server import Server

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
