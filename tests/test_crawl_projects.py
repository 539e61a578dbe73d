"""Settings as real projects have them: with one line more they crawl, and obey."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from crawling import Crawl
from scrapy.robotstxt import ProtegoRobotParser
from server import Server

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
        ("FigTree/0.1 (+http://fict.org)", "/for/figtree", False),
        (MOZILLA, "/for/mozilla", True),
        ("*", "/for/others", True),
        ("", "/for/figtree", False),
    ],
)
@pytest.mark.parametrize("where", ["settings", "arguments", "meta"])
async def test_a_whole_header_as_the_name(
    crawl: Crawl, server: Server, where: str, said: str, refused: str, *, warned: bool
) -> None:
    site = server.site()
    site.robots = BY_ROBOT
    name = "ROBOTSTXT_USER_AGENT" if where == "settings" else "robotstxt_user_agent"
    given: dict[str, Any] = {"settings": {}, where: {name: said}}
    given["settings"] = {"USER_AGENT": "FigTree/0.1", **given["settings"]}
    result = await crawl(urls=[site.url(path) for path in PATHS], **given)
    assert [url for url, _ in result.refused] == [site.url(refused)]
    warnings = [
        line
        for line in result.logged(logging.WARNING, "scrapy_koster")
        if "(section 3.2.1)" in line
    ]
    assert len(warnings) == warned


# ROBOTSTXT_PARSER, KOSTER_PARSER

PROTEGO = "scrapy.robotstxt.ProtegoRobotParser"
PYTHON = "scrapy.robotstxt.PythonRobotParser"


class TheirParser(ProtegoRobotParser):
    """A parser of the project's own."""


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({}, False),
        ({"ROBOTSTXT_PARSER": PYTHON}, True),
        ({"ROBOTSTXT_PARSER": TheirParser}, True),
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
    warnings = result.logged(logging.WARNING, "scrapy_koster")
    assert len(warnings) == warned
    assert all("ROBOTSTXT_PARSER = " in line and "KOSTER_PARSER" in line for line in warnings)


@pytest.mark.parametrize("parser", [PROTEGO, PYTHON, TheirParser])
@pytest.mark.parametrize(
    "body", ["User-agent: *\nDisallow: /no", "User-agent: a\nUser-agent: scrapy\nDisallow: /no"]
)
async def test_a_refusal_says_which_parser_refused_and_no_more(
    crawl: Crawl, server: Server, parser: Any, body: str
) -> None:
    site = server.site()
    site.robots = body
    urls = [site.url("/"), site.url("/no")]
    result = await crawl(urls=urls, settings={"KOSTER_PARSER": parser})
    assert result.fetched == (site.url("/"),)
    [(_, error)] = result.refused
    name = parser if isinstance(parser, str) else parser.__name__
    assert str(error) == (
        f"forbidden by {site.url('/robots.txt')}: as {name.rpartition('.')[2]} reads it, which"
        " names no line"
    )
