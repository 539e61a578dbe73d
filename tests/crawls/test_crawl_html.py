"""KOSTER_HTML_ROBOTSTXT, and pages that ask who you are in place of a robots.txt."""

from __future__ import annotations

import logging
from html import escape
from pathlib import Path

from harness.challenge_pages import CHALLENGES
from harness.comparison import HTML, RULES
from harness.crawling import Crawl
from harness.replies import Reply
from harness.reports import database_of
from harness.server import Server
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from scrapy_koster import RobotsUnavailable
from scrapy_koster.report.numbers import read

QUICK = {"KOSTER_DEFER_FIRST_SECS": 0.1, "KOSTER_DEFER_LIMIT_SECS": 0.5}


def page(body: str) -> Reply:
    return Reply(200, body, headers={"Content-Type": "text/html"})


async def test_a_challenge_is_a_temporary_failure_and_another_page_is_none(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    """Nothing of the site is fetched, and the log, the stats and the report name the product."""
    site, other = server.site(), server.site()
    site.robots, other.robots = page(CHALLENGES["Anubis"]), page(HTML)
    settings = {**QUICK, "KOSTER_REPORT": f"{tmp_path}/r.html"}
    result = await crawl(urls=[site.url("/"), other.url("/")], settings=settings)
    assert result.fetched == (other.url("/"),)
    assert result.errors == {site.url("/"): RobotsUnavailable}
    announced = result.logged(logging.INFO, "scrapy_koster.crawl.messages.announcer")
    said = "(HTTP 200, a challenge page (Anubis)"
    assert all(said in line for line in announced if site.url("") in line)
    assert site.asked("/robots.txt") > 1
    assert result.stats["koster/html/challenges"] == site.asked("/robots.txt")
    assert result.stats["koster/html/pages"] == site.asked("/robots.txt") + 1
    failures = read(database_of(result.crawler))["failures"]
    assert list(failures) == ["HTTP 200, a challenge page (Anubis)"]
    assert "a challenge page (Anubis)" in (tmp_path / "r.html").read_text()


class Renders:
    """Shows each response as a browser does, and robots.txt, too."""

    def process_response(self, request: Request, response: Response) -> Response:
        shown = f"<html><head></head><body><pre>{escape(response.text)}</pre></body></html>"
        headers = {"Content-Type": "text/html"}
        return HtmlResponse(response.url, headers=headers, body=shown.encode(), request=request)


async def test_a_middleware_that_renders_robots_txt(crawl: Crawl, server: Server) -> None:
    """The text is obeyed, and the log tells the cause once."""
    sites = [server.site(), server.site()]
    for site in sites:
        site.robots = RULES
    result = await crawl(
        urls=[site.url(path) for site in sites for path in ("/", "/secret")],
        settings={
            "KOSTER_PARSER": "scrapy.robotstxt.ProtegoRobotParser",
            "DOWNLOADER_MIDDLEWARES": {Renders: 900},
        },
    )
    assert sorted(result.fetched) == sorted(site.url("/") for site in sites)
    name = "scrapy_koster.crawl.messages.announcer"
    [warning] = result.logged(logging.WARNING, name)
    assert (
        "came as the page in which a browser shows a text file, and its text is obeyed" in warning
    )
    assert "the site serves this page, or a middleware or download handler renders" in warning
