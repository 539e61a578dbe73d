"""Faults of the process that crawls: signals, kills, the folder it is started in."""

from __future__ import annotations

import re
import signal
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.crawling import Crawl, reactor_settings
from harness.jobs import OPEN, Job
from harness.replies import Reply
from harness.server import Server, Site

PAGES = 20
_ERROR_OF_OURS = r"\[scrapy_koster\S*\] ERROR|File .*/scrapy_koster/"
"""Scrapy may stumble over its own set of crawls when it is stopped."""
NO_JOBDIR: dict[str, Any] = {"JOBDIR": None}


class Process:
    """A crawl in a process, of a site that fails at first."""

    def __init__(self, server: Server, crawl: Crawl, folder: Path) -> None:
        self.crawl = crawl
        self.folder = folder
        self.site: Site = server.site()
        self.site.robots = Reply(503)
        self.urls = self.site.urls(PAGES)
        self._job = Job(folder, crawl)

    async def parked(self, **settings: Any) -> subprocess.Popen[str]:
        """Start it, until all its requests wait."""
        process = self.start(self.urls, **settings)
        await self._job.until_parked()
        return process

    def start(self, urls: list[str], **settings: Any) -> subprocess.Popen[str]:
        return self._job.start(urls, **{**reactor_settings(), **settings})

    def end(self, process: subprocess.Popen[str], sent: signal.Signals | None = None) -> str:
        return self._job.end(process, sent)

    def goes_on(self) -> None:
        """The next run, once the site answers, fetches each page once, of all that waited."""
        assert self.site.pages_asked == []
        self.site.robots = OPEN
        self.end(self.start([]))
        assert Counter(self.site.pages_asked) == Counter(f"/page{n}" for n in range(PAGES))


@dataclass(frozen=True)
class ProcessFault:
    name: str
    promised: str
    run: Callable[[Process], Awaitable[None]]
    group: str = "the process"


def _resumed(sent: signal.Signals) -> Callable[[Process], Awaitable[None]]:
    async def run(crawl: Process) -> None:
        crawl.end(await crawl.parked(), sent)
        crawl.goes_on()

    return run


async def _sigint_alone(crawl: Process) -> None:
    log = crawl.end(await crawl.parked(**NO_JOBDIR), signal.SIGINT)
    assert crawl.site.pages_asked == []
    assert not re.search(_ERROR_OF_OURS, log), log


async def _stopped_for_a_while(crawl: Process) -> None:
    process = await crawl.parked()
    process.send_signal(signal.SIGSTOP)
    crawl.site.robots = OPEN
    await crawl.crawl.sleep(1)
    process.send_signal(signal.SIGCONT)
    crawl.end(process)
    assert Counter(crawl.site.pages_asked) == Counter(f"/page{n}" for n in range(PAGES))


_NONE_LOST = "the next run fetches each waiting page once"
FAULTS = (
    ProcessFault("SIGINT", "the crawl ends; no page of the site was fetched", _sigint_alone),
    ProcessFault("SIGTERM, with a JOBDIR", _NONE_LOST, _resumed(signal.SIGTERM)),
    ProcessFault("kill -9, with a JOBDIR", _NONE_LOST, _resumed(signal.SIGKILL)),
    ProcessFault(
        "SIGSTOP, later SIGCONT",
        "the crawl goes on; each page is fetched once",
        _stopped_for_a_while,
    ),
)
