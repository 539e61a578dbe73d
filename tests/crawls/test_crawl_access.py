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
    Seen,
    answering,
    chain,
    coded,
    comparison,
    seen,
    shown,
)
from harness.crawling import Crawl, CrawlResult, RecordingSpider, verdict_of
from harness.replies import Answer, Handler, Reply, gzip_bomb
from harness.server import Server
from scrapy import Request
from scrapy.utils.reactor import is_reactor_installed

from scrapy_koster import RobotsForbidden, RobotsUnavailable
from scrapy_koster.protocol.standing import Ground

DOCS = Path(__file__).parents[2] / "docs"
GROUNDS = {
    Means.RULES: (RobotsForbidden, Ground.RULE),
    Means.RESTRICTED: (RobotsForbidden, Ground.RESTRICTED),
    Means.DEFERRED: (RobotsUnavailable, Ground.UNAVAILABLE),
}


async def seen_in(
    crawl: Crawl, server: Server, row: Row, **settings: Any
) -> tuple[Seen, CrawlResult]:
    site = row.build(server)
    given = {**SETTINGS, **row.settings, **settings}
    result = await crawl(OneByOne, urls=[site.url()], settings=given)
    return seen(row, site, result), result


def check(what: Seen, result: CrawlResult) -> None:
    """That an answer means what its row says, and that what it forbids was not asked for."""
    assert what.means is what.row.means
    assert {"/", "/secret"} & set(what.site.pages_asked) == what.passed
    if what.means is Means.UNRESTRICTED:
        assert what.errors == ()
        return
    kind, ground = GROUNDS[what.means]
    refused = 1 if what.means is Means.RULES else 2
    assert [type(error) for error in what.errors] == [kind] * refused
    assert {verdict_of(error).ground for error in what.errors} == {ground}
    assert result.stats["robotstxt/forbidden"] == refused
    assert result.stats[f"koster/forbidden/{ground.value}"] == refused


# What depends on settings, or on what Scrapy is run with.

BY_SETTINGS = (
    (
        Row("gzip", Means.RULES, coded("gzip", gzip.compress(RULES.encode()))),
        {"COMPRESSION_ENABLED": False},
    ),
    (Row("403", Means.UNRESTRICTED, answering(Reply(403))), {"KOSTER_RESTRICTED": "allow"}),
    (Row("403", Means.RESTRICTED, answering(Reply(403))), {"KOSTER_RESTRICTED": "disallow"}),
    (Row("503", Means.UNRESTRICTED, answering(Reply(503))), {"KOSTER_UNAVAILABLE": "allow"}),
    (Row("503", Means.DEFERRED, answering(Reply(503))), {"KOSTER_UNAVAILABLE": "disallow"}),
    (Row("1 redirect", Means.DEFERRED, chain(1)), {"KOSTER_REDIRECT_MAX": 0}),
    (Row("8 redirects", Means.RULES, chain(8)), {"KOSTER_REDIRECT_MAX": 8}),
    (
        Row("bomb of 100 MB", Means.DEFERRED, answering(gzip_bomb())),
        {"DOWNLOAD_MAXSIZE": 0},
    ),
    (
        Row("longer than Scrapy may download", Means.RULES, answering(PADDED)),
        {"DOWNLOAD_MAXSIZE": 100},
    ),
)


@pytest.mark.promise("docs/access.md", "KOSTER_RESTRICTED, KOSTER_UNAVAILABLE, KOSTER_REDIRECT_MAX")
@pytest.mark.parametrize(
    ("row", "settings"),
    BY_SETTINGS,
    ids=[f"{row.answer}-{name}={value}" for row, s in BY_SETTINGS for name, value in s.items()],
)
async def test_an_answer_means_with_settings(
    crawl: Crawl, server: Server, row: Row, settings: dict[str, Any]
) -> None:
    check(*await seen_in(crawl, server, row, **settings))


async def test_a_certificate_that_is_to_be_verified(crawl: Crawl, server: Server) -> None:
    row = Row("self-signed", Means.DEFERRED, answering(RULES, "https"))
    what, _ = await seen_in(crawl, server, row, DOWNLOAD_VERIFY_CERTIFICATES=True)
    assert what.means is Means.DEFERRED
    assert what.site.requests == ()


# Temporary failures.


@pytest.mark.promise("docs/access.md", "A longer Retry-After is used, up to KOSTER_DEFER_MAX_SECS")
@pytest.mark.parametrize(
    ("field", "least", "most"), [("1", 1.0, None), ("3600", 1.0, 1.0)], ids=["heeded", "capped"]
)
async def test_retry_after(
    crawl: Crawl, server: Server, field: str, least: float, most: float | None
) -> None:
    site = server.site()
    site.robots = [Reply(429, headers={"Retry-After": field}), RULES]
    settings = {**SETTINGS, "KOSTER_DEFER_LIMIT_SECS": 20, "KOSTER_DEFER_MAX_SECS": most or 600}
    result = await crawl(urls=[site.url()], settings=settings)
    assert result.fetched == (site.url(),)
    first, second = [asked.at for asked in site.requests if asked.path == "/robots.txt"]
    assert second - first >= least - 0.01


