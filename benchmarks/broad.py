"""A broad crawl: sites that fail as the real web does, beside Scrapy's own middleware and none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from crawls import CRAWL
from manysites import Kind, ManySites, kind_of
from report import Table

SITES, PAGES = 600, 6
PLACES = 64
ANSWER_SECS = 0.2
CAP_SECS = 60.0
LONGER_SECS = 3.0
"""How long leaks are looked for once all that may be fetched has been."""
START_SECS = 20.0
NOTHING, OURS, SCRAPYS = "obeys nothing, and is given those pages alone", "ours", "Scrapy's"
OBEYING: Mapping[str, Mapping[str, Any]] = {
    NOTHING: {"ROBOTSTXT_OBEY": False},
    OURS: {"ADDONS": {"scrapy_koster.Addon": 500}},
    SCRAPYS: {"ROBOTSTXT_OBEY": True},
}


class Found(NamedTuple):
    """What came of one crawl."""

    secs: float
    cpu_secs: float
    fetched: int
    wanted: int
    leaked: int
    """Pages that the rules, or a 403, forbid."""
    unknown: int
    """Pages of sites whose robots.txt could not be had."""


def tables(rounds: int) -> Iterator[Table]:
    for by_site in (True, False):
        yield _table(SITES, PAGES, max(3, rounds // 5), by_site=by_site)


def _table(sites: int, pages: int, rounds: int, *, by_site: bool) -> Table:
    found: dict[str, list[Found]] = {NOTHING: [], OURS: [], SCRAPYS: []}
    found[SCRAPYS].append(_crawl(SCRAPYS, sites, pages, by_site=by_site))
    for _ in range(rounds):
        for name in (NOTHING, OURS):
            found[name].append(_crawl(name, sites, pages, by_site=by_site))
    shares = {kind: sum(kind_of(n) is kind for n in range(sites)) for kind in Kind}
    told = ", ".join(f"{count} {kind.value}" for kind, count in shares.items())
    return Table(
        f"A broad crawl: {sites:,} sites, {found[OURS][0].wanted:,} pages that may be fetched,"
        f" {PLACES} places, {'site by site' if by_site else 'a page of each site in turn'}",
        (
            *("robots.txt", "seconds until all are", "of CPU", "fetched by then", "leaked"),
            "of sites that could not be asked",
        ),
        [_row(name, each) for name, each in found.items()],
        f"What the sites do when asked for their robots.txt: {told}. An answer takes"
        f" {ANSWER_SECS:g} s. A crawl is given up after {CAP_SECS:.0f} s; leaked are pages that the"
        " rules or a 403 forbid. Medians; the settings are the default ones.",
        list(_unmet(found, by_site=by_site)),
    )


def _row(name: str, found: Sequence[Found]) -> tuple[str, ...]:
    secs, least = median(each.secs for each in found), min(each.fetched for each in found)
    whole = least == found[0].wanted
    return (
        name,
        f"{secs:.1f}" if whole else f"more than {secs:.0f}",
        f"{median(each.cpu_secs for each in found):.1f}",
        f"{least / found[0].wanted:.0%}" if whole else f"{least:,}",
        f"{max(each.leaked for each in found)}",
        f"{max(each.unknown for each in found)}",
    )


def _unmet(found: Mapping[str, Sequence[Found]], *, by_site: bool) -> Iterator[str]:
    ratio = median(a.secs / b.secs for a, b in zip(found[OURS], found[NOTHING], strict=True))
    if ratio > 1.15:
        yield f"at most 1.15 times that which obeys nothing: {ratio:.2f}"
    times = found[SCRAPYS][0].secs / median(each.secs for each in found[OURS])
    # In turn not even a crawl that obeys nothing is: Scrapy's takes 4.3 times as long as that.
    if by_site and times < 5:
        yield f"at least 5 times faster than Scrapy's: {times:.1f}"
    if any(each.leaked or each.unknown for each in found[OURS]):
        yield "no page is leaked"


def _crawl(obeying: str, sites: int, pages: int, *, by_site: bool) -> Found:
    with (
        tempfile.TemporaryDirectory() as folder,
        ManySites(sites=sites, pages=pages, answer_secs=ANSWER_SECS) as web,
    ):
        numbers = list(range(web.count))
        if not by_site:  # the first page of each site, then the second of each, and so on
            numbers = [number for page in range(pages) for number in numbers[page::pages]]
        wanted = [number for number in numbers if web.may_be_fetched(number)]
        if obeying == NOTHING:
            numbers = wanted
        process = _started(web, numbers, obeying, folder)
        try:
            secs = _watched(web, wanted, process)
            cpu_secs = _cpu_secs(process)
            time.sleep(LONGER_SECS)
        finally:
            process.kill()
            process.wait()
        hit = [number for number in range(web.count) if web.hits[number]]
        outside = [web.kind(number).fails for number in hit if not web.may_be_fetched(number)]
        fetched = len(hit) - len(outside)
        return Found(
            secs, cpu_secs, fetched, len(wanted), outside.count(False), outside.count(True)
        )


def _started(
    web: ManySites, numbers: Sequence[int], obeying: str, folder: str
) -> subprocess.Popen[str]:
    settings: dict[str, Any] = {
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "CONCURRENT_REQUESTS": PLACES,
        "CONCURRENT_ITEMS": 1,
        **OBEYING[obeying],
    }
    if obeying == OURS:
        settings["KOSTER_SQLITE_PATH"] = str(Path(folder, "robots.sqlite3"))
    process = subprocess.Popen(
        [sys.executable, "-c", CRAWL],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    urls = [web.url(number) for number in numbers]
    process.stdin.write(json.dumps({"urls": urls, "settings": settings}))
    process.stdin.close()
    return process


def _cpu_secs(process: subprocess.Popen[str]) -> float:
    """Return what a process has used so far, the time to start included."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _watched(web: ManySites, wanted: Sequence[int], process: subprocess.Popen[str]) -> float:
    """Return how long it took from the first connection until all wanted pages were asked for."""
    end = time.monotonic() + START_SECS
    while not (web.connections or web.answered):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError("the crawl does not begin")
        time.sleep(0.002)
    began = time.monotonic()
    while (passed := time.monotonic() - began) < CAP_SECS:
        if web.answered >= len(wanted) and all(web.hits[number] for number in wanted):
            return passed
        time.sleep(0.02)
    return CAP_SECS
