"""The files of reports: folders, names, and messages about failures."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.reports import data_in, database_of
from harness.server import Server
from scrapy.http import Response
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.utils.test import get_crawler

from scrapy_koster import Rfc9309RobotParser
from scrapy_koster.crawl.config import config_of
from scrapy_koster.report.database import Writer
from scrapy_koster.report.extension import write_report
from scrapy_koster.report.numbers import read
from scrapy_koster.report.tally import Tally

REPORT = "scrapy_koster.report.extension"
DAY = 86400.0
RULES = "User-agent: *\nDisallow: /no\n"


def make(path: Path, seconds_ago: float) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    os.utime(path, (time.time() - seconds_ago,) * 2)
    return path


async def test_ten_of_a_spider_are_kept_and_those_of_a_day(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    def old(spider: str, n: int, days: float) -> Path:
        path = tmp_path / "reports" / f"{spider}-20260101T0000{n:02}-{n:08x}.sqlite3"
        for suffix in ("", "-wal", "-shm"):
            make(Path(f"{path}{suffix}"), days * DAY)
        return path

    kept = [old("recording", n, 1 + n) for n in range(10)]
    gone = [old("recording", 10, 20), old("recording", 11, 30)]
    Path(f"{gone[0]}-wal").unlink()
    kept += [old("other", n, 40) for n in range(12, 24)]
    result = await crawl(settings={"KOSTER_REPORT": str(tmp_path / "page.html")})
    left = {path for path in (tmp_path / "reports").iterdir() if path.suffix == ".sqlite3"}
    own = Path(database_of(result.crawler))
    assert left == {*kept, own}
    assert own.read_bytes()[18:20] == b"\1\1", "a reader of a file with a WAL writes beside it"
    for path in gone:
        assert list(path.parent.glob(f"{path.name}*")) == []


@pytest.mark.parametrize(
    ("settings", "robots", "exempt", "answer"),
    [
        ({}, RULES, [], "No. Only allowed requests were sent: 2."),
        ({}, RULES, ["/no", "/no/1", "/c"], "Yes, by your choice. Forbidden "),
        ({"KOSTER_RESTRICTED": "allow"}, Reply(403), [], "Yes, by your choice. Forbidden "),
        ({"KOSTER_PARSER": Rfc9309RobotParser}, Reply(403), [], "No. Only allowed requests were"),
        ({"KOSTER_UNAVAILABLE": "allow"}, Reply(503), [], "Not that is known, "),
        ({}, "User-agent: *\nDisallow: /*a$\n", [], "Pages that RFC 9309 forbids: 1."),
        ({"KOSTER_PARSER": ProtegoRobotParser}, RULES, [], "By your parser, no. Only allowed"),
    ],
    ids=["none", "exempt", "restricted", "RFC 9309", "unavailable", "looser", "foreign"],
)
async def test_what_was_sent_that_is_forbidden_changes_the_answer(
    crawl: Crawl,
    server: Server,
    tmp_path: Path,
    *,
    settings: dict[str, Any],
    robots: Any,
    exempt: list[str],
    answer: str,
) -> None:
    site, page = server.site(), tmp_path / "page.html"
    site.robots = robots

    class Exempting(RecordingSpider):
        def page(self, response: Response) -> Any:
            if response.url == self.urls[0]:
                for path in exempt:
                    yield self.ask(site.url(path), meta={"dont_obey_robotstxt": True})

    urls = [site.url("/a"), site.url("/b")]
    result = await crawl(Exempting, urls=urls, settings={"KOSTER_REPORT": str(page), **settings})
    assert len(result.fetched) == len(urls) + len(exempt)
    totals = read(database_of(result.crawler))["totals"]
    forbidden = sum(path.startswith("/no") for path in exempt)
    assert (totals["exempt"], totals["exempt_forbidden"]) == (len(exempt), forbidden)
    made = page.read_text()
    assert answer in made
    told = f"Of these, forbidden by a known robots.txt: {forbidden}"
    assert (told in made) is bool(forbidden)


async def test_what_could_not_be_written_is_written_later(
    crawl: Crawl, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure is logged once."""
    monkeypatch.setattr(f"{REPORT}._BATCH_SECS", 0.02)
    write, tries = Writer.write, list[Tally]()

    def failing(writer: Writer, tally: Tally) -> None:
        tries.append(tally)
        if len(tries) <= 5:
            raise sqlite3.OperationalError("disk I/O error")
        write(writer, tally)

    monkeypatch.setattr(Writer, "write", failing)
    gate, site = server.gate(), server.site()
    site.page("/0", Reply(200, "page", gate=gate))
    settings = {"KOSTER_REPORT": str(tmp_path / "page.html")}
    running = crawl.start(urls=[site.url("/0")], settings=settings)
    await crawl.until(lambda: len(tries) > 5 and site.pages_asked == ["/0"])
    gate.open()
    result = await running.result()
    database = database_of(result.crawler)
    numbers = read(database)
    allowed, asked = numbers["requests"]["allowed"], numbers["totals"]["asked"]
    assert (allowed, asked, numbers["sites"]) == (1, 1, 1)
    [said] = result.logged(logging.WARNING, REPORT)
    assert said == (
        f"The data of the report cannot be written to {database}: OperationalError: disk"
        " I/O error. The crawl goes on and tries again. Until then, counts are kept in memory, for"
        " 10,000 sites at most. This is logged once. Free space, or make the folder writable"
    )


async def test_a_page_for_its_robot(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    """By RFC 9309, each token of a header is a name. Another crawl of the project has another."""
    site, page = server.site(), tmp_path / "page.html"
    site.robots = "User-agent: scrapy\nDisallow: /no\n\nUser-agent: x\nDisallow: /\n"
    robot = {"ROBOTSTXT_USER_AGENT": "Fig/0.1 (Scrapy 2)", "KOSTER_PARSER": Rfc9309RobotParser}
    result = await crawl(urls=site.urls(1), settings={**robot, "KOSTER_REPORT": str(page)})
    settings = {"KOSTER_SQLITE_PATH": result.crawler.settings["KOSTER_SQLITE_PATH"]}
    other = config_of(get_crawler(settings_dict=settings))
    write_report(other, database_of(result.crawler), str(page))
    data = data_in(page.read_text())
    assert data["robot"] == "Fig/0.1 (Scrapy 2)"
    assert data["files"][site.url()[:-1]]["lit"] == [1, 2]
