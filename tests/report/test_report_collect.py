"""The counts of a report equal the stats of the crawl, and the requests at the servers."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from harness import forks
from harness.crawling import Crawl
from harness.fleet import worker
from harness.replies import Reply
from harness.reports import database_of
from harness.server import Server, Site
from scrapy.utils.test import get_crawler

from scrapy_koster import KosterMiddleware
from scrapy_koster.report.database import DatabaseError, Writer, reading
from scrapy_koster.report.numbers import csv_lines, read
from scrapy_koster.report.tally import ALLOWED, Tally

RULES = "User-agent: *\nDisallow: /no\nCrawl-delay: 5"
QUICK = {
    "KOSTER_DEFER_FIRST_SECS": 0.1,
    "KOSTER_DEFER_LIMIT_SECS": 0.5,
    "KOSTER_IDLE_LIMIT_SECS": 1,
    "CONCURRENT_REQUESTS": 64,
    "LOG_LEVEL": "INFO",
}


def site_of_kind(server: Server, kind: int) -> Site:
    """Return a site with an answer of this kind."""
    if kind == 7:
        return server.down()
    site = server.site()
    site.robots = {
        3: Reply(404),
        4: Reply(200, "<html><title>Hello</title></html>"),
        5: Reply(403),
        6: Reply(503),
        8: Reply(301, headers={"Location": "/other.txt"}),
        9: Reply(200, ""),
    }.get(kind, Reply(200, RULES))
    site.page("/other.txt", Reply(200, "User-agent: *\nDisallow: /no/2"))
    return site


def assert_exact(numbers: dict[str, Any], stats: Any, sites: list[Site], database: str) -> None:
    totals, refused = numbers["totals"], numbers["requests"]["refused"]
    assert totals["asked"] == stats["robotstxt/request_count"]
    assert totals["answered"] == stats["robotstxt/response_count"]
    assert refused == {ground: stats.get(f"koster/forbidden/{ground}", 0) for ground in refused}
    assert sum(refused.values()) == stats["robotstxt/forbidden"]
    assert totals["deferrals"] == stats.get("koster/deferred/sites", 0)
    assert sum(rule["refused"] for rule in numbers["rules"]) == refused["rule"]
    # The requests at the servers.
    with reading(database) as connection:
        rows = {row["site"]: row for row in connection.execute("SELECT * FROM site")}
    assert len(rows) == numbers["sites"] == len(sites)
    for site in sites:
        row = rows[site.url()[:-1]]
        allowed = sum(map(row.__getitem__, ALLOWED.values()))
        pages = [path for path in site.pages_asked if path != "/other.txt"]
        assert allowed == len(pages), row["site"]
        if site.requests:
            assert row["asked"] == site.asked("/robots.txt")
    assert numbers["requests"]["allowed"] == sum(
        path != "/other.txt" for site in sites for path in site.pages_asked
    )


@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.long)])
async def test_equal_to_the_stats_and_to_the_servers(
    crawl: Crawl, server: Server, tmp_path: Path, count: int
) -> None:
    sites = [site_of_kind(server, n % 10) for n in range(count)]
    urls = [url for site in sites for url in (*site.urls(3), *site.urls(3, "/no/{}"))]
    page = tmp_path / "page.html"
    result = await crawl(urls=urls, settings={**QUICK, "KOSTER_REPORT": str(page)})
    database = database_of(result.crawler)
    numbers = read(database)
    assert_exact(numbers, result.stats, sites, database)
    tenth = count // 10
    assert numbers["outcomes"] == {
        "obeyed": 4 * tenth,
        "without robots.txt": 3 * tenth,
        "restricted": tenth,
        "unavailable": 2 * tenth,
        "not known": 0,
    }
    assert numbers["allowed_because"]["a robots.txt without rules"] == 6 * tenth
    assert numbers["totals"]["start_refused"] == sum(numbers["requests"]["refused"].values())
    assert page.stat().st_size < 250_000
    [*_, writing, written] = result.logged(logging.INFO, "scrapy_koster.report")
    assert writing.startswith("Writing the report.")
    assert written.startswith(f"The report of this crawl: {page}")
    assert result.logged(30, "scrapy_koster.report.extension") == []


def test_its_extension_has_to_be_in_the_crawl(tmp_path: Path) -> None:
    settings = {"ROBOTSTXT_OBEY": True, "KOSTER_REPORT": str(tmp_path / "page.html")}
    with pytest.raises(ValueError, match="to EXTENSIONS, or use the add-on"):
        KosterMiddleware.from_crawler(get_crawler(settings_dict=settings))


def test_a_csv_cell_is_no_formula(tmp_path: Path) -> None:
    tally, writer = Tally(), Writer(str(tmp_path / "report.sqlite3"))
    tally.put("site", "http://a.example", outcome=1, fetched=0, expires=60, record="=cmd()")
    writer.write(tally)
    writer.close()
    with reading(writer.path) as connection:
        names, line = csv_lines(connection)
    values = dict(zip(names.split(","), line.split(","), strict=True))
    found = [values[name] for name in ("outcome", "expires", "record")]
    assert found == ["obeyed", "1970-01-01T00:01:00Z", "'=cmd()"]


@pytest.fixture
def killed(tmp_path: Path, server: Server) -> tuple[Site, Path]:
    """The site and the report of a crawl that was killed after some batches were written."""
    site = server.site()
    site.robots = RULES
    settings = {
        "KOSTER_REPORT": str(tmp_path / "page.html"),
        "KOSTER_SQLITE_PATH": str(tmp_path / "robots.sqlite3"),
        "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
    }
    urls = [site.url(path.format(n)) for n in range(5000) for path in ("/page{}", "/no/{}")]
    crawl = worker(urls, settings).process
    try:
        forks.until(lambda: crawl.poll() is not None or _allowed(tmp_path) >= 20, 90)
        assert crawl.poll() is None
    finally:
        crawl.kill()
        crawl.communicate()
    [file] = (tmp_path / "reports").glob("*.sqlite3")
    return site, file


def _allowed(folder: Path) -> int:
    for file in (folder / "reports").glob("*.sqlite3"):
        with suppress(DatabaseError), reading(str(file)) as connection:  # incomplete
            return int(connection.execute("SELECT sum(allowed) FROM site").fetchone()[0] or 0)
    return 0


@pytest.mark.long
def test_a_killed_crawl_leaves_a_true_report(killed: tuple[Site, Path], tmp_path: Path) -> None:
    site, file = killed
    command = [sys.executable, "-m", "scrapy", "robots", "report", str(file), "--json"]
    options = ["-o", "page.html", "-s", f"KOSTER_SQLITE_PATH={tmp_path / 'robots.sqlite3'}"]
    run = forks.run([*command, *options], cwd=tmp_path, text=True)
    assert run.returncode == 0, run.stderr
    numbers = json.loads(run.stdout)
    assert (numbers["sites"], numbers["outcomes"]["obeyed"]) == (1, 1)
    allowed, pages = numbers["requests"]["allowed"], len(site.pages_asked)
    # Two seconds may be missing. CONCURRENT_REQUESTS were allowed, and not sent yet.
    assert 20 <= allowed <= pages + 16
    [rule] = numbers["rules"]
    assert rule["line"] == 2
    assert rule["refused"] == numbers["requests"]["refused"]["rule"] > 0
    page = (tmp_path / "page.html").read_text()
    assert "The crawl had not finished when this page was made" in page
