"""Pages that the draft allows and RFC 9309 forbids: nobody fetches one without being told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Reply
from harness.server import Server
from scrapy import Request
from scrapy.http import Response

from scrapy_koster import RobotsReport
from scrapy_koster.report.numbers import read

SUMMARY, ANNOUNCER = (f"scrapy_koster.crawl.messages.{name}" for name in ("summary", "announcer"))
STRICTEST = 'KOSTER_PARSER = "scrapy_koster.StrictestRobotParser"'


def stats_of(result: CrawlResult) -> Mapping[str, int]:
    start = "koster/hazard/"
    return {
        name.removeprefix(start): n for name, n in result.stats.items() if name.startswith(start)
    }


@pytest.mark.parametrize(
    ("robots", "cause", "draft", "rfc9309"),
    [
        (
            # As Cloudflare puts its records before the site's own.
            "User-agent: *\nAllow: /\n\nUser-agent: *\nDisallow: /private\n", "records",
            "line 2 'Allow: /' in the group for * (line 1); draft 3.2.2",
            "line 5 'Disallow: /private' in the group for * (line 4); RFC 9309 2.2.2",
        ),
        (
            "User-agent: *\nDisallow: /*vate", "wildcards",
            "no rule of the group for * (line 1) applies; draft 3.2.2",
            "line 2 'Disallow: /*vate' in the group for * (line 1); RFC 9309 2.2.3",
        ),
    ],
    ids=["records", "wildcards"],
)  # fmt: skip
async def test_a_page_that_only_rfc_9309_forbids_is_told_with_both_lines(
    crawl: Crawl,
    server: Server,
    tmp_path: Path,
    *,
    robots: str,
    cause: str,
    draft: str,
    rfc9309: str,
) -> None:
    """The log, the stats, the report and the verdict name the cause and both lines."""
    site = server.site()
    site.robots = robots
    urls = [site.url("/private"), site.url("/private/2"), site.url("/public")]
    settings = {"USER_AGENT": "figtree (+http://x)", "KOSTER_REPORT": str(tmp_path / "page.html")}
    result = await crawl(urls=urls, settings=settings)
    assert sorted(result.fetched) == sorted(urls)
    assert stats_of(result) == {"urls": 2, f"urls/{cause}": 2, f"sites/{cause}": 1}
    debug = [line for line in result.logged(name=ANNOUNCER) if "is allowed: it is" in line]
    assert len(debug) == 2
    assert all(draft in line and rfc9309 in line for line in debug)
    [line] = result.warnings
    assert f"disallows ({cause} 2)." in line
    assert f"/private is allowed by the draft, {draft}, and forbidden by RFC 9309, {rfc9309}" in (
        line.replace("/private/2", "/private")
    )
    assert STRICTEST.replace("Strictest", "Rfc9309") in line
    report = result.crawler.get_extension(RobotsReport)
    assert report is not None
    [row] = read(report.database).hazards
    assert row[:3] == (site.url(""), cause, int(rfc9309.split()[1]))
    assert row[5] == 2
    assert read(report.database).totals["looser"] == 2
    page = (tmp_path / "page.html").read_text()
    assert "Allowed, although RFC 9309 forbids them: 2" in page


async def test_the_pages_that_are_counted(crawl: Crawl, server: Server) -> None:
    """Those that RFC 9309 forbids, once each, by whichever way they were let through."""
    wild, plain = server.site(), server.site()
    wild.robots = Reply(body="User-agent: *\nDisallow: /*.gif$\nDisallow: /no\n")
    plain.robots = Reply(body="User-agent: *\nAllow: /\nDisallow: /a\n")
    wild.page("/retried.gif", [Reply(status=503), Reply()])
    paths = ["/a.gif", "/x/../b.gif", "/retried.gif", "/a.gift", "/", "/no.gif"]
    urls = [*map(wild.url, paths), plain.url("/a")]
    result = await crawl(urls=urls, settings={"RETRY_ENABLED": True})
    assert [url for url, _ in result.refused] == [wild.url("/no.gif")]
    assert stats_of(result) == {
        "urls": 4, "urls/wildcards": 3, "sites/wildcards": 1, "urls/order": 1, "sites/order": 1
    }  # fmt: skip
    [line] = result.warnings
    assert (
        "Fetched 4 pages that RFC 9309, today's standard, disallows (wildcards 3, order 1)." in line
    )


WORDPRESS = "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n"
SECTION = "User-agent: *\nDisallow: /\nAllow: /a\nAllow: /$\n"
MISSPELT = "User-agent: *\nDisalow: /x\n"


@pytest.mark.parametrize(
    ("robots", "paths", "refused", "stricter"),
    [
        (SECTION, ["/", "/a", "/b"], 3, 2),
        (WORDPRESS, ["/wp-admin/admin-ajax.php", "/wp-admin/x", "/"], 2, 1),
        ("User-agent: *\nDisallow: /a%2Fb\n", ["/a%2Fb"], 1, 0),
        # RFC 9309 forbids another spelling in which some handlers send the URL.
        ("User-agent: *\nDisallow: /a/\nAllow: /a/../b\nDisallow: /b", ["/a/../b"], 1, 0),
        (MISSPELT, ["/x"], 1, 1),
    ],
    ids=["section", "wordpress", "escape", "spelling", "misspelt"],
)
@pytest.mark.parametrize("parser", ["Strictest", "Rfc9309"])
async def test_what_rfc_9309_allows_and_the_reading_refuses(
    crawl: Crawl,
    server: Server,
    tmp_path: Path,
    *,
    parser: str,
    robots: str,
    paths: list[str],
    refused: int,
    stricter: int,
) -> None:
    """A stat, a line with an example and the setting, and a row in the report; or none of them."""
    if parser == "Rfc9309":
        refused, stricter = refused - stricter, 0
    site = server.site()
    site.robots = robots
    settings = {
        "USER_AGENT": "figtree (+http://x)",
        "KOSTER_PARSER": f"scrapy_koster.{parser}RobotParser",
        "KOSTER_REPORT": str(tmp_path / "page.html"),
    }
    result = await crawl(urls=[*map(site.url, paths)], settings=settings)
    assert len(result.refused) == refused
    assert result.stats.get("koster/stricter/urls", 0) == stricter
    pages = "1 page" if stricter == 1 else f"{stricter} pages"
    said = [line for line in result.logged(20, SUMMARY) if "that RFC 9309 allows" in line]
    assert [line.partition(" that ")[0] for line in said] == [f"Refused {pages}"][:stricter]
    for line in said:
        assert f"For example {site.url('/')}" in line
        assert 'Set KOSTER_PARSER = "scrapy_koster.Rfc9309RobotParser" to fetch them' in line
    report = result.crawler.get_extension(RobotsReport)
    assert report is not None
    assert read(report.database).totals["stricter"] == stricter
    page = (tmp_path / "page.html").read_text()
    assert (f"Refused, although RFC 9309 allows them: {stricter}" in page) is bool(stricter)


class Links(RecordingSpider):
    def page(self, response: Response) -> Iterator[Request]:
        yield from map(self.ask, map(response.urljoin, ["/wp-admin/admin-ajax.php", "/wp-admin/"]))


@pytest.mark.parametrize(
    ("settings", "disallow", "said"),
    [
        ({"KOSTER_FILTER_LINKS": True}, "/x", "Refused 1 page that RFC 9309 allows"),
        ({"KOSTER_DRY_RUN": True}, "/x", "Would refuse 1 page that RFC 9309 allows"),
        ({}, "/wp-admin", ""),
        ({"KOSTER_CRAWL_DELAY": "refuse"}, "/x", ""),
    ],
    ids=["links", "dry run", "override", "delay"],
)
async def test_stricter_counts_what_the_setting_would_open(
    crawl: Crawl, server: Server, settings: dict[str, Any], disallow: str, said: str
) -> None:
    """A status, and what an override or a delay refuses too, are not counted."""
    site, closed = server.site(), server.site()
    site.robots, closed.robots = f"{WORDPRESS}Crawl-delay: 99\n", Reply(403)
    entry = {"site": site.url(""), "disallow": [disallow], "reason": "x", "until": "2099-12-31"}
    urls = [site.url("/"), site.url("/wp-admin/admin-ajax.php"), closed.url("/")]
    urls = urls[::2] if "KOSTER_FILTER_LINKS" in settings else urls
    result = await crawl(Links, urls=urls, settings={**settings, "KOSTER_OVERRIDES": [entry]})
    assert site.url("/wp-admin/admin-ajax.php") in {*result.fetched, *result.errors}
    assert result.stats.get("koster/stricter/urls", 0) == bool(said)
    lines = [line for line in result.logged(name=SUMMARY) if "that RFC 9309 allows" in line]
    assert [line.startswith(said) for line in lines] == [True] * bool(said)
