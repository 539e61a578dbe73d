"""A crawl of many sites that fail as the real web does, killed and begun again: `make soak`.

    python tests/soak.py --requests 1000000 --sites 20000

Each request has a number, and ends in one of three ways: its page was asked for (the server's own
count says so), it was refused (the spider writes that down), or it waits in the JOBDIR. After a
kill it is looked for there, and none may be missing but those that were in flight or in Scrapy's
own queue; these are asked for again. A run that is stopped by SIGINT loses none. The crawl is a
process of its own, of this file: `python tests/soak.py --run FILE`.

All files are in the folder for temporary ones: TMPDIR=/dev/shm is several times faster where
folders are slow, since Scrapy's queue makes and removes one for nearly each request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pickle
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.clocks import sleep
from harness.manysites import ManySites
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from twisted.python.failure import Failure

from scrapy_koster import RobotsForbidden, RobotsUnavailable

QUEUED = 1_000
"""How many requests Scrapy's own queue has at most."""
PLACES = 64
LOST_AT_MOST = QUEUED + PLACES + 500
"""With one kill. The scheduler parks at most 500 at once, which need not be written yet."""
STUCK_SECS = 120.0
STOP_SECS = 60.0
KINDS = {RobotsForbidden.__name__: b"F", RobotsUnavailable.__name__: b"U"}
SETTINGS: dict[str, Any] = {
    "ADDONS": {"scrapy_koster.Addon": 500},
    "CONCURRENT_REQUESTS": PLACES,
    "CONCURRENT_ITEMS": 1,
    "KOSTER_TIMEOUT_SECS": 4,
    "KOSTER_DEFER_FIRST_SECS": 1,
    "KOSTER_DEFER_LIMIT_SECS": 30,
    "KOSTER_IDLE_LIMIT_SECS": 5,
    "KOSTER_MEMORY_SITES": 2_000,
    "KOSTER_STORAGE": "scrapy_koster.storage.sqlite.SQLiteStorage",
    "LOG_LEVEL": "WARNING",
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
}


# The process that crawls.


class Feeding(Spider):
    """Asks for pages by their numbers, no faster than they are fetched."""

    name = "soak"
    task: Task

    async def start(self) -> AsyncIterator[Request]:
        for position, number, url in self.task.pages():
            while self._queued() > QUEUED:
                await sleep(0.02)
            os.pwrite(self.task.position, struct.pack("q", position), 0)
            yield Request(url, dont_filter=True, errback=self.refused, cb_kwargs={"n": number})

    def _queued(self) -> int:
        slot: Any = self.crawler.engine._slot
        return len(slot.scheduler._scheduler)

    def parse(self, response: Any, n: int) -> None:
        """The server has counted it."""

    def refused(self, failure: Failure) -> None:
        kind = KINDS.get(type(failure.value).__name__, b"X")
        request: Request = failure.request  # type: ignore[attr-defined]  # set by Scrapy
        os.write(self.task.outcomes, b"%c%d\n" % (kind, request.cb_kwargs["n"]))


class Task:
    """What one run is to do."""

    def __init__(self, path: Path) -> None:
        given = json.loads(path.read_text())
        self.position = os.open(given["position"], os.O_WRONLY)
        self.outcomes = os.open(given["outcomes"], os.O_WRONLY | os.O_APPEND)
        self.report = Path(given["report"])
        self.settings: dict[str, Any] = given["settings"]
        self._begin: int = given["begin"]
        self._again: list[int] = given["again"]
        sites, hanging = given["sites"], given["hanging"]
        self._web = ManySites(sites=sites, pages=given["pages"], hanging=hanging)
        self._web.port, self._web.refusing_port = given["ports"]

    def pages(self) -> Iterator[tuple[int, int, str]]:
        """Yield how far in their order this has come, the number of a page, and its URL."""
        for number in self._again:
            yield self._begin, number, self._web.url(number)
        rest = islice(self._web.interleaved(), self._begin, None)
        for position, number in enumerate(rest, self._begin + 1):
            yield position, number, self._web.url(number)


