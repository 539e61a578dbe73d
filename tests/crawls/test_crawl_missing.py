"""KOSTER_MISSING: what a robots.txt that is not there, or that has no record, means."""

from __future__ import annotations

import logging
from pathlib import Path

from harness.comparison import HTML, RULES
from harness.crawling import Crawl, CrawlResult
from harness.replies import Handler, Reply, redirect
from harness.reports import data_in, database_of
from harness.server import Server, Site

from scrapy_koster import RobotsForbidden
from scrapy_koster.protocol.site_status import Ground
from scrapy_koster.report.numbers import read

PAGE = {"Content-Type": "text/html"}
DISALLOW = {"KOSTER_MISSING": "disallow"}
MISSING: dict[str, Handler] = {
    "404": Reply(404),
    "404 with rules": Reply(404, RULES),
    "410": Reply(410),
    "451": Reply(451),
    "400": Reply(400),
    "a redirect to a 404": redirect("/gone"),
    "204": Reply(204),
    "empty": Reply(200),
    "comments": Reply(200, "# nothing\n\n"),
    "HTML": Reply(200, HTML, headers=PAGE),
    "binary": Reply(200, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))),
    "an agent without a rule": Reply(200, "User-agent: *\n"),
    "rules without an agent": Reply(200, "Disallow: /secret\n"),
    "an extension alone": Reply(200, "Sitemap: /sitemap.xml\n"),
}
THERE: dict[str, Handler] = {
    "rules": RULES,
    "UTF-16": Reply(200, RULES.encode("utf-16")),
    "UTF-16 without a mark": Reply(200, RULES.encode("utf-16-le")),
    "rules below HTML": Reply(200, f"<!-- by hand -->\n{RULES}", headers=PAGE),
    "nothing is disallowed": "User-agent: *\nDisallow:\n",
    "a record of another robot": "User-agent: another\nDisallow: /\n",
    "203": Reply(203, RULES),
}


def sites_that_answer(server: Server, answers: dict[str, Handler]) -> dict[str, Site]:
    sites = {}
    for name, answer in answers.items():
        sites[name] = server.site()
        sites[name].robots = answer
        sites[name].page("/gone", Reply(404))
    return sites


def pages(sites: dict[str, Site]) -> list[str]:
    return [site.url("/page") for site in sites.values()]


async def test_all_that_is_missing_is_disallowed(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    missing, there = sites_that_answer(server, MISSING), sites_that_answer(server, THERE)
    report = {"KOSTER_REPORT": str(tmp_path / "report.html")}
    for _ in range(2):  # the second has it from the storage
        result = await crawl(urls=pages(missing) + pages(there), settings=DISALLOW | report)
        assert sorted(result.fetched) == sorted(pages(there))
        assert sorted(url for url, _ in result.refused) == sorted(pages(missing))
        assert {type(error) for _, error in result.refused} == {RobotsForbidden}
        assert {verdict.ground for verdict in result.verdicts} == {Ground.MISSING}
        assert result.stats["koster/forbidden/missing"] == len(missing)
        assert result.stats["robotstxt/forbidden"] == len(missing)
        assert f"{len(missing)} missing and disallowed (KOSTER_MISSING)" in summary(result)
        numbers = read(database_of(result.crawler))
        assert numbers["requests"]["refused"]["missing"] == numbers["closed"] == len(missing)
        assert numbers["closed_by"]["missing"] == numbers["outcomes"]["restricted"] == len(missing)
        closed = data_in((tmp_path / "report.html").read_text("utf-8"))["tables"]["closed"]
        hows = {how for _, _, how, *_ in closed}
        assert hows == {"missing and disallowed (KOSTER_MISSING)"}
    assert [name for name, site in missing.items() if site.pages_asked not in ([], ["/gone"])] == []
    assert {site.asked("/robots.txt") for site in missing.values()} == {1}


def summary(result: CrawlResult) -> str:
    [line] = [told for told in result.logged(logging.INFO) if told.startswith("Sites: ")]
    return line
