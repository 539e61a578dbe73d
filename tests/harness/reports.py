"""Files of reports, made without a crawl."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scrapy_koster.protocol.standing import Standing
from scrapy_koster.report.database import Writer
from scrapy_koster.report.page import write_page
from scrapy_koster.report.tally import START, Tally

NOW = 1_795_000_000
ROBOTS = b"User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\nDisallow: /*.pdf\n"
ABOUT: Mapping[str, Any] = {
    "title": "Crawl of web",
    "spider": "web",
    "robot": "figtree",
    "dry_run": 0,
    "parser": "KosterRobotParser",
    "version": "0.1.0",
    "started": NOW - 600,
    "written": NOW,
    "finished": "finished",
}


def site_named(number: int) -> str:
    return f"http://site{number}.example"


def obeyed(tally: Tally, site: str, *, allowed: int = 3, crc: int = 0, **facts: Any) -> None:
    tally.row(site).update(
        outcome=int(Standing.OBEYED), status=200, asked=1, answered=1, fetches=1, fetched=NOW - 60,
        expires=NOW + 600, bytes=len(ROBOTS), crc=crc, record_line=4, record="*",
        allowed_rule=allowed, **facts,
    )  # fmt: skip


def refused(tally: Tally, site: str, line: int, text: str, times: int) -> None:
    for n in range(times):
        tally.count(site, "refused_rule")
        tally.refused_by(site, line, text)
        tally.sample(site, "rule", line, f"{site}/private/{n}")


def every_kind() -> Tally:
    """One site for each thing that a table shows."""
    tally = Tally()
    for n in range(60):
        obeyed(tally, site_named(n), allowed=n + 1)
    refused(tally, site_named(1), 5, "Disallow: /private/", 12)
    refused(tally, site_named(2), 6, "Disallow: /*.pdf", 2)
    refused(tally, site_named(3), 2, "Disallow: /", 7)
    tally.row(site_named(2))["looser"] = 3
    for n in range(3):
        tally.hazard(site_named(2), "order", 4, "Disallow: /b", "2: Allow: /")
        tally.sample(site_named(2), "hazard", 4, f"{site_named(2)}/b/{n}")
    tally.row(site_named(4)).update(redirect="http://www.site4.example/robots.txt", delay="5")
    tally.row(site_named(5)).update(nofollow=4, noindex=1)
    tally.sample(site_named(5), "nofollow", 0, f"{site_named(5)}/page")
    tally.row("http://closed.example").update(
        outcome=int(Standing.RESTRICTED), status=403, asked=1, answered=1, refused_restricted=3,
        start_refused=1, expires=NOW + 3600, bytes=0,
    )  # fmt: skip
    tally.sample("http://closed.example", "restricted", 0, "http://closed.example/a")
    tally.sample("http://closed.example", START, 0, "http://closed.example/a")
    tally.row("http://down.example").update(
        outcome=int(Standing.UNAVAILABLE), status=503, asked=4, reason="HTTP 503",
        deferred=NOW - 500, resumed=0, deferrals=1, refused_unavailable=2, given_up=1,
    )  # fmt: skip
    tally.row("http://bare.example").update(
        outcome=int(Standing.WITHOUT_ROBOTS_TXT), status=404, asked=1, allowed_none=9
    )
    tally.row("http://page.example").update(
        outcome=int(Standing.HTML), status=200, asked=1, allowed_html=2, cut=1
    )
    tally.row("http://asked.example").update(asked=1)
    tally.failures["HTTP 503"] = 4
    tally.minute.update(asked=65, answered=63, deferred=1)
    return tally


def written(
    path: Path, tally: Tally, *, now: float = NOW, about: Mapping[str, Any] = ABOUT
) -> Path:
    """A file with these counts."""
    writer = Writer(str(path))
    added = {"agree": 90, "stricter": 2, "looser": 1}
    writer.write(tally, now=now, about=about.items(), added=added)
    writer.close()
    return path


def page_of(folder: Path, tally: Tally, *, robots: bytes | None = ROBOTS, **options: Any) -> Path:
    """The page of these counts, where each site has this file."""
    database = written(folder / "report.sqlite3", tally)
    page = folder / "page.html"
    write_page(str(database), str(page), files=lambda _: robots, **options)
    return page
