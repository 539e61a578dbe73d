"""(f): what the report of a crawl costs: to collect, to keep, to make and to look at."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from crawls import CRAWL, OURS, PAGES, settings_of
from report import Table
from web import Web

from scrapy_koster.protocol.site_status import SiteStatus
from scrapy_koster.report.database import Writer
from scrapy_koster.report.tally import Tally

SITES = 100
NOW = 1_795_000_000
BATCH = 2_000
COUNTS = (100, 100_000, 1_000_000)
MAKE = """
import json, resource, sys, time
from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.report.page import write_page
began = time.perf_counter()
body = b"User-agent: *\\nDisallow: /private/\\n" * 20
copy = CachedRobots("http://a.example/robots.txt", 200, body, None, None, 0.0, 0.0)
write_page(sys.argv[1], sys.argv[2], copies=lambda site: copy)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"secs": time.perf_counter() - began, "peak": peak}))
"""


def tables(rounds: int) -> Iterator[Table]:
    yield _collecting(max(5, rounds // 3))
    yield _keeping()
    yield _making()


def _collecting(rounds: int) -> Table:
    web = Web()
    taken: dict[bool, list[float]] = {False: [], True: []}
    for n in range(rounds):
        for reports in (False, True) if n % 2 else (True, False):
            with tempfile.TemporaryDirectory() as folder:
                taken[reports].append(_crawl(web, folder, reports=reports))
    web.close()
    ratio = median(b / a for a, b in zip(taken[False], taken[True], strict=True))
    rows = [
        (name, f"{median(secs):.2f}", f"{(max(secs) - min(secs)) / median(secs):.0%}", times)
        for name, secs, times in (
            ("without KOSTER_REPORT", taken[False], "1"),
            ("with it", taken[True], f"{ratio:.3f}"),
        )
    ]
    return Table(
        f"A crawl of {PAGES:,} pages of {SITES:,} sites with a report, CPU seconds",
        ("", "s", "spread", "times that without"),
        rows,
        "The page that is made at the end is a part of it.",
        [] if ratio <= 1.02 else [f"2 % of the CPU: {ratio - 1:.1%}"],
    )


def _crawl(web: Web, folder: str, *, reports: bool) -> float:
    urls = [f"{web.site(n % SITES)}/page/{n}" for n in range(PAGES)]
    settings = {**settings_of(OURS), "KOSTER_SQLITE_PATH": str(Path(folder, "robots.sqlite3"))}
    if reports:
        settings["KOSTER_REPORT"] = str(Path(folder, "page.html"))
    asked = json.dumps({"urls": urls, "settings": settings})
    done = subprocess.run(
        [sys.executable, "-c", CRAWL], input=asked, capture_output=True, text=True, check=True
    )
    if reports and not Path(folder, "page.html").exists():
        raise RuntimeError(done.stderr)
    return float(json.loads(done.stdout)["cpu"])


def _keeping() -> Table:
    rows, unmet = [], []
    for count in (10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "report.sqlite3")
            tracemalloc.start()
            filled(path, count)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            size = path.stat().st_size / count
        rows.append((f"{count:,}", f"{size:.0f}", f"{peak / 1e6:.1f}"))
        unmet += [f"250 bytes a site: {size:.0f}"] if size > 250 else []
        unmet += [f"5 MB of memory: {peak / 1e6:.1f}"] if peak > 5e6 else []
    return Table(
        "The file of a report, and what is kept in memory while it is written",
        ("sites", "bytes a site", "MB"),
        rows,
        f"Every third site has a line that refused; samples are a part of it. {BATCH:,} sites are"
        " written at once.",
        unmet,
    )


def _making() -> Table:
    rows, unmet = [], []
    for count in COUNTS:
        with tempfile.TemporaryDirectory() as folder:
            database, page = Path(folder, "report.sqlite3"), Path(folder, "page.html")
            filled(database, count)
            made = subprocess.run(
                [sys.executable, "-c", MAKE, str(database), str(page)],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            found, size = json.loads(made.stdout), page.stat().st_size
            opens, filters = _looked_at(page)
        secs, peak = found["secs"], found["peak"]
        rows.append(
            (f"{count:,}", f"{secs:.1f}", f"{peak:.0f}", f"{size / 1000:,.0f}",
             f"{opens:.2f}", f"{1000 * filters:.0f}")
        )  # fmt: skip
        for what, value, most in (
            ("made in 60 s", secs, 60),
            ("300 MB", peak, 300 if count == 1_000_000 else float("inf")),
            ("the page in MB", size / 1e6, 0.25 if count == 100 else 5),
            ("opens in 2 s", opens, 2),
            ("filters in 0.2 s", filters, 0.2),
        ):  # fmt: skip
            unmet += [f"{count:,} sites: {what}: {value:.2f}"] if value > most else []
    return Table(
        "The page of a report, in Chromium",
        ("sites", "made in s", "MB of memory", "kB of page", "opens in s", "filters in ms"),
        rows,
        "Beyond 100,000 sites the page shows 10,000, and all of them are written as CSV.",
        unmet,
    )


def _looked_at(page: Path) -> tuple[float, float]:
    """Return how long the page takes to open and to filter, in seconds; nan without Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return float("nan"), float("nan")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        began = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready]")
        opens = time.perf_counter() - began
        tab.wait_for_timeout(1000)  # who looks at it needs longer
        filters = tab.evaluate(
            """() => {
                const input = document.getElementById("q-sites");
                const began = performance.now();
                input.value = "stone-9";
                input.dispatchEvent(new Event("input"));
                document.body.offsetHeight;
                return (performance.now() - began) / 1000;
            }"""
        )
        browser.close()
    return opens, float(filters)


