"""What the report of a crawl collects: equal to the stats, and to what the servers saw."""

from __future__ import annotations

from pathlib import Path

from crawling import Crawl, CrawlResult
from replies import Reply
from server import Server

from scrapy_koster import RobotsReport
from scrapy_koster.report.database import reading


def report_of(result: CrawlResult) -> RobotsReport:
    report = result.crawler.get_extension(RobotsReport)
    assert report is not None
    return report


async def test_two_sites(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    ruled, bare = server.site(), server.site()
    ruled.robots = "User-agent: *\nDisallow: /no"
    bare.robots = Reply(404)
    urls = [*ruled.urls(5), ruled.url("/no/1"), ruled.url("/no/2"), *bare.urls(3)]
    result = await crawl(urls=urls, settings={"KOSTER_REPORT": str(tmp_path / "page.html")})
    with reading(report_of(result).database) as connection:
        rows = connection.execute(
            "SELECT site, asked, allowed_rule, allowed_none, refused_rule FROM site"
        ).fetchall()
        rules = connection.execute("SELECT line, text, refused FROM rule").fetchall()
        samples = connection.execute("SELECT url FROM sample WHERE kind = 'rule'").fetchall()
    assert set(map(tuple, rows)) == {(ruled.url()[:-1], 1, 5, 0, 2), (bare.url()[:-1], 1, 0, 3, 0)}
    assert list(map(tuple, rules)) == [(2, "Disallow: /no", 2)]
    assert {url for (url,) in samples} == {ruled.url("/no/1"), ruled.url("/no/2")}