def crawl(path: Path) -> None:
    """Do what the file says, and write down what is left afterwards."""
    from twisted.internet import asyncioreactor

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    asyncioreactor.install(loop)  # type: ignore[no-untyped-call]
    from scrapy.utils.defer import deferred_from_coro
    from scrapy.utils.log import configure_logging
    from twisted.internet import reactor

    task = Task(path)
    configure_logging(task.settings)
    running: Any = reactor

    async def run() -> None:
        from harness.loops import _pending

        before, files = _pending(), _open_files()
        crawler = Crawler(type("Soak", (Feeding,), {"task": task}), task.settings)
        signal.signal(
            signal.SIGINT,
            lambda *_: running.callFromThread(lambda: deferred_from_coro(crawler.stop_async())),
        )
        await crawler.crawl_async()
        end = time.monotonic() + 5
        while (_pending() - before or _open_files() - files) and time.monotonic() < end:
            await sleep(0.05)
        left = {
            "timers and tasks": [repr(each) for each in _pending() - before],
            "files": sorted(_open_files() - files),
            "log": _surprises(Path(task.settings["LOG_FILE"]).read_text()),
        }
        task.report.write_text(json.dumps(left))

    def begin() -> None:
        deferred_from_coro(run()).addErrback(_tell).addBoth(lambda _: running.stop())

    running.callWhenRunning(begin)
    running.run(installSignalHandlers=False)


def _surprises(log: str) -> str:
    """Return the warnings and errors, but for that of the sites that are closed on purpose."""
    lines = log.splitlines(keepends=True)
    return "".join(line for line in lines if "WARNING: Closed sites at the end" not in line)


def _tell(failure: Failure) -> None:
    failure.printTraceback(sys.stderr)


def _open_files() -> set[str]:
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{each.name}: {each.readlink()}")
        except FileNotFoundError:
            continue  # that of the listing itself
    return found


# The process that counts.


@dataclass
class Sample:
    """The crawl at one moment."""

    ended: int
    run: int
    secs: float
    resident_mb: float
    files: int


@dataclass
class Soak:
    """What came of all runs."""

    requests: int
    sites: int
    fetched: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    parked: int = 0
    lost: list[int] = field(default_factory=list)
    """With each kill: in flight, or in Scrapy's own queue."""
    kept: list[int] = field(default_factory=list)
    """What waited in the file at each kill."""
    leaked: int = 0
    """Pages fetched that are forbidden, or of sites whose robots.txt could not be had."""
    twice: int = 0
    wrong: list[str] = field(default_factory=list)
    """Each way in which a promise was not kept."""
    samples: list[Sample] = field(default_factory=list)
    secs: float = 0.0

    @property
    def growth_mb(self) -> float:
        """How much the last run grew by, from its second sample to its last."""
        last = [each for each in self.samples if each.run == self.samples[-1].run][1:]
        return last[-1].resident_mb - last[0].resident_mb if last else 0.0

    def __str__(self) -> str:
        head = f"{self.requests:,} requests to {self.sites:,} sites in {self.secs:,.0f} s"
        ways = ", ".join(f"{count:,} {name}" for name, count in sorted(self.refused.items()))
        rows = [
            f"| {s.ended:,} | {s.run} | {s.secs:,.0f} | {s.resident_mb:.0f} | {s.files} |"
            for s in self.samples
        ]
        return "\n".join(
            [
                f"{head}: {self.fetched:,} fetched, {ways}, {self.parked:,} wait in the JOBDIR",
                f"leaked: {self.leaked}, fetched twice: {self.twice}",
                f"waited in the file at each kill: {self.kept}",
                f"in flight or in Scrapy's own queue then, asked for again: {self.lost}",
                "| requests ended | run | s | MB | open files |",
                "|---:|---:|---:|---:|---:|",
                *rows,
                *(f"NOT KEPT: {each}" for each in self.wrong),
            ]
        )


