"""JOBDIR: what waits for its site is there for the next run, however this one ends."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl, CrawlResult, Leads, RecordingSpider, Running
from harness.replies import Reply
from harness.server import Server, Site
from scrapy import Request
from scrapy.core.scheduler import Scheduler

OPEN = Reply(body="User-agent: *\nDisallow: /no\n")


@pytest.fixture
def jobdir(tmp_path: Path) -> dict[str, Any]:
    """Settings of a crawl that a next run resumes."""
    jobdir = str(tmp_path / "job")
    return {"JOBDIR": jobdir, "KOSTER_DEFER_FIRST_SECS": 0.5, "KOSTER_DEFER_MAX_SECS": 0.5}


class Unpickled(RecordingSpider):
    """Each other request has an errback that cannot be pickled."""

    async def start(self) -> Any:
        for number, url in enumerate(self.urls):
            given = {"errback": lambda failure: self.fail(failure) or []} if number % 2 else {}
            yield self.ask(url, **given)


async def ended(crawl: Crawl, site: Site, running: Running, *, is_stopped: bool) -> CrawlResult:
    """Stop the crawl as Ctrl-C does, or wait until the idle limit is over."""
    if not is_stopped:
        return await running.result()
    await crawl.until(lambda: site.asked("/robots.txt") > 1)
    return await running.stop()


BY = pytest.mark.parametrize("is_stopped", [False, True], ids=["idle limit", "stopped"])


# Scrapy 2.17 leaves files of its queue on disk open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@BY
async def test_what_cannot_be_written_is_lost_alone(
    crawl: Crawl, server: Server, jobdir: dict[str, Any], is_stopped: bool
) -> None:
    """Scrapy's own scheduler crawls what cannot be pickled before it ends, from memory."""
    site = server.site()
    site.robots = Reply(503)
    settings = {**jobdir, "KOSTER_IDLE_LIMIT_SECS": 100 if is_stopped else 1}
    running = crawl.start(Unpickled, urls=site.urls(6), settings=settings)
    result = await ended(crawl, site, running, is_stopped=is_stopped)
    log = "\n".join(result.logged(logging.INFO))
    assert ("Those that may be lost, if they cannot be written: 3" in log) is is_stopped
    assert len(result.refused) == (0 if is_stopped else 3)
    site.robots = OPEN
    await crawl(settings=jobdir)
    assert Counter(site.pages_asked) == Counter(f"/page{n}" for n in (0, 2, 4))


@BY
async def test_what_still_waits_is_there_for_the_next_run(
    crawl: Crawl, server: Server, jobdir: dict[str, Any], is_stopped: bool
) -> None:
    site = server.site()
    site.robots = Reply(503)
    settings = {**jobdir, "KOSTER_IDLE_LIMIT_SECS": 100 if is_stopped else 2}
    running = crawl.start(urls=site.urls(12), settings=settings)
    result = await ended(crawl, site, running, is_stopped=is_stopped)
    log = "\n".join(result.logged(logging.INFO))
    assert "Requests that were not sent yet: 12, of 1 sites." in log
    assert "kept for the next run: start the same crawl again to go on" in log
    assert f"Sites with the most: {site.url('')} (12)" in log
    assert "Requests refused: 0, still waiting: 12. Copies of robots.txt" in log
    assert "Giving up" not in log
    assert result.stats["koster/parked"] == 12
    assert result.finish_reason == ("shutdown" if is_stopped else "robotstxt_waiting")
    site.robots = OPEN
    await crawl(settings=jobdir)
    assert Counter(site.pages_asked) == Counter(f"/page{n}" for n in range(12))
    assert list(Path(jobdir["JOBDIR"]).glob("koster-parked*")) == []


async def test_a_repeat_that_the_dupefilter_allows_is_crawled_by_the_next_run(
    crawl: Crawl, server: Server, jobdir: dict[str, Any]
) -> None:
    """At the stop, one request waits for its site, and its repeat is in Scrapy's queue."""
    site, slow = server.site(), server.site(host="127.0.0.2")
    site.robots = Reply(503)
    slow.page("/b", Reply(delay=2))
    dupefilter = {"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}
    settings = jobdir | dupefilter | {"CONCURRENT_REQUESTS": 1}
    arguments = {"then": [Request(site.url("/a"), priority=1), slow.url("/b"), site.url("/a")]}
    first = crawl.start(Leads, urls=slow.urls(1, "/first"), settings=settings, arguments=arguments)
    await crawl.until(lambda: len(slow.pages_asked) == 2)
    await first.stop()
    site.robots = OPEN
    await crawl(Leads, settings=settings)
    assert site.pages_asked == ["/a", "/a"]


class PartlyLost(Scheduler):
    """Scrapy's scheduler, some of whose requests cannot be read."""

    def next_request(self) -> Request | None:
        request = super().next_request()
        if request is not None and "lost" in request.url:
            raise OSError("no such file")
        return request


async def test_what_cannot_be_read_is_passed_over_and_said_once(
    crawl: Crawl, server: Server, jobdir: dict[str, Any]
) -> None:
    site = server.site()
    urls = [*site.urls(2), *site.urls(50, "/lost{}"), site.url("/page2")]
    settings = {**jobdir, "SCHEDULER": PartlyLost, "CONCURRENT_REQUESTS": 1}
    running = crawl.start(urls=urls, settings=settings)
    with pytest.raises(AssertionError) as logged:  # of the error in the log, with its traceback
        await running.result()
    assert sorted(site.pages_asked) == ["/page0", "/page1", "/page2"]
    assert str(logged.value).count("Part of the queue in the JOBDIR cannot be read") == 1
    assert "OSError: no such file" in str(logged.value)


LIMIT_SECS = 4.0


async def test_a_dead_site_ends_in_its_errbacks_when_its_limit_has_passed_over_the_runs(
    crawl: Crawl, server: Server, jobdir: dict[str, Any]
) -> None:
    site = server.site()
    site.robots = Reply(503)
    settings = {**jobdir, "KOSTER_IDLE_LIMIT_SECS": 0.6, "KOSTER_DEFER_LIMIT_SECS": LIMIT_SECS}
    first = await crawl(urls=site.urls(3), settings=settings)
    second = await crawl(settings=settings)
    assert first.finish_reason == second.finish_reason == "robotstxt_waiting"
    assert (first.refused, second.refused) == ((), ())
    await crawl.sleep(LIMIT_SECS)
    asked = site.asked("/robots.txt")
    third = await crawl(settings=settings)
    assert third.finish_reason == "finished"
    assert sorted(url for url, _ in third.refused) == site.urls(3)
    assert site.asked("/robots.txt") == asked + 1
    assert (await crawl(settings=settings)).refused == ()
