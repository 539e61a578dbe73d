"""What holds of each crawl here."""

from __future__ import annotations

import logging

from harness.crawling import CrawlResult
from harness.replies import Reply
from harness.server import Site

GET = "make test-ecosystem"
PATHS = ("/", "/open", "/private/page")
RULES = "User-agent: *\nDisallow: /private\n"
HTML = {"Content-Type": "text/html; charset=utf-8"}


def html(body: str) -> Reply:
    return Reply(200, body, headers=HTML)


def links(*paths: str) -> Reply:
    return html("".join(f'<a href="{path}">{path}</a>' for path in paths))


def check_fetched(site: Site, *paths: str) -> None:
    """These and no others have been fetched, and the robots.txt once."""
    assert sorted(set(site.pages_asked)) == sorted(paths)
    assert site.asked("/robots.txt") == 1


def check_obeyed(result: CrawlResult, site: Site, *paths: str, forbidden: int = 1) -> None:
    """The same, and so many requests were refused, and we have warned of nothing."""
    check_fetched(site, *paths)
    assert result.stats["robotstxt/forbidden"] == forbidden
    assert result.logged(logging.WARNING, "scrapy_koster") == []
    assert result.logged(logging.ERROR) == []
