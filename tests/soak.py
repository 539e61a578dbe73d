"""A crawl of many sites that fail as the real web does, killed and begun again: `make soak`.

    python tests/soak.py --requests 1000000 --sites 20000

Each request has a number, and ends in one of three ways: the server has sent its page, it was
refused (the spider writes this down), or it waits in the JOBDIR. A signal may only lose requests
that were in flight or in Scrapy's own queue: the next run asks for them again. The crawl is a
process of its own, of this file: `python tests/soak.py --run FILE`.

TMPDIR=/dev/shm is several times faster on a machine whose folders are slow: Scrapy's queue makes
and removes a folder for nearly each request.
"""

from __future__ import annotations

import argparse
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.clocks import sleep
from harness.manysites import ManySites
from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from twisted.python.failure import Failure

QUEUED = 1_000
"""How many requests Scrapy's own queue has at most."""
PLACES = 64
LOST_AT_MOST = QUEUED + PLACES + 500
"""With one signal. The scheduler parks at most 500 at once, which need not be written yet."""
STUCK_SECS = 120.0
ASKED, FORBIDDEN, UNAVAILABLE = "A", "RobotsForbidden", "RobotsUnavailable"
ENDS = (
    (0.1, signal.SIGKILL),
    (0.2, signal.SIGKILL),
    (0.3, signal.SIGINT),
    (0.4, signal.SIGKILL),
)
"""The signals of a soak, and the part of all pages that has been sent by then."""
SETTINGS: dict[str, Any] = {
    "ADDONS": {"scrapy_koster.Addon": 500},
    "CONCURRENT_REQUESTS": PLACES,
    "CONCURRENT_ITEMS": 1,
    "JOBDIR": "job",
    "KOSTER_TIMEOUT_SECS": 4,
    "KOSTER_DEFER_FIRST_SECS": 1,
    "KOSTER_DEFER_LIMIT_SECS": 30,
    "KOSTER_IDLE_LIMIT_SECS": 5,
    "KOSTER_SQLITE_PATH": "robots.sqlite3",
    "LOG_LEVEL": "ERROR",
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
}


class Feeding(Spider):
    """Asks for the pages of a file, no faster than they are fetched."""

    name = "soak"
    file: Path

    async def start(self) -> AsyncIterator[Request]:
        engine: Any = self.crawler.engine
        for line in self.file.read_text().splitlines():
            while len(engine._slot.scheduler._scheduler) > QUEUED:
                await sleep(0.02)
            number, url = line.split()
            self._write(ASKED, number)
            yield Request(url, dont_filter=True, errback=self.refused, cb_kwargs={"n": number})

    def parse(self, response: Any, n: str) -> None:
        """The server has counted it."""

    def refused(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]  # set by Scrapy
        self._write(type(failure.value).__name__, request.cb_kwargs["n"])

    def _write(self, what: str, number: str) -> None:
        with open("outcomes", "a") as outcomes:  # noqa: PTH123
            outcomes.write(f"{what} {number}\n")


def crawl(file: Path) -> None:
    process = AsyncCrawlerProcess(SETTINGS)
    process.crawl(type("Soak", (Feeding,), {"file": file}))
    process.start()


@dataclass
class Soak:
    """How all requests ended, and each promise that was not kept."""

    fetched: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    parked: int = 0
    kept: list[int] = field(default_factory=list)
    """How many requests waited in the file at each signal."""
    lost: list[int] = field(default_factory=list)
    """How many were in flight, or in Scrapy's own queue."""
    wrong: list[str] = field(default_factory=list)


