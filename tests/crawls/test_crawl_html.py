"""KOSTER_HTML_ROBOTSTXT, and pages that ask who you are in place of a robots.txt."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import pytest
from harness.challenge_pages import CHALLENGES
from harness.comparison import HTML, RULES
from harness.crawling import Crawl, CrawlResult
from harness.replies import Reply
from harness.server import Server
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from scrapy_koster import RobotsForbidden, RobotsReport, RobotsUnavailable
from scrapy_koster.protocol.standing import Ground
from scrapy_koster.report.numbers import read

PRODUCTS = ("Anubis", "only a refresh")
QUICK = {"KOSTER_DEFER_FIRST_SECS": 0.1, "KOSTER_DEFER_LIMIT_SECS": 0.5}


def page(body: str) -> Reply:
    return Reply(200, body, headers={"Content-Type": "text/html"})


def announced(result: CrawlResult) -> list[str]:
    return result.logged(logging.INFO, "scrapy_koster.crawl.messages.announcer")


def html_stats(result: CrawlResult) -> Mapping[str, int]:
    return {name: n for name, n in result.stats.items() if name.startswith("koster/html/")}


@pytest.mark.promise("docs/access.md", "A challenge page: a temporary failure")
@pytest.mark.parametrize("name", PRODUCTS)
async def test_a_challenge_is_a_temporary_failure(
    crawl: Crawl, server: Server, tmp_path: Path, name: str
) -> None:
    """Nothing of the site is fetched, and the log and the report name the product."""
    site = server.site()
    site.robots = page(CHALLENGES[name])
    settings = {**QUICK, "KOSTER_REPORT": f"{tmp_path}/r.html"}
    result = await crawl(urls=[site.url("/")], settings=settings)
    assert site.pages_asked == []
    [(_, error)] = result.refused
    assert isinstance(error, RobotsUnavailable)
    said = f"cannot be retrieved (HTTP 200, a challenge page ({name})"
    assert all(said in line for line in announced(result))
    assert html_stats(result)["koster/html/challenges"] == site.asked("/robots.txt") > 1
    report = result.crawler.get_extension(RobotsReport)
    assert report is not None
    assert list(read(report.database).failures) == [f"HTTP 200, a challenge page ({name})"]
    assert f"a challenge page ({name})" in (tmp_path / "r.html").read_text()


@pytest.mark.promise("docs/settings.md", "KOSTER_HTML_ROBOTSTXT")
@pytest.mark.parametrize(
    ("setting", "fetched", "error"),
    [
        ("allow", 1, None),
        ("defer", 0, RobotsUnavailable),
        ("disallow", 0, RobotsForbidden),
    ],
)
async def test_an_ordinary_page(
    crawl: Crawl, server: Server, *, setting: str, fetched: int, error: Any
) -> None:
    site = server.site()
    site.robots = page(HTML)
    result = await crawl(urls=[site.url("/")], settings={**QUICK, "KOSTER_HTML_ROBOTSTXT": setting})
    assert len(result.fetched) == fetched
    assert [type(each) for _, each in result.refused] == ([error] if error else [])
    assert html_stats(result) == {"koster/html/pages": site.asked("/robots.txt")}


@pytest.mark.parametrize("body", [HTML, CHALLENGES["Anubis"]], ids=["a page", "a challenge"])
async def test_disallowed(crawl: Crawl, server: Server, tmp_path: Path, body: str) -> None:
    site = server.site()
    site.robots = page(body)
    settings = {"KOSTER_HTML_ROBOTSTXT": "disallow", "KOSTER_REPORT": f"{tmp_path}/r.html"}
    what = "an HTML page" if body is HTML else "a challenge page (Anubis)"
    for _ in range(2):  # the second has it from the storage
        result = await crawl(urls=[site.url("/"), site.url("/robots.txt")], settings=settings)
        assert site.pages_asked == []
        [verdict] = result.verdicts
        assert verdict.ground is Ground.HTML
        assert verdict.because() == f"HTTP 200, {what}, which KOSTER_HTML_ROBOTSTXT disallows (3.1)"
        [line] = announced(result)
        assert f"answers HTTP 200 with {what}, {site.url('/robots.txt')}, so no page" in line
        assert result.stats["koster/forbidden/html"] == 1
        report = result.crawler.get_extension(RobotsReport)
        assert report is not None
        numbers = read(report.database)
        assert numbers.refused["html"] == numbers.closed == 1
        assert numbers.outcomes["restricted"] == 1


HIDDEN = "<!DOCTYPE html>\n<p>User-agent: *<br>\n<p>Disallow: /secret<br>\n"


@pytest.mark.parametrize("parser", ["Strictest", "Koster"])
async def test_a_page_with_hidden_rules_has_rules_for_a_parser_that_obeys_them(
    crawl: Crawl, server: Server, tmp_path: Path, parser: str
) -> None:
    site = server.site()
    site.robots = page(HIDDEN)
    settings = {
        "KOSTER_PARSER": f"scrapy_koster.{parser}RobotParser",
        "KOSTER_REPORT": f"{tmp_path}/r.html",
    }
    result = await crawl(urls=site.urls(1, "/secret"), settings=settings)
    is_obeyed = parser == "Strictest"
    assert len(result.refused) == is_obeyed
    [line] = announced(result)
    words = (
        "partly HTML. The lines in it that are rules are obeyed" if is_obeyed else "has no rules"
    )
    assert words in line
    assert html_stats(result) == ({} if is_obeyed else {"koster/html/pages": 1})
    summary = result.logged(logging.INFO, "scrapy_koster.crawl.messages.summary")[-1]
    assert ("1 obeyed" in summary) is is_obeyed
    report = result.crawler.get_extension(RobotsReport)
    assert report is not None
    assert read(report.database).outcomes["without robots.txt"] == (not is_obeyed)


class Renders:
    """Shows each response as a browser does, and robots.txt, too."""

    def process_response(self, request: Request, response: Response) -> Response:
        shown = f"<html><head></head><body><pre>{escape(response.text)}</pre></body></html>"
        headers = {"Content-Type": "text/html"}
        return HtmlResponse(response.url, headers=headers, body=shown.encode(), request=request)


@pytest.mark.parametrize("parser", ["Strictest", None])
async def test_a_middleware_that_renders_robots_txt(
    crawl: Crawl, server: Server, parser: str | None
) -> None:
    """Each reading obeys the text, and the log tells the cause once."""
    sites = [server.site(), server.site()]
    for site in sites:
        site.robots = RULES
    mine = f"scrapy_koster.{parser}RobotParser"
    result = await crawl(
        urls=[site.url(path) for site in sites for path in ("/", "/secret")],
        settings={
            "KOSTER_PARSER": mine if parser else "scrapy.robotstxt.ProtegoRobotParser",
            "DOWNLOADER_MIDDLEWARES": {Renders: 900},
        },
    )
    assert sorted(result.fetched) == sorted(site.url("/") for site in sites)
    name = "scrapy_koster.crawl.messages.announcer"
    [warning] = result.logged(logging.WARNING, name)
    assert "came as the page in which a browser shows a text file: a middleware" in warning
