"""Runs a plan: its sites, its processes, and what happens to them."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.redis_server import redis_server
from typing_extensions import Self

from random_crawls.oracle import Oracle
from random_crawls.plan import TIMEOUT_SECS, Plan, Run
from random_crawls.web import Visit, Web

CRAWLED = Path(__file__).with_name("crawled.py")
PYTHON = os.environ.get("CRAWLED_PYTHON", sys.executable)
ENDS_SECS = 20.0
LOOK_SECS = 0.2
SETTINGS: dict[str, Any] = {
    "ADDONS": {"scrapy_koster.Addon": 500},
    "USER_AGENT": "figtree/1.0 (+http://127.0.0.1/)",
    "LOG_LEVEL": "INFO",
    "RETRY_GIVE_UP_LOG_LEVEL": "DEBUG",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "FILES_STORE": "files",
    "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1, "__main__.Blocking": 2},
    "DOWNLOADER_MIDDLEWARES": {"__main__.Turning": 950},
    "KOSTER_SQLITE_PATH": "robots.sqlite3",
}
OF_SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
}


@dataclass
class Worker:
    """One process: what it wrote, and how it ended."""

    run: int
    pid: int
    pipes: list[asyncio.StreamReader]
    events: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    """Its log."""
    status: int | None = None
    """Its exit status, None while it runs."""
    is_late: bool = False
    """Whether it had to be ended."""
    began: float = field(default_factory=time.time)
    ended: float = 0.0
    looks: list[tuple[float, float, float]] = field(default_factory=lambda: [(0.0, 0.0, 0.0)])
    """Times, and for how many seconds it had run and waited for a processor by then."""

    @property
    def stats(self) -> dict[str, Any]:
        return next((each["stats"] for each in self.events if each["event"] == "ended"), {})

    def send(self, number: signal.Signals) -> None:
        if self.status is None:
            os.kill(self.pid, number)

    async def watch(self) -> None:
        """Keep what it writes, up to its end."""
        out, errors, told = self.pipes
        log = asyncio.create_task(errors.read())
        async for line in out:
            with suppress(ValueError):  # a last line that was cut by a kill
                self.events.append(json.loads(line))
        self.text = (await log).decode(errors="replace")
        (status,) = struct.unpack("i", await told.readexactly(4))
        self.status, self.ended = os.waitstatus_to_exitcode(status), time.time()

    def is_over(self, bound: float) -> bool:
        """Return whether it runs longer than this. Time without a processor counts half."""
        with suppress(OSError):  # Linux only
            ran, waited, _ = map(int, Path(f"/proc/{self.pid}/schedstat").read_text().split())
            self.looks.append((time.time(), ran / 1e9, waited / 1e9))
        bound += min(bound, self.looks[-1][2])
        return self.status is None and time.time() - self.began > bound

    @property
    def is_starved(self) -> bool:
        """Whether it had less than an eighth of a processor for half of a time limit."""
        return any(
            waited - before[2] > max(TIMEOUT_SECS / 2, 7 * (ran - before[1]))
            for at, ran, waited in self.looks
            for before in self.looks
            if 0 < at - before[0] < TIMEOUT_SECS
        )


class Forks:
    """Starts all processes, forked from one that has imported Scrapy."""

    def __enter__(self) -> Self:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            command = [PYTHON, "-W", "ignore", str(CRAWLED), str(number)]
            self._server = subprocess.Popen(command, pass_fds=[number])
        return self

    def __exit__(self, *_error: object) -> None:
        self._ours.close()
        self._server.wait(ENDS_SECS)

    async def start(self, run: int, file: Path, **environment: str) -> Worker:
        pipes = [os.pipe() for _ in range(3)]
        message = json.dumps([str(file), environment]).encode()
        socket.send_fds(self._ours, [message], [writing for _, writing in pipes])
        for _, writing in pipes:
            os.close(writing)
        readers = [await _reader(reading) for reading, _ in pipes]
        (pid,) = struct.unpack("i", await readers[2].readexactly(4))
        return Worker(run, pid, readers)


async def _reader(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=1 << 24)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(fd, "rb"))
    return reader


@dataclass
class Course:
    """What happened."""

    plan: Plan
    web: Web
    workers: list[Worker] = field(default_factory=list)
    signals: dict[int, float] = field(default_factory=dict)
    """When the event of each run came."""

    @property
    def visits(self) -> list[Visit]:
        return self.web.visits

    def starved(self, run: int, begin: float, end: float) -> float:
        """Return how long the processes of a run could not run, or blocked, at most."""
        found = 0.0
        for worker in self.workers:
            if worker.run == run:
                inside = [waited for at, _, waited in worker.looks if at <= end + LOOK_SECS]
                before = [waited for at, _, waited in worker.looks if at <= begin - LOOK_SECS]
                found += inside[-1] - max(before, default=0.0)
                for event in worker.events:
                    if event["event"] == "blocks":
                        found += max(0.0, min(event["until"], end) - max(event["at"], begin))
        return found


async def crawl(plan: Plan, folder: Path, forks: Forks) -> Course:
    """Run all runs of this plan, one after the other."""
    with redis_server() if plan.storage == "redis" else nullcontext() as redis:
        async with Web(plan) as web:
            course = Course(plan, web)
            for number, run in enumerate(plan.runs):
                web.run, web.healed = number, number > 0
                await asyncio.sleep(run.wait)
                if run.proxy == "alive":
                    await web.proxy_lives()
                told = _told(plan, web, redis.url() if redis else "")
                await _one_run(course, run, told, folder, forks)
                web.proxy_dies()
            return course


async def _one_run(
    course: Course, run: Run, told: dict[str, Any], folder: Path, forks: Forks
) -> None:
    web, bound = course.web, Oracle(course.plan).bound_secs(course.web.run)
    proxy = {"http_proxy": f"http://127.0.0.1:{web.proxy_port}", "no_proxy": ""}
    workers = list[Worker]()
    for number in range(run.workers):
        file = folder / f"{web.run}.{number}"
        file.write_text(json.dumps(told), "utf-8")
        workers.append(await forks.start(web.run, file, **(proxy if run.proxy else {})))
    course.workers += workers
    watching = asyncio.gather(*(worker.watch() for worker in workers))
    event = asyncio.create_task(_happen(course, run, workers))
    try:
        while not watching.done():
            await asyncio.wait([watching], timeout=LOOK_SECS)
            for worker in workers:
                if worker.is_over(bound):
                    worker.is_late = True
                    worker.send(signal.SIGKILL)
    finally:
        event.cancel()
        for worker in workers:
            worker.send(signal.SIGKILL)
    await watching
    with suppress(asyncio.CancelledError):
        await event


def _told(plan: Plan, web: Web, redis: str) -> dict[str, Any]:
    """Return what a process is told."""
    settings = SETTINGS | plan.settings
    if plan.reactor == "default":
        settings["TWISTED_REACTOR"] = "twisted.internet.epollreactor.EPollReactor"
    settings["TWISTED_REACTOR_ENABLED"] = plan.reactor != "none"
    name = {"sqlite": "SQLite", "redis": "Redis", "memory": "Memory"}[plan.storage]
    settings["KOSTER_STORAGE"] = f"scrapy_koster.storage.{plan.storage}.{name}Storage"
    if redis:
        settings |= {"KOSTER_REDIS_URL": redis, "REDIS_URL": redis}
    if plan.shared_queue:
        settings |= OF_SCRAPY_REDIS
    return {
        "settings": settings,
        "starts": [(web.url(page), secs) for page, secs in plan.starts],
        "sitemap": web.site_url(0) + "/sitemap.xml",
        "idle": [web.url(page) for page in plan.idle],
        "turned": {web.url(page): web.url(other) for page, other in plan.turned},
        **{name: getattr(plan, name) for name in ("spider", "retries", "block")},
    }


async def _happen(course: Course, run: Run, workers: list[Worker]) -> None:
    """Let the event of this run come when it is due."""
    web = course.web
    awaited = {(site.number, True) for site in course.plan.sites if site.until_event} | {(0, False)}
    while not awaited <= {(v.site, v.is_robots) for v in web.visits if v.run == web.run}:
        await asyncio.sleep(0.02)
    await asyncio.sleep(run.after)
    if run.event:
        course.signals[web.run] = time.time()
    if run.event == "proxy dies":
        web.proxy_dies()
    for worker in workers:
        if run.event == "kill":
            worker.send(signal.SIGKILL)
        elif run.event == "disk is full" and worker.status is None:
            resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (0, 0))
        elif run.event.startswith("int"):
            worker.send(signal.SIGINT)
    if run.event == "int twice":
        await asyncio.sleep(1.0)
        for worker in workers:
            worker.send(signal.SIGINT)
