"""3.1, the access method, seen from outside: what a crawl makes of each kind of answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import scrapy
from harness.comparison import ROWS, RULES, SETTINGS, Means
from harness.crawling import Crawl, CrawlResult, RecordingSpider, Robots
from harness.documents import marked, rows, text
from harness.replies import Reply
from harness.server import Server, Site
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.reactor import is_reactor_installed
from twisted.python.failure import Failure


async def test_an_error_of_a_proxy_is_no_answer_of_the_site(crawl: Crawl, server: Server) -> None:
    """The refusal names the proxy, and a later crawl without the proxy gets the file."""
    site, proxy = server.site(), server.proxy()
    site.robots = RULES
    proxy.page(
        site.url("/robots.txt"), Reply(403, headers={"X-Squid-Error": "ERR_ACCESS_DENIED 0"})
    )
    settings = {**SETTINGS, "KOSTER_DEFER_FIRST_SECS": 0.2, "KOSTER_DEFER_LIMIT_SECS": 0.1}
    through = {"proxy": proxy.url("").replace("//", "//user:pw@")}
    first = await crawl(urls=[site.url()], meta=through, settings=settings)
    [verdict] = first.verdicts
    named = proxy.url("").partition("//")[2]
    assert f"(HTTP 403, X-Squid-Error ERR_ACCESS_DENIED 0, through the proxy {named})" in (
        str(verdict)
    )
    assert "pw" not in str(verdict)
    assert not site.requests
    settings["KOSTER_DEFER_LIMIT_SECS"] = 20
    second = await crawl(urls=[site.url(), site.url("/secret")], settings=settings)
    assert list(second.fetched) == [site.url()]


CHALLENGES = (
    Reply(202, headers={"x-amzn-waf-action": "challenge"}),
    Reply(202),
    Reply(405, headers={"x-amzn-waf-action": "captcha"}),
    Reply(403, headers={"cf-mitigated": "challenge"}),
)


@pytest.mark.parametrize("parser", ["Koster", "Rfc9309"])
async def test_a_challenge_is_no_answer(crawl: Crawl, server: Server, parser: str) -> None:
    """The rules that come after it are obeyed."""
    sites = [server.site() for _ in CHALLENGES]
    for site, challenge in zip(sites, CHALLENGES, strict=True):
        site.robots = [challenge, RULES]
    settings = {**SETTINGS, "KOSTER_DEFER_FIRST_SECS": 0.1, "KOSTER_DEFER_LIMIT_SECS": 20}
    settings["KOSTER_PARSER"] = f"scrapy_koster.{parser}RobotParser"
    urls = [site.url(path) for site in sites for path in ("/", "/secret")]
    result = await crawl(urls=urls, settings=settings)
    assert sorted(result.fetched) == sorted(site.url() for site in sites)
    assert [site.asked("/robots.txt") for site in sites] == [2] * 4


# The comparison with Scrapy's own middleware.


class OneByOne(RecordingSpider):
    """Asks each of its sites for a page that is allowed and, when that has ended, for a secret.

    So no two requests wait for one robots.txt, which Scrapy's own middleware has a defect with.
    """

    allowed_domains = ("127.0.0.1",)

    def page(self, response: Response) -> Iterator[Any]:
        yield from self._then(response.url)

    def fail(self, failure: Failure) -> Iterator[Any]:
        super().fail(failure)
        yield from self._then(failure.request.url)  # type: ignore[attr-defined]  # set by Scrapy

    def _then(self, url: str) -> Iterator[Any]:
        if url.endswith("/"):
            yield self.ask(f"{url}secret")


def meant(site: Site, result: CrawlResult) -> str:
    """What that crawl took the answer of *site* for."""
    refused = {url for url, error in result.refused if isinstance(error, IgnoreRequest)}
    passed = [path for path in ("/", "/secret") if site.url(path) not in refused]
    means = {2: Means.UNRESTRICTED, 1: Means.RULES, 0: Means.RESTRICTED}[len(passed)]
    return means.value


async def forbidden(crawl: Crawl, server: Server, robots: Robots) -> str:
    """How many forbidden pages are fetched when 40 requests wait for a robots.txt."""
    site = server.site()
    site.robots = Reply(200, "User-agent: *\nDisallow: /", delay=0.5)
    await crawl(urls=site.urls(40), robots=robots, settings={"CONCURRENT_REQUESTS": 16})
    return f"{len(site.pages_asked)} are fetched"


@pytest.mark.long
async def test_the_comparison_is_what_a_run_gives(crawl: Crawl, server: Server) -> None:
    """What scrapy-koster makes of each answer is asserted in test_faults.py."""
    if not is_reactor_installed() and scrapy.version_info < (2, 19):
        pytest.skip("its downloader has no timeout for a whole response: some would never end")
    sites = [row.build(server) for row in ROWS]
    settings = {**SETTINGS, "KOSTER_TIMEOUT_SECS": 2, "DOWNLOAD_TIMEOUT": 2, "RETRY_TIMES": 0}
    urls = [site.url() for site in sites]
    result = await crawl(OneByOne, urls=urls, robots="scrapy", settings=settings)
    answers: dict[tuple[str, str], list[str]] = {}
    for row, site in zip(ROWS, sites, strict=True):
        answers.setdefault((row.means.value, meant(site, result)), []).append(row.answer)
    forty = [await forbidden(crawl, server, robots) for robots in ("koster", "scrapy")]
    lines = [
        *(("; ".join(same), *means) for means, same in answers.items()),
        ("200, slow, for which 40 requests wait that it forbids", *forty),
    ]
    shown = marked(text("docs/access.md"), ("<!-- comparison -->", "<!-- /comparison -->"))
    assert [tuple(cells) for cells in rows(shown)] == lines
