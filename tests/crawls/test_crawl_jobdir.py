"""JOBDIR: what waits for its site is there for the next run, however this one ends."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl
from harness.jobs import ALL, FOLLOWED, OPEN, Job
from harness.replies import Reply
from harness.server import Server


@pytest.fixture
def job(tmp_path: Path, crawl: Crawl) -> Iterator[Job]:
    job = Job(tmp_path, crawl)
    yield job
    job.end_all()


PAGES = 200
KILLED_RUNS = int(os.environ.get("KILLED_RUNS", "4"))


@pytest.mark.promise("docs/access.md", "waiting requests survive kill -9")
@pytest.mark.long
@pytest.mark.bound(120)
@pytest.mark.parametrize("run", range(KILLED_RUNS))
async def test_what_is_parked_survives_kill_9_at_any_time(
    job: Job, server: Server, crawl: Crawl, run: int
) -> None:
    await killed_at(job, server, crawl, random.Random(run).uniform(0, 4))


async def killed_at(job: Job, server: Server, crawl: Crawl, secs: float) -> None:
    """None is lost and none is fetched twice, whichever way they came."""
    site = server.site()
    site.robots = Reply(503)
    start = FOLLOWED if secs > 2 else ALL
    process = job.start(site.urls(PAGES), start=start)
    await job.until_parked()
    await crawl.sleep(secs)
    job.end(process, signal.SIGKILL)
    assert site.pages_asked == []
    site.robots = OPEN
    log = job.run([])
    assert f"when the last run ended, and wait again: {PAGES}" in log
    assert Counter(site.pages_asked) == Counter(f"/page{n}" for n in range(PAGES))
    assert "wait again: " not in job.run([])
    assert len(site.pages_asked) == PAGES


@pytest.mark.promise("docs/access.md", "waiting requests survive Ctrl-C")
@pytest.mark.parametrize(
    "start",
    [pytest.param(ALL, id="start"), pytest.param(FOLLOWED, id="followed", marks=pytest.mark.long)],
)
async def test_stopped_resumed_and_killed_while_parked(
    job: Job, server: Server, crawl: Crawl, start: str
) -> None:
    """In between they were in Scrapy's own queue on disk, which a kill leaves as it was."""
    site = server.site()
    site.robots = ""
    site.pages(Reply(body="page", delay=0.5))
    few: dict[str, Any] = {
        "CONCURRENT_REQUESTS": 2,
        "KOSTER_EXPIRY_SECS": 1,
        "KOSTER_EXPIRY_MIN_SECS": 0,
    }
    process = job.start(site.urls(40), start=start, **few)
    await crawl.until(lambda: site.pages_asked)
    site.robots = Reply(503)
    job.end(process, signal.SIGINT)
    asked = site.asked("/robots.txt")
    process = job.start([], **few)
    await job.until_parked()
    await crawl.until(lambda: site.asked("/robots.txt") > asked)
    await crawl.sleep(0.2)  # else its claim outlives it by KOSTER_TIMEOUT_SECS and 5 s
    job.end(process, signal.SIGKILL)
    site.robots = OPEN
    site.pages(Reply(body="page"))
    job.run([])
    pages = Counter(site.pages_asked)
    assert set(pages) == {f"/page{n}" for n in range(40)}
    assert set(pages.values()) == {1}


@pytest.mark.promise("docs/access.md", "they are not crawled twice")
async def test_start_urls_that_wait_already_are_not_fetched_twice(
    job: Job, server: Server, crawl: Crawl
) -> None:
    """A spider yields them in each run."""
    site = server.site()
    site.robots = Reply(503)
    process = job.start(site.urls(20))
    await job.until_parked()
    job.end(process, signal.SIGKILL)
    site.robots = OPEN
    job.run(site.urls(21))
    assert Counter(site.pages_asked) == Counter(f"/page{n}" for n in range(21))


