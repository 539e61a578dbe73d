"""(d) and (e): whole crawls, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from report import Table
from web import Web

PAGES = 5_000
SITES = (1, 100, 2_000)
WINDOW_SECS = 10.0
OFF, OURS, SCRAPYS = "obeys nothing", "ours", "Scrapy's"
AGAIN = "ours, second run"
OBEYING: Mapping[str, Mapping[str, Any]] = {
    OFF: {"ROBOTSTXT_OBEY": False},
    OURS: {"ADDONS": {"scrapy_koster.Addon": 500}},
    SCRAPYS: {"ROBOTSTXT_OBEY": True},
}
CRAWL = """
import json, sys, time
from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess

arguments = json.loads(sys.stdin.read())

class Many(Spider):
    name = "many"

    async def start(self):
        for url in arguments["urls"]:
            yield Request(url)

    def parse(self, response):
        pass

process = CrawlerProcess(arguments["settings"])
crawler = process.create_crawler(Many)
process.crawl(crawler)
began = time.process_time()
process.start()
pages = crawler.stats.get_value("response_received_count", 0)
print(json.dumps({"cpu": time.process_time() - began, "pages": pages}))
"""


def tables(rounds: int) -> Iterator[Table]:
    yield from _whole(max(3, rounds // 5))
    yield _hanging()


def _whole(rounds: int) -> Iterator[Table]:
    for count in SITES:
        web = Web()
        taken: dict[str, list[float]] = {OFF: [], OURS: [], AGAIN: [], SCRAPYS: []}
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                for name, obeying in ((OFF, OFF), (OURS, OURS), (AGAIN, OURS), (SCRAPYS, SCRAPYS)):
                    web.robots.clear()
                    taken[name].append(_crawl(web, count, obeying, folder))
                    _check(name, count, sum(web.robots.values()))
        web.close()
        plain = taken[OFF]
        rows = [
            (
                name,
                f"{median(secs):.2f}",
                f"{(max(secs) - min(secs)) / median(secs):.0%}",
                f"{median(a / b for a, b in zip(secs, plain, strict=True)):.3f}",
            )
            for name, secs in taken.items()
        ]
        yield Table(
            f"A crawl of {PAGES:,} pages of {count:,} sites, CPU seconds of its process",
            ("robots.txt", "s", "spread", "times that which obeys nothing"),
            rows,
            "The second run finds the copies of the first in the storage.",
        )


def _crawl(web: Web, sites: int, obeying: str, folder: str) -> float:
    urls = [f"{web.site(n % sites)}/page/{n}" for n in range(PAGES)]
    settings = {**settings_of(obeying), "KOSTER_SQLITE_PATH": str(Path(folder, "robots.sqlite3"))}
    if obeying != OURS:
        del settings["KOSTER_SQLITE_PATH"]
    asked = json.dumps({"urls": urls, "settings": settings})
    done = subprocess.run(
        [sys.executable, "-c", CRAWL], input=asked, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    # Scrapy counts the robots.txt that its own middleware fetches as pages.
    if found["pages"] < PAGES:
        raise RuntimeError(f"{obeying}: {found['pages']} of {PAGES} pages\n{done.stderr}")
    return float(found["cpu"])


def settings_of(obeying: str) -> dict[str, Any]:
    return {
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "CONCURRENT_REQUESTS": 32,
        "CONCURRENT_ITEMS": 1,
        **OBEYING[obeying],
    }


def _check(name: str, sites: int, asked: int) -> None:
    wanted = {OFF: 0, OURS: sites, AGAIN: 0, SCRAPYS: sites}[name]
    if asked != wanted:
        raise RuntimeError(f"{name}: {asked} requests for robots.txt, not {wanted}")


def _hanging() -> Table:
    rows = []
    unmet: Sequence[str] = ()
    for name in (OURS, SCRAPYS):
        alone, beside = _window(name, hangs=False), _window(name, hangs=True)
        rows.append((name, f"{alone:,}", f"{beside:,}", f"{beside / alone:.1%}"))
        if name == OURS and beside < 0.95 * alone:
            unmet = ["95 % of the pages of the control run"]
    return Table(
        f"One of five sites never answers /robots.txt: pages of the others in {WINDOW_SECS:.0f} s",
        ("robots.txt", "without it", "with it", "kept"),
        rows,
        "200 requests to the site that hangs, CONCURRENT_REQUESTS 16, pages that take 200 ms.",
        unmet,
    )


def _window(obeying: str, *, hangs: bool) -> int:
    """Return how many pages the healthy sites have served at the end of the window."""
    web = Web(page_secs=0.2)
    hanging = web.site(4)
    if hangs:
        web.hanging.add(hanging.split("/")[2].partition(":")[0])
    sites = [web.site(n) for n in range(4)] + ([hanging] if hangs else [])
    urls = [f"{site}/page/{n}" for n in range(200) for site in sites]
    settings = {**settings_of(obeying), "CONCURRENT_REQUESTS": 16}
    if obeying == OURS:
        settings["KOSTER_STORAGE"] = "scrapy_koster.storage.memory.MemoryStorage"
    with subprocess.Popen(
        [sys.executable, "-c", CRAWL],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"urls": urls, "settings": settings}))
        process.stdin.close()
        while not web.pages:
            if process.poll() is not None:
                raise RuntimeError("the crawl ended before its first page")
            time.sleep(0.01)
        time.sleep(WINDOW_SECS)
        pages = sum(web.pages.values())
        process.kill()
    web.close()
    return pages