# Sites as they may come.


def filled(path: Path, count: int) -> None:
    """Write a report of so many sites."""
    chance, writer, tally = random.Random(1), Writer(str(path)), Tally()
    for number in range(count):
        _add(tally, number, chance)
        if len(tally.rows["site"]) >= BATCH:
            writer.write(tally)
    about = {"title": "Crawl of web", "robot": "figtree", "written": NOW, "started": NOW - 3600}
    for name, value in about.items():
        tally.put("about", name, value=value)
    writer.write(tally)
    writer.close()


def _add(tally: Tally, number: int, chance: random.Random) -> None:
    words = chance.choice(("river", "stone", "market", "forum", "archive"))
    site = f"https://www.{chance.choice(('blue', 'green', 'old'))}-{words}-{number}.example"
    row = tally.rows["site"].setdefault((site,), {})
    row.update(asked=1, fetched=NOW - chance.randrange(900_000), expires=NOW + 600_000)
    kind = number % 20
    if kind < 13:
        row.update(outcome=int(SiteStatus.OBEYED), status=200, answered=1, fetches=1, record_line=1)
        row.update(
            record="*",
            bytes=chance.randrange(30, 9000),
            digest=f"sha256:{chance.getrandbits(256):064x}",
        )
        row["allowed_rule"] = chance.randrange(1, 60)
        if kind < 7:
            _refuse(tally, site, chance)
    elif kind < 18:
        row.update(outcome=int(SiteStatus.WITHOUT_ROBOTS_TXT), status=404, answered=1, fetches=1)
        row["allowed_none"] = chance.randrange(1, 60)
    elif kind == 18:
        row.update(outcome=int(SiteStatus.RESTRICTED), status=403, answered=1, refused_restricted=2)
        tally.add("rule", site, 0, "", "restricted", refused=2)
        tally.put("sample", site, "restricted", 0, 0, url=f"{site}/")
    else:
        row.update(outcome=int(SiteStatus.UNAVAILABLE), status=503, reason="HTTP 503", given_up=1)
        tally.add("failure", "HTTP 503", attempts=1)


def _refuse(tally: Tally, site: str, chance: random.Random) -> None:
    line = chance.randrange(2, 40)
    for n in range(chance.randrange(1, 6)):
        tally.add("site", site, refused_rule=1)
        tally.add("rule", site, line, f"Disallow: /private{line}/", "rule", refused=1)
        url = f"{site}/private/page-{chance.randrange(10**6)}.html"
        tally.put("sample", site, "rule", line, n, url=url)
