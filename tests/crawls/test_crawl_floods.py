"""Section 6: an answer without an end opens no site, and ends with its time."""

from __future__ import annotations

import pytest
from harness.comparison import SETTINGS
from harness.crawling import Crawl
from harness.floods import CHUNKED, FLOODS, INTERIM, STATUS
from harness.replies import Raw, Reply
from harness.server import Server

from scrapy_koster import RobotsForbidden, RobotsUnavailable

SOME = ("the extension of a chunk",)
"""Each costs seconds of work."""


@pytest.mark.parametrize(
    "flood",
    [name if name in SOME else pytest.param(name, marks=pytest.mark.long) for name in FLOODS],
)
async def test_an_attempt_ends(crawl: Crawl, server: Server, flood: str) -> None:
    site = server.site()
    site.robots = FLOODS[flood]
    settings = {"KOSTER_TIMEOUT_SECS": 0.5, "KOSTER_DEFER_LIMIT_SECS": 0.1}
    result = await crawl(urls=[site.url("/page")], settings={**SETTINGS, **settings})
    assert result.errors == {site.url("/page"): RobotsUnavailable}
    assert site.pages_asked == []


RULES = b"User-agent: *\nDisallow: /secret\n"
LONG_RULES = RULES + b"# %b\n" % (b"x" * 98) * 4990
SMALL_CHUNKS = b"".join(b"8\r\n%b\r\n" % LONG_RULES[i : i + 8] for i in range(0, 160_000, 8))
WELL_MEANT = (
    Reply(200, LONG_RULES),
    Reply(200, LONG_RULES, headers=[("X", "x" * 400)] * 120),
    Raw(200, CHUNKED + SMALL_CHUNKS + b"0\r\n\r\n"),
    Raw(200, INTERIM + STATUS + b"Content-Length: %d\r\n\r\n" % len(LONG_RULES) + LONG_RULES),
)


async def test_what_is_long_and_has_an_end_is_obeyed(crawl: Crawl, server: Server) -> None:
    sites = [server.site("https") for _ in WELL_MEANT]
    for site, answer in zip(sites, WELL_MEANT, strict=True):
        site.robots = answer
    urls = [site.url(path) for site in sites for path in ("/page", "/secret")]
    # A flood over TLS is work: how long it takes says more of the machine.
    result = await crawl(urls=urls, settings={**SETTINGS, "KOSTER_TIMEOUT_SECS": 50})
    assert result.errors == {site.url("/secret"): RobotsForbidden for site in sites}
    assert [site.pages_asked for site in sites] == [["/page"]] * 4


async def test_headers_have_a_limit(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = Reply(200, RULES, headers=[("X", "x" * 1000)] * 70)
    settings = {**SETTINGS, "KOSTER_DEFER_LIMIT_SECS": 0.1}
    result = await crawl(urls=[site.url("/page")], settings=settings)
    [(_, error)] = result.refused
    assert "its headers are longer than 65536 bytes" in str(error)
