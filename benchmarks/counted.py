"""What a page of a known site costs, counted in instructions: no other process disturbs that.

CPU time differs by several per cent from crawl to crawl, this by few in a thousand. A crawl takes
more than ten times as long meanwhile.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

from first_contact import AGAIN, NOTHING, SQLITE, Crawls
from healthy import HealthySites
from report import Table

FEW, MANY = 300, 2_000
"""Pages of two crawls, whose difference is that of their pages: each starts and ends but once."""
PER_SITE = 50
LIMIT = 1.05
WITHOUT = "ours, without its spider middlewares"
SETTINGS: dict[str, dict[str, Any]] = {
    NOTHING: {},
    WITHOUT: {
        "SPIDER_MIDDLEWARES": {
            "scrapy_koster.RobotsMetaMiddleware": None,
            "scrapy_koster.UsageMiddleware": None,
        }
    },
    AGAIN: {},
}


def tables(rounds: int) -> Iterator[Table]:
    if which("valgrind"):
        yield _pages(max(3, rounds // 5))


def _pages(rounds: int) -> Table:
    with tempfile.TemporaryDirectory() as folder, HealthySites() as web:
        crawls = Crawls(Path(folder), None)
        known = crawls.settings(SQLITE)
        crawls.run(web, _urls(web, MANY), known)

        def counted(name: str, pages: int) -> int:
            obeying = crawls.settings(NOTHING) if name == NOTHING else known
            settings = obeying | SETTINGS[name] | {"DOWNLOAD_TIMEOUT": 3_600}
            found = crawls.run(web, _urls(web, pages), settings, counts=True)
            instructions: int = found["instructions"]
            return instructions

        jobs = [(name, pages) for name in SETTINGS for pages in (FEW, MANY)]
        found = [{job: counted(*job) for job in jobs} for _ in range(rounds)]
    lowest = {job: min(each[job] for each in found) for job in jobs}
    costs = {name: (lowest[name, MANY] - lowest[name, FEW]) / (MANY - FEW) for name in SETTINGS}
    times = {name: cost / costs[NOTHING] for name, cost in costs.items()}
    return Table(
        f"A page of a known site, {PER_SITE} pages a site: instructions, counted by valgrind",
        ("robots.txt", "millions a page", "times nothing"),
        [(name, f"{costs[name] / 1e6:.2f}", f"{times[name]:.3f}") for name in SETTINGS],
        f"Of each crawl the lowest of {rounds} rounds: some take as much as 40 pages more.",
        [f"at most {LIMIT} times the instructions"] if times[AGAIN] > LIMIT else [],
    )


def _urls(web: HealthySites, pages: int) -> list[str]:
    return [web.url(number % (pages // PER_SITE), number) for number in range(pages)]
