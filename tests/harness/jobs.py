"""A crawl with a JOBDIR, whose runs are processes that a test may kill."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

from harness import forks
from harness.crawling import Crawl
from harness.replies import Reply

SCRIPT = """
import resource
from pathlib import Path

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.utils.asyncio import call_later

class Waiting(Spider):
    name = "waiting"
    urls = {urls!r}

    async def start(self):
        call_later(0.05, self.look)
        {start}

    def look(self):
        # Once all of them wait, the test is told.
        if len(self.crawler.engine._slot.scheduler._parked) >= max(1, len(set(self.urls))):
            Path("parked").touch()
            {parked}
        else:
            call_later(0.05, self.look)

    def follow(self, response):
        held_back = response.meta.get("held back", True)
        for url in self.urls:
            yield Request(url, meta={{"dont_obey_robotstxt": not held_back}})

    def parse(self, response):
        pass

settings = {settings!r}
has_reactor = settings.get("TWISTED_REACTOR_ENABLED", True)
process = (CrawlerProcess if has_reactor else AsyncCrawlerProcess)(settings)
process.crawl(Waiting)
process.start()
"""
ALL = """for url in self.urls:
            yield Request(url)"""
FOLLOWED = """if self.urls:
            yield Request("data:,x", callback=self.follow)"""
OPEN = Reply(body="User-agent: *\nDisallow: /no\n")


class Crawls:
    """Crawls of one test, each a process of its own."""

    def __init__(self, folder: Path, crawl: Crawl) -> None:
        self.folder = folder
        self._crawl = crawl
        self._processes: list[subprocess.Popen[str]] = []

    def start_script(self, code: str) -> subprocess.Popen[str]:
        script = self.folder / f"crawl{len(self._processes)}.py"
        script.write_text(code)
        process = forks.start(script, cwd=self.folder)
        self._processes.append(process)
        return process

    def end(self, process: subprocess.Popen[str], sent: signal.Signals | None = None) -> str:
        """Wait for its end; return its log."""
        if sent is not None:
            process.send_signal(sent)
        _, log = process.communicate(timeout=forks.ENDS_SECS)
        assert process.returncode == (-9 if sent is signal.SIGKILL else 0), log
        return log

    def end_all(self) -> None:
        """Whatever a test that failed has left."""
        for process in self._processes:
            process.kill()
            process.communicate()


class Job(Crawls):
    """A crawl with a JOBDIR, run again and again."""

    def start(
        self, urls: list[str], *, start: str = ALL, parked: str = "", **settings: Any
    ) -> subprocess.Popen[str]:
        """Run a crawl that yields by `start`, and runs `parked` once all of that waits."""
        (self.folder / "parked").unlink(missing_ok=True)
        code = SCRIPT.format(
            urls=urls,
            start=start,
            parked=parked,
            settings={
                "ADDONS": {"scrapy_koster.Addon": 500},
                "JOBDIR": str(self.folder / "job"),
                "KOSTER_SQLITE_PATH": str(self.folder / "robots.sqlite3"),
                "KOSTER_DEFER_FIRST_SECS": 0.5,
                "KOSTER_DEFER_MAX_SECS": 0.5,
                # One that is killed while it asks has claimed the site for 5 s longer.
                "KOSTER_TIMEOUT_SECS": 5,
                "TELNETCONSOLE_ENABLED": False,
                "LOG_LEVEL": "INFO",
                **settings,
            },
        )
        return self.start_script(code)

    async def until_parked(self) -> None:
        """Until all its requests wait, or, where it asks for none, those of the last run."""
        await self._crawl.until((self.folder / "parked").exists)

    def run(self, urls: list[str], **arguments: Any) -> str:
        return self.end(self.start(urls, **arguments))