class Counting:
    """Starts one run after another, and accounts for each request."""

    def __init__(self, web: ManySites, folder: Path) -> None:
        self.soak = Soak()
        self._web, self._folder = web, folder
        self._outcomes = folder / "outcomes"
        self._outcomes.touch()
        self._again: list[int] = []

    def run(self, until: float, sent: signal.Signals | None) -> None:
        """Crawl on, and send the signal once this part of all pages has been sent."""
        fed = self._ended(ASKED)
        new = (n for page in range(self._web.pages) for n in self._web.numbers(page) if not fed[n])
        lines = (f"{number} {self._web.url(number)}\n" for number in (*self._again, *new))
        (self._folder / "file").write_text("".join(lines))
        process = subprocess.Popen(
            [sys.executable, __file__, "--run", "file"], stderr=subprocess.PIPE, cwd=self._folder
        )
        self._again = []
        try:
            if sent is not None:
                self._watch(process, int(until * self._web.count))
                process.send_signal(sent)
            _, said = process.communicate()
        finally:
            process.kill()
        if sent is not signal.SIGKILL and (said or process.returncode):
            self.soak.wrong.append(f"status {process.returncode}: {said.decode()}")
        if sent is not None:
            self._after(sent)

    def _watch(self, process: subprocess.Popen[bytes], until: int) -> None:
        answered, moved = 0, time.monotonic()
        while process.poll() is None and self._web.answered < until:
            if self._web.answered > answered:
                answered, moved = self._web.answered, time.monotonic()
            if time.monotonic() - moved > STUCK_SECS:
                self.soak.wrong.append(f"nothing was fetched for {STUCK_SECS:.0f} s")
                return
            time.sleep(0.05)

    def _after(self, sent: signal.Signals) -> None:
        """Ask again for what the signal has lost."""
        while self._web.connections:  # the server reads what the process had sent
            time.sleep(0.02)
        fed, ended, parked = self._ended(ASKED), self._ended(), self._parked()
        self._again = [n for n in fed if not (self._web.hits[n] or ended[n] or parked[n])]
        self.soak.kept.append(parked.total())
        self.soak.lost.append(len(self._again))
        if len(self._again) > LOST_AT_MOST:
            self.soak.wrong.append(f"{len(self._again)} requests were lost with {sent!r}")
        # A kill can leave anything of Scrapy's own queue.
        shutil.rmtree(self._folder / "job" / "requests.queue", ignore_errors=True)

    def _ended(self, *kinds: str) -> Counter[int]:
        """Return how often each request was refused; with *kinds*, how often one was written."""
        wanted = kinds or (FORBIDDEN, UNAVAILABLE)
        return Counter(number for kind, number in self._lines() if kind in wanted)

    def _lines(self) -> Iterator[tuple[str, int]]:
        for line in self._outcomes.read_text().splitlines():
            kind, _, number = line.partition(" ")
            yield kind, int(number)

    def _parked(self) -> Counter[int]:
        """Return how often each request waits in the JOBDIR: in a copy, the last run may go on."""
        found: Counter[int] = Counter()
        with TemporaryDirectory() as folder:
            for path in (self._folder / "job").glob("koster-parked.sqlite3*"):
                shutil.copy(path, folder)
            with closing(sqlite3.connect(Path(folder, "koster-parked.sqlite3"))) as file:
                for (data,) in file.execute("SELECT request FROM parked"):
                    found[int(pickle.loads(data)["cb_kwargs"]["n"])] += 1
        return found

    def account(self) -> None:
        """Look at each request once all runs have ended."""
        soak, web, ended, parked = self.soak, self._web, self._ended(), self._parked()
        soak.parked = parked.total()
        for number in range(web.count):
            hits = web.hits[number]
            soak.fetched += bool(hits)
            if hits + ended[number] + parked[number] != 1:
                soak.wrong.append(
                    f"{web.url(number)}: fetched {hits} times, refused {ended[number]} times,"
                    f" waits {parked[number]} times"
                )
            if hits and not web.may_be_fetched(number):
                soak.wrong.append(f"{web.url(number)}: was fetched")
        for kind, number in self._lines():
            if kind == ASKED:
                continue
            soak.refused[kind] += 1
            if kind != (UNAVAILABLE if web.kind(number).fails else FORBIDDEN):
                soak.wrong.append(f"{web.url(number)}: {kind}")


def soak(requests: int, sites: int, ends: Sequence[tuple[float, signal.Signals]] = ENDS) -> Soak:
    """Crawl, send the signals, and return how all requests ended."""
    with (
        TemporaryDirectory() as folder,
        ManySites(sites=sites, pages=requests // sites) as web,
    ):
        counting = Counting(web, Path(folder))
        for part, sent in ends:
            counting.run(part, sent)
        counting.run(1, None)
        counting.account()
    return counting.soak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--sites", type=int, default=20_000)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        crawl(options.run)
        return 0
    found = soak(options.requests, options.sites)
    sys.stdout.writelines(f"{name}: {value}\n" for name, value in vars(found).items())
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
