"""Crawl-delay: who waits for it, and what it costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from crawls import CRAWL, settings_of
from report import Table
from web import Web

PACED, HEALTHY, PLACES = 40, 8, 16
PAGE_SECS, WINDOW_SECS = 0.2, 12.0
SHORT_SECS, SHORT_WINDOW_SECS = 1, 60.0
HOSTS, IDLE_SECS = 10_000, 10.0
PAGES, SITES = 5_000, 100
START_SECS = 120.0
OBEY = {"KOSTER_CRAWL_DELAY": "obey"}


def tables(rounds: int) -> Iterator[Table]:
    yield _beside()
    yield _pages()
    yield _cost(max(5, rounds // 3))
    yield _many()


@contextmanager
def _running(urls: list[str], settings: Mapping[str, Any]) -> Iterator[subprocess.Popen[str]]:
    with tempfile.TemporaryDirectory() as folder:
        given = {"KOSTER_SQLITE_PATH": str(Path(folder, "robots.sqlite3")), **settings}
        process = subprocess.Popen(
            [sys.executable, "-c", CRAWL],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(
            json.dumps({"urls": urls, "settings": {**settings_of("ours"), **given}})
        )
        process.stdin.close()
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _until(condition: Any, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + START_SECS
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError("the crawl did not get there")
        time.sleep(0.01)


def _healthy_pages(value: str) -> int:
    """Crawl all sites with that KOSTER_CRAWL_DELAY."""
    with closing(Web(page_secs=PAGE_SECS)) as web:
        sites = [web.site(number) for number in range(HEALTHY + PACED)]
        web.delays = {_host(site): 10.0 for site in sites[HEALTHY:]}
        urls = [f"{site}/page/{page}" for page in range(200) for site in sites]
        settings = {"KOSTER_CRAWL_DELAY": value, "CONCURRENT_REQUESTS": PLACES}
        with _running(urls, settings) as process:
            _until(lambda: web.pages, process)
            time.sleep(WINDOW_SECS)
            return sum(web.pages[_host(site)] for site in sites[:HEALTHY])


def _beside() -> Table:
    ignored, obeyed = _healthy_pages("ignore"), _healthy_pages("obey")
    share = obeyed / ignored
    return Table(
        f"{PACED} sites with a Crawl-delay of 10 s beside {HEALTHY} without, {PLACES} places",
        ("KOSTER_CRAWL_DELAY", f"pages of the {HEALTHY} sites in {WINDOW_SECS:g} s"),
        [("ignore", f"{ignored}"), ("obey", f"{obeyed} ({share:.1%})")],
        f"A page takes {PAGE_SECS:g} s.",
        [f"at least 99 %: {share:.1%}"] if share < 0.99 else [],
    )


def _pages() -> Table:
    with closing(Web(page_secs=0.05)) as web:
        sites = [web.site(number) for number in range(PACED)]
        web.delays = {_host(site): float(SHORT_SECS) for site in sites}
        urls = [f"{site}/page/{page}" for page in range(80) for site in sites]
        with _running(urls, {**OBEY, "CONCURRENT_REQUESTS": PLACES}) as process:
            _until(lambda: len(web.visits) == PACED, process)
            began = time.monotonic()
            time.sleep(SHORT_WINDOW_SECS)
            end = time.monotonic()
        visits = {host: [at for at in times if at <= end] for host, times in web.visits.items()}
    gaps = [b - a for times in visits.values() for a, b in pairwise(times)]
    shares = [(len(times) - 1) / int((end - times[0]) / SHORT_SECS) for times in visits.values()]
    unmet = (
        [f"no gap is shorter by 10 ms: {min(gaps):.3f}"] if min(gaps) < SHORT_SECS - 0.01 else []
    )
    if min(shares) < 0.9:
        unmet.append(f"each site gets 90 % of what it allows: {min(shares):.1%}")
    return Table(
        f"{PACED} sites with a Crawl-delay of {SHORT_SECS} s, {SHORT_WINDOW_SECS:g} s",
        (
            "gaps",
            "shortest, s",
            "median",
            "of the pages that the delay allows, the site with least",
        ),
        [(f"{len(gaps):,}", f"{min(gaps):.3f}", f"{median(gaps):.3f}", f"{min(shares):.1%}")],
        f"Measured by the server, {end - began:.0f} s. The first visit is that to /robots.txt.",
        unmet,
    )


def _cost(rounds: int) -> Table:
    taken: dict[str, list[float]] = {"ignore": [], "obey": []}
    with closing(Web()) as web:
        urls = [f"{web.site(n % SITES)}/page/{n}" for n in range(PAGES)]
        for _ in range(rounds):
            for value, secs in taken.items():
                secs.append(_cpu_of_whole(urls, {"KOSTER_CRAWL_DELAY": value}))
    ratio = median(a / b for a, b in zip(taken["obey"], taken["ignore"], strict=True))
    return Table(
        f"A crawl of {PAGES:,} pages of {SITES} sites that ask for no delay",
        ("KOSTER_CRAWL_DELAY", "CPU s"),
        [(value, f"{median(secs):.2f}") for value, secs in taken.items()],
        f"Obeying costs {ratio:.3f} times the CPU, the median of {rounds} pairs.",
        [f"at most 1.01: {ratio:.3f}"] if ratio > 1.01 else [],
    )


def _cpu_of_whole(urls: list[str], settings: Mapping[str, Any]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        given = {"KOSTER_SQLITE_PATH": str(Path(folder, "robots.sqlite3")), **settings}
        done = subprocess.run(
            [sys.executable, "-c", CRAWL],
            input=json.dumps({"urls": urls, "settings": {**settings_of("ours"), **given}}),
            capture_output=True,
            text=True,
            check=True,
        )
    return float(json.loads(done.stdout)["cpu"])


def _many() -> Table:
    with closing(Web()) as web:
        sites = [web.site(number) for number in range(HOSTS)]
        web.delays = {_host(site): 3600.0 for site in sites}
        urls = [f"{site}/page" for site in sites]
        settings = {**OBEY, "KOSTER_CRAWL_DELAY_MAX_SECS": 3600, "CONCURRENT_REQUESTS": 64}
        with _running(urls, settings) as process:
            _until(lambda: len(web.robots) == HOSTS, process)
            time.sleep(15)  # the pages are parked by then
            before = _cpu_secs(process)
            time.sleep(IDLE_SECS)
            share = (_cpu_secs(process) - before) / IDLE_SECS
    return Table(
        f"{HOSTS:,} hosts that wait for their next visit",
        ("CPU while waiting",),
        [(f"{share:.2%}",)],
        "",
        [f"less than 1 % of CPU: {share:.2%}"] if share >= 0.01 else [],
    )


def _host(site: str) -> str:
    return site.removeprefix("http://").partition(":")[0]


def _cpu_secs(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
