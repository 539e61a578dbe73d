"""Settings as real projects have them: with one line more they crawl, and obey.

Replay out of the HTTP cache is in test_crawl_replay.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl
from harness.server import Server

BY_ROBOT = """\
User-agent: figtree
Disallow: /for/figtree

User-agent: mozilla
Disallow: /for/mozilla

User-agent: *
Disallow: /for/others
"""
PATHS = ["/page", "/for/figtree", "/for/mozilla", "/for/others"]
MOZILLA = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"


# ROBOTSTXT_USER_AGENT


@pytest.mark.parametrize(
    ("said", "refused", "warned"),
    [
        (MOZILLA, "/for/mozilla", True),
        ("", "/for/figtree", False),
    ],
)
async def test_a_whole_header_as_the_name(
    crawl: Crawl, server: Server, said: str, refused: str, *, warned: bool
) -> None:
    site = server.site()
    site.robots = BY_ROBOT
    settings = {"USER_AGENT": "FigTree/0.1 (+http://fict.org)", "ROBOTSTXT_USER_AGENT": said}
    result = await crawl(urls=[site.url(path) for path in PATHS], settings=settings)
    assert [url for url, _ in result.refused] == [site.url(refused)]
    warnings = [line for line in result.warnings if "(section 3.2.1)" in line]
    assert len(warnings) == warned


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
