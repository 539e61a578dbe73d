"""What a crawl says of its sites: each that is not simply obeyed, and how to go on."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from harness.comparison import HTML, RULES, SETTINGS
from harness.crawling import STEADY, Crawl, CrawlResult, RecordingSpider
from harness.replies import Handler, Reply, redirect
from harness.server import Server, Site
from scrapy.http import Response

PAGE = Reply(200, HTML, headers={"Content-Type": "text/html"})
ANSWERED = r"fresh until 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\)"


async def crawled(crawl: Crawl, *sites: Site, path: str = "/page", **settings: Any) -> CrawlResult:
    urls = [site.url(path) for site in sites]
    return await crawl(urls=urls, settings={**SETTINGS, **settings})


def of_sites(result: CrawlResult, *, level: int = logging.INFO) -> list[str]:
    """What was said of sites at this level, without the summary."""
    return [
        record.getMessage()
        for record in result.log
        if record.levelno == level and record.name == "scrapy_koster.crawl.messages.announcer"
    ]


def summary(result: CrawlResult) -> str:
    [line] = [told for told in result.logged(logging.INFO) if told.startswith("Sites: ")]
    return line


def warnings(result: CrawlResult) -> list[str]:
    return result.logged(logging.WARNING, "scrapy_koster")


# A site that is restricted.


@pytest.mark.parametrize("status", [401, 403])
async def test_a_restricted_site_is_named_with_the_ways_on(
    crawl: Crawl, server: Server, status: int
) -> None:
    site = server.site()
    site.robots = Reply(status)
    for _ in range(2):  # the second has it from the storage
        [line] = of_sites(await crawled(crawl, site))
        assert line.startswith(
            f"{site.url('')} is restricted: its robots.txt answers HTTP {status}"
        )
        for way in (
            f"scrapy robots cache forget {site.url('')}",
            "KOSTER_PAGE_META",
            'KOSTER_RESTRICTED = "allow"',
        ):
            assert way in line
    assert site.asked("/robots.txt") == 1


@pytest.mark.parametrize(
    ("answer", "said", "counted"),
    [
        (Reply(403), "is restricted:", "22 restricted"),
        (Reply(404), "has no rules:", "22 without robots.txt"),
        (PAGE, "with an HTML page", "22 with an HTML page for robots.txt"),
        (Reply(503), "Letting requests", "22 unavailable and let through"),
    ],
    ids=["restricted", "without", "HTML", "let through"],
)
async def test_twenty_of_a_kind_are_named_and_all_are_counted(
    crawl: Crawl, server: Server, answer: Reply, said: str, counted: str
) -> None:
    sites = [server.site() for _ in range(22)]
    for site in sites:
        site.robots = answer
    result = await crawled(crawl, *sites, KOSTER_UNAVAILABLE="allow")
    lines = of_sites(result)
    assert all(said in line for line in lines)
    named = [site for site in sites if any(site.url("") in line for line in lines)]
    assert len(named) == len(lines) == 20
    assert summary(result).startswith(f"Sites: {counted}. ")


async def test_a_restricted_site_that_is_allowed_is_not_called_restricted(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = Reply(403)
    result = await crawled(crawl, site, KOSTER_RESTRICTED="allow")
    assert of_sites(result) == [f"{site.url('')} has no rules: its robots.txt answers HTTP 403"]
    assert result.fetched == (site.url("/page"),)


# A site without rules.


@pytest.mark.parametrize(
    ("page", "obeyed"),
    [
        (PAGE, False),
        (Reply(200, f"\ufeff\n {HTML}".encode()), False),
        (Reply(200, f"<!-- by hand -->\n{RULES}"), True),
        (Reply(200, b""), True),
    ],
    ids=["a page", "a page with a mark", "rules below a comment of HTML", "an empty file"],
)
async def test_an_html_page_counts_as_one(
    crawl: Crawl, server: Server, page: Reply, obeyed: bool
) -> None:
    site = server.site()
    site.robots = page
    result = await crawled(crawl, site)
    assert result.fetched == (site.url("/page"),)
    said = f"{site.url('')} has no rules: its robots.txt answers HTTP 200 with an HTML page, "
    odd = "is partly HTML. The lines in it that are rules are obeyed"
    named = [] if page.body == b"" else [f"The robots.txt of {site.url('')} {odd}"]
    assert of_sites(result) == (named if obeyed else [said + site.url("/robots.txt")])
    assert summary(result).startswith(f"Sites: 1 {'obeyed' if obeyed else 'with an HTML page'}")


async def test_a_crawl_without_sites_has_a_summary(crawl: Crawl) -> None:
    assert summary(await crawl(urls=[])).startswith("Sites: none. Requests refused: 0.")


# A site that is let through.


async def test_a_site_that_is_let_through_answers_again(crawl: Crawl, server: Server) -> None:
    """It is said once, whatever comes in between."""
    site = server.site()
    site.robots = [Reply(503), Reply(502), RULES]

    class Later(RecordingSpider):
        async def start(self) -> Any:
            yield self.ask(self.urls[0])

        async def parse(self, response: Any, **arguments: Any) -> Any:
            self.fetched.append(response.url)
            if len(self.fetched) < 4:
                await crawl.sleep(0.3)
                yield self.ask(site.url(f"/{len(self.fetched)}"))

    settings = {**SETTINGS, "KOSTER_UNAVAILABLE": "allow", "KOSTER_DEFER_FIRST_SECS": 0.1}
    result = await crawl(Later, urls=[site.url("/")], settings=settings)
    assert len(result.fetched) == 4
    through, again = of_sites(result)
    assert through == (
        f"Letting requests to {site.url('')} through (KOSTER_UNAVAILABLE): its robots.txt cannot"
        " be retrieved (HTTP 503)"
    )
    assert again == f"{site.url('')} answers again: HTTP 200"
    assert summary(result).startswith("Sites: 1 obeyed. ")


# The dry run.


async def test_a_dry_run_says_what_would_be(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = RULES
    result = await crawled(crawl, site, path="/secret", KOSTER_DRY_RUN=True)
    assert result.fetched == (site.url("/secret"),)
    said = result.logged(name="scrapy_koster.crawl.enforcement")
    [line] = [line for line in said if "forbidden" in line]
    assert line.startswith(f"<GET {site.url('/secret')}> would be forbidden by ")
    assert "Requests that would be refused (KOSTER_DRY_RUN): 1." in summary(result)


# Each robots.txt, at DEBUG.


@pytest.mark.parametrize(
    ("answer", "status", "octets"), [(RULES, 200, len(RULES)), (Reply(404, b"no"), 404, 0)]
)
async def test_each_robots_txt_has_a_line(
    crawl: Crawl, server: Server, answer: Handler, status: int, octets: int
) -> None:
    site = server.site()
    site.robots = answer
    for whence in ("fetched", "from storage"):
        [line] = of_sites(await crawled(crawl, site), level=logging.DEBUG)
        url = site.url("/robots.txt")
        start = f"The robots.txt of {site.url('')}: ({status}) <GET {url}> ({whence}, "
        start += f"bytes: {octets}, "
        assert line.startswith(start)
        assert re.fullmatch(ANSWERED, line.removeprefix(start))


async def test_the_line_of_a_robots_txt_elsewhere(crawl: Crawl, server: Server) -> None:
    site, other = server.site(), server.site()
    site.robots, other.robots = redirect(other.url("/robots.txt")), RULES
    [line] = of_sites(await crawled(crawl, site), level=logging.DEBUG)
    start = (
        f"The robots.txt of {site.url('')}: (200) <GET {other.url('/robots.txt')}> (redirected, "
    )
    assert line.startswith(start)


async def test_the_line_of_a_robots_txt_that_is_renewed(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = lambda asked: Reply(
        304 if asked.header("If-None-Match") else 200,
        b"" if asked.header("If-None-Match") else RULES,
        headers={"ETag": '"1"', "Cache-Control": "max-age=0"},
    )
    for whence in ("fetched", "revalidated"):
        result = await crawled(crawl, site, KOSTER_EXPIRY_MIN_SECS=0)
        lines = of_sites(result, level=logging.DEBUG)
        assert f"({whence}, bytes: {len(RULES)}, " in lines[-1]


async def test_the_line_of_an_attempt_that_failed(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = [Reply(503), RULES]
    failed, read = of_sites(await crawled(crawl, site), level=logging.DEBUG)
    assert failed == (
        f"The robots.txt of {site.url('')} cannot be retrieved (HTTP 503), attempts: 1"
    )
    assert "(fetched, " in read


# A file that is obeyed, and is not what a robots.txt should be.


@pytest.mark.parametrize(
    ("robots", "what"),
    [
        (RULES.encode("utf-16"), "in UTF-16 or UTF-32, which many robots cannot read"),
        (f"<html>\n{RULES}", "partly HTML. The lines in it that are rules are obeyed"),
        (RULES, None),
    ],
    ids=["UTF-16", "HTML", "neither"],
)
async def test_an_odd_file_that_is_obeyed_is_named(
    crawl: Crawl, server: Server, robots: str | bytes, what: str | None
) -> None:
    sites = [server.site() for _ in range(22)]
    for site in sites:
        site.robots = Reply(200, robots)
    result = await crawled(crawl, *sites, path="/secret")
    assert len(result.refused) == 22
    said = [line for line in of_sites(result) if line.startswith("The robots.txt of")]
    assert sorted(said) == sorted(said[:20])
    named = {f"The robots.txt of {site.url('')} is {what}" for site in sites if what}
    assert len(said) == min(len(named), 20)
    assert set(said) <= named
    everywhere = [*said, *of_sites(result, level=logging.DEBUG)]
    assert named <= set(everywhere)


async def test_a_page_that_is_missing_rules_is_named(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = PAGE
    result = await crawled(crawl, site, KOSTER_MISSING="disallow")
    [line] = of_sites(result)
    assert "HTTP 200 without a record (an HTML page), so no page" in line


async def test_what_is_refused_at_once_is_not_counted_as_deferred(
    crawl: Crawl, server: Server
) -> None:
    """KOSTER_UNAVAILABLE = "disallow", and a site that is asked again for later pages."""
    site, failing = server.site(), server.site(host="127.0.0.2")
    failing.robots = Reply(503)

    class Slowly(RecordingSpider):
        def page(self, response: Response) -> Any:
            yield from (self.ask(failing.url(f"/{response.url[-1]}/{n}")) for n in range(3))

    settings = {
        "KOSTER_UNAVAILABLE": "disallow",
        "KOSTER_DEFER_FIRST_SECS": 0.5,
        "KOSTER_DEFER_MAX_SECS": 0.5,
        "DOWNLOAD_DELAY": 1,
        **STEADY,
    }
    result = await crawl(Slowly, urls=site.urls(4), settings=settings)
    assert len(result.refused) == 12
    assert failing.asked("/robots.txt") == 4
    assert result.stats["koster/forbidden/unavailable"] == result.stats["robotstxt/forbidden"] == 12
    assert [name for name in result.stats if name.startswith("koster/deferred")] == []
