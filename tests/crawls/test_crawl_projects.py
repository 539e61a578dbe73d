"""Settings as real projects have them: with one line more they crawl, and obey.

Replay out of the HTTP cache is in test_crawl_replay.py.
"""

from __future__ import annotations

import logging
from itertools import cycle
from typing import Any

import pytest
from harness.crawling import Crawl
from harness.replies import Reply
from harness.server import Server
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.robotstxt import ProtegoRobotParser

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
async def test_a_whole_header_as_the_name(
    crawl: Crawl, server: Server, said: str, refused: str, *, warned: bool
) -> None:
    site = server.site()
    site.robots = BY_ROBOT
    settings = {"USER_AGENT": "FigTree/0.1 (+http://fict.org)", "ROBOTSTXT_USER_AGENT": said}
    result = await crawl(urls=[site.url(path) for path in PATHS], settings=settings)
    assert [url for url, _ in result.refused] == [site.url(refused)]
    warnings = [
        line
        for line in result.logged(logging.WARNING, "scrapy_koster")
        if "(section 3.2.1)" in line
    ]
    assert len(warnings) == warned


# ROBOTSTXT_PARSER, KOSTER_PARSER

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


# Proxies in turn


class RotatingProxies:
    """As scrapy-rotating-proxies has it: a proxy that fails is left for the next."""

    def __init__(self, crawler: Crawler) -> None:
        self.proxies = cycle(crawler.settings.getlist("ROTATING_PROXY_LIST"))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RotatingProxies:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        request.meta["proxy"] = next(self.proxies)

    def process_response(self, request: Request, response: Response) -> Request | Response:
        return self.again(request) if response.status == 503 else response

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        return None if isinstance(exception, IgnoreRequest) else self.again(request)

    @staticmethod
    def again(request: Request) -> Request:
        return request.replace(dont_filter=True)


async def test_proxies_in_turn_of_which_some_are_banned(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = BY_ROBOT
    urls = [site.url(path) for path in PATHS]
    dead, banned, *good = server.down(), server.proxy(), server.proxy(), server.proxy()
    for url in (site.url("/robots.txt"), *urls):
        banned.page(url, Reply(503))
    proxies = [proxy.url("") for proxy in (dead, banned, *good)]
    result = await crawl(
        urls=urls,
        settings={
            "ROTATING_PROXY_LIST": proxies,
            "DOWNLOADER_MIDDLEWARES": {RotatingProxies: 610},
            "RETRY_ENABLED": False,
        },
    )
    assert [url for url, _ in result.refused] == [site.url("/for/others")]
    assert sorted(result.fetched) == sorted(urls[:3])
    asked = [each.target for proxy in good for each in proxy.requests]
    assert sorted(asked) == sorted([site.url("/robots.txt"), *urls[:3]])
    assert all(proxy.requests for proxy in good)
    assert result.logged(logging.WARNING, "scrapy_koster") == []
