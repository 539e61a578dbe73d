"""3.1, the access method, seen from outside: what a crawl makes of each kind of answer."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from typing import Any

import pytest
import scrapy
from harness.comparison import (
    PADDED,
    RULES,
    SETTINGS,
    TEXT,
    Means,
    OneByOne,
    Row,
    answering,
    chain,
    coded,
    comparison,
    seen,
    shown,
)
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Answer, Reply, gzip_bomb
from harness.server import Server
from scrapy.utils.reactor import is_reactor_installed

DOCS = Path(__file__).parents[2] / "docs"


PACKED = gzip.compress(PADDED.encode())
WHOLE = Row("gzip by itself", Means.RULES, answering(Reply(200, PACKED, headers=TEXT)))
OPENING = {
    "KOSTER_RESTRICTED": "allow",
    "KOSTER_UNAVAILABLE": "allow",
    "KOSTER_REDIRECT_MAX": 8,
    "COMPRESSION_ENABLED": False,
    "DOWNLOAD_MAXSIZE": 100,
}
OPENED = (
    WHOLE,
    Row("403", Means.UNRESTRICTED, answering(Reply(403))),
    Row("503", Means.UNRESTRICTED, answering(Reply(503))),
    Row("8 redirects", Means.RULES, chain(8)),
    Row("gzip", Means.RULES, coded("gzip", gzip.compress(RULES.encode()))),
    Row("longer than Scrapy may download", Means.RULES, answering(PADDED)),
)
CLOSING = {
    "KOSTER_RESTRICTED": "disallow",
    "KOSTER_UNAVAILABLE": "disallow",
    "KOSTER_REDIRECT_MAX": 0,
    "DOWNLOAD_MAXSIZE": 0,
    "DOWNLOAD_VERIFY_CERTIFICATES": True,
}
CLOSED = (
    WHOLE,
    Row("gzip, cut", Means.DEFERRED, answering(Reply(200, PACKED[:-9], headers=TEXT))),
    Row("403", Means.RESTRICTED, answering(Reply(403))),
    Row("503", Means.DEFERRED, answering(Reply(503))),
    Row("1 redirect", Means.DEFERRED, chain(1)),
    Row("bomb of 100 MB", Means.DEFERRED, answering(gzip_bomb())),
    Row("self-signed", Means.DEFERRED, answering(RULES, "https")),
)


@pytest.mark.promise("docs/access.md", "KOSTER_RESTRICTED, KOSTER_UNAVAILABLE, KOSTER_REDIRECT_MAX")
@pytest.mark.parametrize(
    ("settings", "rows"), [(OPENING, OPENED), (CLOSING, CLOSED)], ids=["opening", "closing"]
)
async def test_what_answers_mean_with_settings(
    crawl: Crawl, server: Server, settings: dict[str, Any], rows: tuple[Row, ...]
) -> None:
    placed = [(row, row.build(server)) for row in rows]
    urls = [site.url() for _, site in placed]
    result = await crawl(OneByOne, urls=urls, settings={**SETTINGS, **settings})
    found = [seen(row, site, result) for row, site in placed]
    assert [(each.row.answer, each.means) for each in found] == [
        (row.answer, row.means) for row, _ in placed
    ]
    for each in found:
        assert {"/", "/secret"} & set(each.site.pages_asked) == each.passed


# Temporary failures.


@pytest.mark.promise("docs/access.md", "A longer Retry-After is used, up to KOSTER_DEFER_MAX_SECS")
async def test_retry_after(crawl: Crawl, server: Server) -> None:
    heeded, capped = server.site(), server.site()
    heeded.robots = [Reply(429, headers={"Retry-After": "1"}), RULES]
    capped.robots = [Reply(429, headers={"Retry-After": "3600"}), RULES]
    settings = {**SETTINGS, "KOSTER_DEFER_LIMIT_SECS": 20, "KOSTER_DEFER_MAX_SECS": 3}
    result = await crawl(urls=[heeded.url(), capped.url()], settings=settings)
    assert len(result.fetched) == 2
    for site, secs in ((heeded, 1), (capped, 3)):
        first, second = [asked.at for asked in site.requests if asked.path == "/robots.txt"]
        assert secs - 0.01 <= second - first < secs + 1.5


# What is told of it all.

PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 9


@pytest.mark.promise("docs/first-crawl.md", "the log ends with a summary")
async def test_the_summary(crawl: Crawl, server: Server) -> None:
    answers: dict[str, Answer] = {
        "obeyed": RULES,
        "without": Reply(404),
        "restricted": Reply(403),
        "down": Reply(503),
        "picture": Reply(200, PICTURE, headers=TEXT),
    }
    sites = {name: server.site() for name in answers}
    for name, answer in answers.items():
        sites[name].robots = answer
    urls = [site.url(path) for site in sites.values() for path in ("/", "/secret")]
    result = await crawl(urls=urls, settings=SETTINGS)
    [line] = [told for told in result.logged(logging.INFO, "scrapy_koster") if "Sites: " in told]
    assert line == (
        "Sites: 1 obeyed, 1 without rules, 1 without robots.txt, 1 restricted, 1 unavailable."
        " Requests refused: 5. Copies of robots.txt: 4 fetched, 0 from storage, 0 revalidated"
    )
    told = f"HTTP 200 without a record, {sites['picture'].url('/robots.txt')}"
    assert any(told in line for line in result.logged(logging.INFO))
    again = await crawl(urls=urls, settings=SETTINGS)
    [line] = [told for told in again.logged(logging.INFO, "scrapy_koster") if "Sites: " in told]
    assert "0 fetched, 4 from storage, 0 revalidated" in line


class Lazy(RecordingSpider):
    """Its second page is asked for when the first has come."""

    def page(self, response: Any) -> Any:
        if response.url.endswith("/first"):
            yield self.ask(response.urljoin("/second"))


@pytest.mark.promise("docs/access.md", "one request for each site, however many pages wait")
@pytest.mark.promise("docs/access.md", "A site is a scheme, a host and a port")
async def test_each_site_is_asked_once(crawl: Crawl, server: Server) -> None:
    ruled, absent, closed = server.site(), server.site(), server.site()
    ruled.robots, absent.robots = RULES, Reply(404)
    closed.robots = "User-agent: *\nDisallow: /"
    sites = (ruled, absent, closed)
    result = await crawl(Lazy, urls=[site.url("/first") for site in sites], settings=SETTINGS)
    assert [len(site.pages_asked) for site in sites] == [2, 2, 0]
    assert len(result.refused) == 1
    assert [site.asked("/robots.txt") for site in sites] == [1, 1, 1]


# The comparison.


@pytest.mark.promise("docs/access.md", "the table of answers")
async def test_the_comparison_is_what_a_run_gives(crawl: Crawl, server: Server) -> None:
    if not is_reactor_installed() and scrapy.version_info < (2, 19):
        pytest.skip("its downloader has no timeout for a whole response: some would never end")
    table = await comparison(crawl, server)
    assert shown((DOCS / "access.md").read_text(encoding="utf-8")) == table