@pytest.mark.promise("docs/access.md", "Requests that cannot be pickled wait in memory")
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "SIGINT"])
async def test_what_cannot_be_written_is_lost_alone(
    job: Job, server: Server, sent: signal.Signals
) -> None:
    site = server.site()
    site.robots = Reply(503)
    start = """for url in self.urls:
            yield Request(url, callback=(lambda response: None) if url.endswith("7") else None)"""
    process = job.start(site.urls(20), start=start)
    await job.until_parked()
    log = job.end(process, sent)
    said = "Those that cannot be written there: 2" in log
    assert said is (sent is signal.SIGINT)  # who is killed says nothing
    site.robots = OPEN
    job.run([])
    lost = {"/page7", "/page17"}
    assert Counter(site.pages_asked) == Counter({f"/page{n}" for n in range(20)} - lost)


@pytest.mark.promise("docs/access.md", "If the file cannot be written, you get one warning")
async def test_a_disk_that_becomes_full_is_one_warning(
    job: Job, server: Server, crawl: Crawl
) -> None:
    """Once all of them wait: before, Scrapy's own queue could write nothing either."""
    site = server.site()
    site.robots = Reply(503)
    full = "resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))"
    process = job.start(site.urls(50), parked=full)
    await job.until_parked()
    asked = site.asked("/robots.txt")
    await crawl.until(lambda: site.asked("/robots.txt") > asked + 1)
    site.robots = OPEN
    log = job.end(process)
    assert Counter(site.pages_asked) == Counter(f"/page{n}" for n in range(50))
    assert log.count("kept in memory only") == 1


@pytest.mark.promise("docs/access.md", "waiting requests are kept for the next run")
@pytest.mark.parametrize("sent", [None, signal.SIGINT], ids=["idle limit", "SIGINT"])
async def test_what_still_waits_is_there_for_the_next_run(
    job: Job, server: Server, crawl: Crawl, sent: signal.Signals | None
) -> None:
    site = server.site()
    site.robots = Reply(503)
    process = job.start(site.urls(12), KOSTER_IDLE_LIMIT_SECS=100 if sent else 2)
    await job.until_parked()
    log = job.end(process, sent)
    assert "Requests that still wait for their site: 12, of 1 sites." in log
    assert "kept for the next run: start the same crawl again to go on" in log
    assert f"Sites with the most: {site.url('')} (12)" in log
    assert "'koster/parked': 12" in log
    assert f"'finish_reason': '{'shutdown' if sent else 'robotstxt_waiting'}'" in log
    assert "Requests refused: 0, still waiting: 12. Copies of robots.txt" in log
    assert "robotstxt/forbidden" not in log
    assert "Giving up" not in log
    site.robots = OPEN
    job.run([])
    assert Counter(site.pages_asked) == Counter(f"/page{n}" for n in range(12))


async def test_what_the_next_run_would_not_have_is_refused(
    job: Job, server: Server, crawl: Crawl
) -> None:
    """Scrapy's own scheduler crawls what cannot be pickled before it ends, from memory."""
    site = server.site()
    site.robots = Reply(503)
    start = """for n, url in enumerate(self.urls):
            refused = lambda failure: print("refused", failure.request.url)
            yield Request(url, errback=refused if n % 2 else None)"""
    log = job.run(site.urls(6), start=start, KOSTER_IDLE_LIMIT_SECS=1)
    assert "Requests that still wait for their site: 3, of 1 sites." in log
    assert "'koster/deferred/dropped': 3" in log
    site.robots = OPEN
    job.run([])
    assert Counter(site.pages_asked) == Counter(f"/page{n}" for n in (0, 2, 4))


@pytest.mark.promise("docs/access.md", "A run with ROBOTSTXT_OBEY = False ignores the file")
async def test_without_obedience_what_waited_is_crawled(
    job: Job, server: Server, crawl: Crawl
) -> None:
    site = server.site()
    site.robots = Reply(503)
    job.run(site.urls(5), KOSTER_IDLE_LIMIT_SECS=1)
    scheduler = {"SCHEDULER": "scrapy_koster.DeferringScheduler", "ADDONS": {}}
    job.run([], ROBOTSTXT_OBEY=False, **scheduler)
    assert Counter(site.pages_asked) == Counter(f"/page{n}" for n in range(5))
