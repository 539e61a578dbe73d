"""Pages that the draft allows and RFC 9309 forbids: nobody fetches one without being told."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.crawling import Crawl
from harness.replies import Reply
from harness.reports import database_of
from harness.server import Server

from scrapy_koster.report.numbers import read

SUMMARY, ANNOUNCER = (f"scrapy_koster.crawl.messages.{name}" for name in ("summary", "announcer"))
STRICTEST = 'KOSTER_PARSER = "scrapy_koster.StrictestRobotParser"'


async def test_a_page_that_only_rfc_9309_forbids_is_told_with_both_lines(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    """The log, the stats, the report and the verdict name the cause and both lines."""
    site = server.site()
    # As Cloudflare puts its records before the site's own.
    site.robots = "User-agent: *\nAllow: /\n\nUser-agent: *\nDisallow: /private\n"
    draft = "line 2 'Allow: /' in the group for * (line 1); draft 3.2.2"
    rfc9309 = "line 5 'Disallow: /private' in the group for * (line 4); RFC 9309 2.2.2"
    site.page("/private", [Reply(503), Reply()])  # and counted once
    urls = [site.url("/private"), site.url("/private/2"), site.url("/public")]
    settings = {"USER_AGENT": "figtree (+http://x)", "KOSTER_REPORT": str(tmp_path / "page.html")}
    result = await crawl(urls=urls, settings=settings)
    assert sorted(result.fetched) == sorted(urls)
    counted = {"urls": 2, "urls/records": 2, "sites/records": 1}
    stats = {name: n for name, n in result.stats.items() if "/hazard/" in name}
    assert stats == {f"koster/hazard/{name}": n for name, n in counted.items()}
    debug = [line for line in result.logged(name=ANNOUNCER) if "is allowed: it is" in line]
    assert len(debug) == 2
    assert all(draft in line and rfc9309 in line for line in debug)
    [line] = result.warnings
    assert "disallows (records 2)." in line
    assert f"/private is allowed by the draft, {draft}, and forbidden by RFC 9309, {rfc9309}" in (
        line.replace("/private/2", "/private")
    )
    assert STRICTEST.replace("Strictest", "Rfc9309") in line
    numbers = read(database_of(result.crawler))
    [row] = numbers["hazards"]
    assert (row["site"], row["cause"], row["line"]) == (site.url(""), "records", 5)
    assert row["pages"] == 2
    assert numbers["totals"]["looser"] == 2
    page = (tmp_path / "page.html").read_text()
    assert "Allowed, although RFC 9309 forbids them: 2" in page


WORDPRESS = "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n"
SECTION = "User-agent: *\nDisallow: /\nAllow: /a\nAllow: /$\n"


@pytest.mark.parametrize(
    ("robots", "paths", "refused", "stricter"),
    [
        (SECTION, ["/", "/a", "/b"], 3, 2),
        (WORDPRESS, ["/wp-admin/admin-ajax.php", "/wp-admin/x", "/"], 2, 1),
        # RFC 9309 forbids another spelling in which some handlers send the URL.
        ("User-agent: *\nDisallow: /a/\nAllow: /a/../b\nDisallow: /b", ["/a/../b"], 1, 0),
    ],
    ids=["section", "wordpress", "spelling"],
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
    assert read(database_of(result.crawler))["totals"]["stricter"] == stricter
    page = (tmp_path / "page.html").read_text()
    assert (f"Refused, although RFC 9309 allows them: {stricter}" in page) is bool(stricter)