class Counting:
    """Starts one run after another, and accounts for each request."""

    def __init__(self, web: ManySites, pages: int, folder: Path, soak: Soak) -> None:
        self._web, self._pages, self._folder, self.soak = web, pages, folder, soak
        self._job = folder / "job"
        self._outcomes = folder / "outcomes"
        self._outcomes.touch()
        self._read = 0
        self._refused = bytearray(web.count)
        self._refusals = 0
        self._position = folder / "position"
        self._position.write_bytes(struct.pack("q", 0))
        self._order = list(web.interleaved())
        self._again: list[int] = []
        self._run = 0
        self._began = time.monotonic()

    def run(self, until: int, sent: signal.Signals | None) -> None:
        """Crawl on; once so many requests have ended send it the signal (None: it may end)."""
        self._run += 1
        report = self._folder / f"report-{self._run}"
        process = self._start(report)
        try:
            self._watch(process, until if sent is not None else self._web.count + 1)
            if sent is not None:
                process.send_signal(sent)
            _, said = process.communicate(timeout=STOP_SECS)
        finally:
            process.kill()
            process.wait()
        self._quiet()
        if sent is signal.SIGKILL:
            self._after_a_kill()
            return
        self._again = []
        self._check_report(report, said.decode(errors="replace"))

    def _start(self, report: Path) -> subprocess.Popen[bytes]:
        given = {
            "sites": self._web.sites,
            "hanging": self._web.hanging,
            "pages": self._pages,
            "ports": [self._web.port, self._web.refusing_port],
            "position": str(self._position),
            "outcomes": str(self._outcomes),
            "report": str(report),
            "begin": self._fed(),
            "again": self._again,
            "settings": {
                **SETTINGS,
                "JOBDIR": str(self._job),
                "KOSTER_SQLITE_PATH": str(self._folder / "robots.sqlite3"),
                "LOG_FILE": str(self._folder / f"log-{self._run}"),
            },
        }
        task = self._folder / f"task-{self._run}"
        task.write_text(json.dumps(given))
        command = [sys.executable, __file__, "--run", str(task)]
        return subprocess.Popen(command, stderr=subprocess.PIPE, cwd=self._folder)

    def _watch(self, process: subprocess.Popen[bytes], until: int) -> None:
        step = max(self._web.count // 10, 1)
        ended, moved = self._ended(), time.monotonic()
        while process.poll() is None:
            now = self._ended()
            if now // step > ended // step or now >= until:
                self._sample(process, now)
            if now >= until:
                return
            if now > ended:
                ended, moved = now, time.monotonic()
            if time.monotonic() - moved > STUCK_SECS:
                self.soak.wrong.append(f"run {self._run} stands still")
                process.send_signal(signal.SIGABRT)
                return
            time.sleep(0.05)

    def _sample(self, process: subprocess.Popen[bytes], ended: int) -> None:
        proc = Path(f"/proc/{process.pid}")
        try:
            pages = int((proc / "statm").read_text().split()[1])
            files = len(list((proc / "fd").iterdir()))
        except OSError:
            return  # it has just ended
        resident = pages * os.sysconf("SC_PAGESIZE") / 2**20
        secs = time.monotonic() - self._began
        self.soak.samples.append(Sample(ended, self._run, secs, resident, files))
        _say(f"{ended:,} ended, run {self._run}, {secs:,.0f} s, {resident:.0f} MB")

    def _ended(self) -> int:
        with self._outcomes.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.split():
            self._refusals += 1
            self._note_refused(line[:1].decode(), int(line[1:]))
        return self._web.answered + self._refusals

    def _note_refused(self, kind: str, number: int) -> None:
        self._refused[number] += 1
        failed = self._web.kind(number).fails
        ok = kind == ("U" if failed else "F") and not self._web.may_be_fetched(number)
        if not ok:
            self.soak.wrong.append(f"{self._web.url(number)} was refused: {kind}")
        name = {"F": "forbidden", "U": "of sites that could not be asked"}.get(kind, "otherwise")
        self.soak.refused[name] += 1

    def _quiet(self) -> None:
        """Until the server has read all that the process had sent."""
        end = time.monotonic() + STOP_SECS
        while self._web.connections and time.monotonic() < end:
            time.sleep(0.02)
        self._ended()

    def _fed(self) -> int:
        (position,) = struct.unpack("q", self._position.read_bytes())
        return int(position)

    def _after_a_kill(self) -> None:
        parked = self._parked()
        self._again = [
            number
            for number in self._order[: self._fed()]
            if not (self._web.hits[number] or self._refused[number] or parked[number])
        ]
        self.soak.kept.append(parked.total())
        self.soak.lost.append(len(self._again))
        if len(self._again) > LOST_AT_MOST:
            self.soak.wrong.append(f"{len(self._again)} requests were lost with run {self._run}")
        # What a kill leaves of Scrapy's own queue may be anything: these are asked for again.
        shutil.rmtree(self._job / "requests.queue", ignore_errors=True)

    def _parked(self) -> Counter[int]:
        """How often each page waits in the file of the JOBDIR, which is looked at in a copy."""
        found: Counter[int] = Counter()
        if not list(self._job.glob("koster-parked.sqlite3")):
            return found
        with TemporaryDirectory() as folder:
            for path in self._job.glob("koster-parked.sqlite3*"):
                shutil.copy(path, folder)
            with closing(sqlite3.connect(Path(folder, "koster-parked.sqlite3"))) as file:
                for (data,) in file.execute("SELECT request FROM parked"):
                    found[pickle.loads(data)["cb_kwargs"]["n"]] += 1
        return found

    def _check_report(self, report: Path, said: str) -> None:
        if not report.exists():
            self.soak.wrong.append(f"run {self._run} ended without a word: {said}")
            return
        left = json.loads(report.read_text())
        for name in ("timers and tasks", "files", "log"):
            if left[name]:
                self.soak.wrong.append(f"run {self._run}: {name}: {left[name]}")

    def account(self) -> None:
        """Look at each request once all runs have ended."""
        soak, web, parked = self.soak, self._web, self._parked()
        soak.parked = parked.total()
        for number in range(web.count):
            hits = web.hits[number]
            soak.fetched += bool(hits)
            soak.twice += hits > 1
            soak.leaked += bool(hits) and not web.may_be_fetched(number)
            if bool(hits) + self._refused[number] + parked[number] != 1:
                soak.wrong.append(
                    f"{web.url(number)}: asked for {hits} times, refused {self._refused[number]}"
                    f" times, waits {parked[number]} times"
                )
        if soak.leaked or soak.twice:
            soak.wrong.append(f"{soak.leaked} pages leaked, {soak.twice} fetched twice")
        kills = self._run
        often = [n for n, asked in web.robots.items() if self._is_good(n) and asked > kills]
        if often:
            soak.wrong.append(f"sites asked more than once a run: {len(often)}")
        soak.secs = time.monotonic() - self._began

    def _is_good(self, site: int) -> bool:
        return not self._web.kind(site * self._pages).fails


ENDS = (
    (0.1, signal.SIGKILL),
    (0.2, signal.SIGKILL),
    (0.3, signal.SIGINT),
    (0.4, signal.SIGKILL),
)
"""Of a soak: when which part of all requests has ended. The last run ends by itself."""


def soak(
    requests: int,
    sites: int,
    ends: Sequence[tuple[float, signal.Signals]] = ENDS,
    *,
    hanging: int = 4,
) -> Soak:
    """Of 100 sites so many are *hanging*."""
    pages = requests // sites
    found = Soak(pages * sites, sites)
    many = ManySites(sites=sites, pages=pages, hanging=hanging)
    with TemporaryDirectory() as folder, many as web:
        counting = Counting(web, pages, Path(folder), found)
        for part, sent in ends:
            counting.run(int(part * web.count), sent)
        counting.run(web.count, None)
        counting.account()
    return found


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--sites", type=int, default=20_000)
    parser.add_argument("--hanging", type=int, default=4, help="of 100 sites, 50 at most")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        crawl(options.run)
        return 0
    found = soak(options.requests, options.sites, hanging=options.hanging)
    _say(str(found))
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