# Sites: scheme, host and port.


async def asked_together(crawl: Crawl, *urls: str | Request) -> CrawlResult:
    return await crawl(urls=urls, settings=SETTINGS)


@pytest.mark.promise("docs/access.md", "A site is a scheme, a host and a port")
async def test_two_ports_have_their_own_copies(crawl: Crawl, server: Server) -> None:
    open_, closed = server.site(), server.site()
    closed.robots = "User-agent: *\nDisallow: /"
    result = await asked_together(crawl, open_.url("/1"), closed.url("/1"), open_.url("/2"))
    assert sorted(result.fetched) == [open_.url("/1"), open_.url("/2")]
    assert (open_.asked("/robots.txt"), closed.asked("/robots.txt")) == (1, 1)


# What is told of it all.


@pytest.mark.promise("docs/first-crawl.md", "the log ends with a summary")
async def test_the_summary(crawl: Crawl, server: Server) -> None:
    answers: dict[str, Answer] = {
        "obeyed": RULES,
        "without": Reply(404),
        "restricted": Reply(403),
        "down": Reply(503),
    }
    sites = {name: server.site() for name in answers}
    for name, answer in answers.items():
        sites[name].robots = answer
    urls = [site.url(path) for site in sites.values() for path in ("/", "/secret")]
    result = await crawl(urls=urls, settings=SETTINGS)
    [line] = [told for told in result.logged(logging.INFO, "scrapy_koster") if "Sites: " in told]
    assert line == (
        "Sites: 1 obeyed, 1 without robots.txt, 1 restricted, 1 unavailable. Requests refused: 5."
        " Copies of robots.txt: 3 fetched, 0 from storage, 0 revalidated"
    )
    again = await crawl(urls=urls, settings=SETTINGS)
    [line] = [told for told in again.logged(logging.INFO, "scrapy_koster") if "Sites: " in told]
    assert "0 fetched, 3 from storage, 0 revalidated" in line


class Lazy(RecordingSpider):
    """Its second page is asked for when the first has come."""

    def page(self, response: Any) -> Any:
        if response.url.endswith("/first"):
            yield self.ask(response.urljoin("/second"))


@pytest.mark.promise("docs/access.md", "one request for each site, however many pages wait")
@pytest.mark.parametrize("answer", [RULES, Reply(404)], ids=["200", "404"])
async def test_a_site_is_asked_once(crawl: Crawl, server: Server, answer: Handler) -> None:
    site = server.site()
    site.robots = answer
    result = await crawl(Lazy, urls=[site.url("/first")], settings=SETTINGS)
    assert len(result.fetched) == 2
    assert site.asked("/robots.txt") == 1


# The comparison.


@pytest.mark.promise("docs/access.md", "the table of answers")
async def test_the_comparison_is_what_a_run_gives(crawl: Crawl, server: Server) -> None:
    if not is_reactor_installed() and scrapy.version_info < (2, 19):
        pytest.skip("its downloader has no timeout for a whole response: some would never end")
    table = await comparison(crawl, server)
    assert shown((DOCS / "access.md").read_text(encoding="utf-8")) == table


@pytest.mark.parametrize(
    ("body", "means"),
    [
        pytest.param(gzip.compress(PADDED.encode()), Means.RULES, id="whole"),
        pytest.param(gzip.compress(PADDED.encode())[:-9], Means.DEFERRED, id="cut"),
        pytest.param(b"\x1f\x8b\x08" + PADDED.encode(), Means.DEFERRED, id="broken"),
        pytest.param(
            gzip.compress(RULES.encode() + b"# and on\n" * 1_000_000), Means.RULES, id="a bomb"
        ),
    ],
)
@pytest.mark.parametrize("decodes", [True, False])
async def test_gzip_without_a_content_encoding(
    crawl: Crawl, server: Server, body: bytes, means: Means, *, decodes: bool
) -> None:
    row = Row("gzip", means, answering(Reply(200, body, headers=TEXT)))
    check(*await seen_in(crawl, server, row, COMPRESSION_ENABLED=decodes))


async def test_a_picture_is_not_counted_as_obeyed(crawl: Crawl, server: Server) -> None:
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 9
    row = Row("PNG", Means.UNRESTRICTED, answering(Reply(200, picture, headers=TEXT)))
    what, result = await seen_in(crawl, server, row)
    check(what, result)
    told = "\n".join(result.logged(logging.INFO))
    assert "Sites: 1 without rules." in told
    assert f"HTTP 200 without a line of a robots.txt, {what.site.url('/robots.txt')}" in told
