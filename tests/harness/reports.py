"""Files of reports, made without a crawl."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from scrapy.crawler import Crawler

from scrapy_koster import RobotsReport
from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.protocol.site_status import SiteStatus
from scrapy_koster.report.database import Writer
from scrapy_koster.report.page import write_page
from scrapy_koster.report.tally import START, Tally

NOW = 1_795_000_000
ROBOTS = b"User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\nDisallow: /*.pdf\n"
ABOUT: Mapping[str, Any] = {
    "title": "Crawl of web",
    "spider": "web",
    "robot": "figtree",
    "agent": "it's",
    "dry_run": 0,
    "parser": "KosterRobotParser",
    "compared": 1,
    "version": "0.1.0",
    "started": NOW - 600,
    "written": NOW,
    "finished": "finished",
}


def database_of(crawler: Crawler) -> str:
    report = crawler.get_extension(RobotsReport)
    assert report is not None
    return report.database


def site_named(number: int) -> str:
    return f"http://site{number}.example"


def row(tally: Tally, site: str) -> dict[str, Any]:
    """The row of a site, to be changed."""
    return tally.rows["site"].setdefault((site,), {})


def obeyed(tally: Tally, site: str, *, allowed: int = 3, digest: str = "", **facts: Any) -> None:
    row(tally, site).update(
        outcome=int(SiteStatus.OBEYED), status=200, asked=1, answered=1, fetches=1,
        fetched=NOW - 60, expires=NOW + 600, bytes=len(ROBOTS), digest=digest, record_line=4,
        record="*", allowed_rule=allowed, **facts,
    )  # fmt: skip


def refused(tally: Tally, site: str, line: int, text: str, times: int) -> None:
    tally.add("site", site, refused_rule=times)
    tally.add("rule", site, line, text, "rule", refused=times)
    for n in range(min(times, 5)):
        sample(tally, site, "rule", line, f"{site}/private/{n}")


def sample(tally: Tally, site: str, kind: str, line: int, url: str) -> None:
    number = len(tally.rows["sample"])
    tally.put("sample", site, kind, line, number, url=url)


def refused_whole(tally: Tally, site: str, ground: str, times: int) -> None:
    tally.add("site", site, **{f"refused_{ground}": times})
    tally.add("rule", site, 0, "", ground, refused=times)


def every_kind() -> Tally:
    """One site for each thing that a table shows."""
    tally = Tally()
    for n in range(60):
        obeyed(tally, site_named(n), allowed=n + 1)
    refused(tally, site_named(1), 5, "Disallow: /private/", 12)
    refused(tally, site_named(2), 6, "Disallow: /*.pdf", 2)
    refused(tally, site_named(3), 2, "Disallow: /", 7)
    row(tally, site_named(2))["looser"] = 3
    for n in range(3):
        tally.add("hazard", site_named(2), "order", 4, "Disallow: /b", "2: Allow: /", pages=1)
        sample(tally, site_named(2), "hazard", 4, f"{site_named(2)}/b/{n}")
    row(tally, site_named(4)).update(redirect="http://www.site4.example/robots.txt", delay="5")
    row(tally, site_named(5)).update(nofollow=4, noindex=1)
    sample(tally, site_named(5), "nofollow", 0, f"{site_named(5)}/page")
    row(tally, "http://closed.example").update(
        outcome=int(SiteStatus.RESTRICTED), status=403, asked=1, answered=1, start_refused=1,
        expires=NOW + 3600, bytes=0,
    )  # fmt: skip
    sample(tally, "http://closed.example", "restricted", 0, "http://closed.example/a")
    sample(tally, "http://closed.example", START, 0, "http://closed.example/a")
    row(tally, "http://down.example").update(
        outcome=int(SiteStatus.UNAVAILABLE), status=503, asked=4, reason="HTTP 503",
        deferred=NOW - 500, resumed=0, deferrals=1, given_up=1,
    )  # fmt: skip
    refused_whole(tally, "http://closed.example", "restricted", 3)
    refused_whole(tally, "http://down.example", "unavailable", 2)
    row(tally, "http://bare.example").update(
        outcome=int(SiteStatus.WITHOUT_ROBOTS_TXT), status=404, asked=1, allowed_none=9
    )
    row(tally, "http://page.example").update(
        outcome=int(SiteStatus.HTML), status=200, asked=1, allowed_html=2, cut=1
    )
    row(tally, "http://asked.example").update(asked=1)
    tally.add("failure", "HTTP 503", attempts=4)
    return tally


def written(path: Path, tally: Tally, *, about: Mapping[str, Any] = ABOUT) -> Path:
    """A file with these counts."""
    writer, tally = Writer(str(path)), deepcopy(tally)
    for name, value in about.items():
        tally.put("about", name, value=value)
    writer.write(tally)
    writer.close()
    return path


def page_of(folder: Path, tally: Tally, *, robots: bytes = ROBOTS, **options: Any) -> Path:
    """The page of these counts, where each site has this file."""
    database = written(folder / "report.sqlite3", tally)
    page = folder / "page.html"
    copy = CachedRobots("http://a.example/robots.txt", 200, robots, None, None, NOW, NOW)
    write_page(str(database), str(page), copies=lambda _: copy, **options)
    return page


def data_in(page: str) -> dict[str, Any]:
    """The data for the script of a page, where each table has its rows."""
    found = re.search('id="rows">([^<]*)<', page)
    assert found is not None
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[1])))
    for name, table in data["tables"].items():
        data["tables"][name] = list(map(list, zip(*table["values"], strict=True)))
    return data
