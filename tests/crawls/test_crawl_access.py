"""3.1, the access method, seen from outside: what a crawl makes of each kind of answer."""

from __future__ import annotations

import gzip
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
from harness.crawling import Crawl
from harness.replies import Reply, gzip_bomb
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
    Row("bomb of 100 MB", Means.DEFERRED, answering(lambda _asked: gzip_bomb())),
    *(
        (Row("self-signed", Means.DEFERRED, answering(RULES, "https")),)
        if scrapy.version_info >= (2, 15)  # which has DOWNLOAD_VERIFY_CERTIFICATES
        else ()
    ),
)


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


SQUID = {"X-Squid-Error": "ERR_ACCESS_DENIED 0"}


@pytest.mark.parametrize("status", [403, 404, 200])
async def test_an_error_of_a_proxy_is_no_answer_of_the_site(
    crawl: Crawl, server: Server, status: int
) -> None:
    """The refusal names the proxy, and a later crawl without the proxy gets the file."""
    site, proxy = server.site(), server.proxy()
    site.robots = RULES
    proxy.page(site.url("/robots.txt"), Reply(status, headers=SQUID))
    settings = {**SETTINGS, "KOSTER_DEFER_FIRST_SECS": 0.2, "KOSTER_DEFER_LIMIT_SECS": 0.1}
    through = {"proxy": proxy.url("").replace("//", "//user:pw@")}
    first = await crawl(urls=[site.url()], meta=through, settings=settings)
    [verdict] = first.verdicts
    named = proxy.url("").partition("//")[2]
    assert f"(HTTP {status}, X-Squid-Error ERR_ACCESS_DENIED 0, through the proxy {named})" in (
        str(verdict)
    )
    assert "pw" not in str(verdict)
    assert not site.requests
    settings["KOSTER_DEFER_LIMIT_SECS"] = 20
    second = await crawl(urls=[site.url(), site.url("/secret")], settings=settings)
    assert list(second.fetched) == [site.url()]


@pytest.mark.parametrize(
    "challenge",
    [
        Reply(202, headers={"x-amzn-waf-action": "challenge"}),
        Reply(202),
        Reply(405, headers={"x-amzn-waf-action": "captcha"}),
        Reply(403, headers={"cf-mitigated": "challenge"}),
    ],
    ids=["AWS WAF", "202", "captcha", "Cloudflare"],
)
@pytest.mark.parametrize("parser", ["Koster", "Rfc9309"])
async def test_a_challenge_is_no_answer(
    crawl: Crawl, server: Server, challenge: Reply, parser: str
) -> None:
    """The rules that come after it are obeyed."""
    site = server.site()
    site.robots = [challenge, RULES]
    settings = {**SETTINGS, "KOSTER_DEFER_FIRST_SECS": 0.1, "KOSTER_DEFER_LIMIT_SECS": 20}
    settings["KOSTER_PARSER"] = f"scrapy_koster.{parser}RobotParser"
    result = await crawl(urls=[site.url(), site.url("/secret")], settings=settings)
    assert list(result.fetched) == [site.url()]
    assert site.asked("/robots.txt") == 2


# The comparison.


@pytest.mark.long
async def test_the_comparison_is_what_a_run_gives(crawl: Crawl, server: Server) -> None:
    if not is_reactor_installed() and scrapy.version_info < (2, 19):
        pytest.skip("its downloader has no timeout for a whole response: some would never end")
    table = await comparison(crawl, server)
    assert shown((DOCS / "access.md").read_text(encoding="utf-8")) == table
