"""A crawl ends when it should, and is fed while it waits for sites that cannot be asked."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from harness import forks
from harness.clocks import sleep
from harness.crawling import IN_PLACE, STEADY, Crawl, RecordingSpider
from harness.replies import Hang, Reply, redirect
from harness.server import Server
from harness.virtual import time
from scrapy import Request
from scrapy.http import Response

from scrapy_koster import RobotsUnavailable
from scrapy_koster.crawl.clock import clock_of
from scrapy_koster.crawl.engine.compat import CannotResolveHostError

IDLE_SECS = 1.5
SOON = {
    "KOSTER_IDLE_LIMIT_SECS": IDLE_SECS,
    "KOSTER_DEFER_FIRST_SECS": 0.3,
    "KOSTER_DEFER_MAX_SECS": 0.6,
    "RETRY_ENABLED": False,
    "CONCURRENT_ITEMS": 1,
}
"""KOSTER_DEFER_LIMIT_SECS stays at its 300 s."""


# When a crawl has nothing else to do.


@pytest.mark.parametrize("host", ["nosuch.invalid", "{{host}}", "256.1.1.1", "a+b.x", "a..b"])
async def test_a_host_that_does_not_exist_is_given_up_at_once(
    crawl: Crawl, server: Server, host: str
) -> None:
    """With the settings that are there without any."""
    site = server.site()
    urls = [site.url("/"), f"http://{host}/1", f"http://{host}/2"]
    result = await crawl(urls=urls)
    assert result.fetched == (site.url("/"),)
    assert sorted(url for url, _ in result.refused) == urls[1:]
    assert all(isinstance(error, RobotsUnavailable) for _, error in result.refused)
    assert result.seconds < 30
    assert result.finish_reason == "finished"
    is_sent = ".." not in host  # such a name cannot be looked up
    assert result.stats["robotstxt/request_count"] == 1 + is_sent
    [said] = [each for each in result.logged(logging.INFO) if each.startswith("Giving up")]
    assert f"http://{host}:" in said.replace(": its", ":")


async def test_a_dead_host_ends_with_the_idle_limit(crawl: Crawl, server: Server) -> None:
    site, dead, proxy = server.site(), server.down(), server.down()
    of_dead = [Request(dead.url(path), meta={"proxy": proxy.url("")}) for path in ("/1", "/2")]
    result = await crawl(urls=[of_dead[0], site.url("/"), of_dead[1]], settings=SOON)
    assert result.fetched == (site.url("/"),)
    assert sorted(url for url, _ in result.refused) == [dead.url("/1"), dead.url("/2")]
    for _, error in result.refused:
        assert isinstance(error, RobotsUnavailable)
        assert f"no page was downloaded for {IDLE_SECS:g} s, KOSTER_IDLE_LIMIT_SECS" in str(error)
        assert f", through the proxy {proxy.authority}; " in str(error)
    assert IDLE_SECS <= result.seconds < IDLE_SECS + 10
    assert result.stats["koster/deferred/dropped"] == 2
    assert "koster/parked" not in result.stats


async def test_a_robots_txt_that_hangs_is_fetched_again(crawl: Crawl, server: Server) -> None:
    """An attempt takes all the idle time, as with the settings that are there without any."""
    site = server.site()
    site.robots = [Hang(), Hang(), "User-agent: *\nDisallow: /secret"]
    settings = {  # a tenth of those
        "KOSTER_TIMEOUT_SECS": 3,
        "KOSTER_IDLE_LIMIT_SECS": 3,
        "KOSTER_DEFER_FIRST_SECS": 1,
    }
    result = await crawl(urls=[site.url("/1"), site.url("/secret")], settings=settings)
    assert result.fetched == (site.url("/1"),)
    assert site.asked("/robots.txt") == 3


async def test_a_site_is_waited_for_while_there_is_other_work(crawl: Crawl, server: Server) -> None:
    """KOSTER_DEFER_LIMIT_SECS bounds that, and the idle limit begins anew after each page."""
    site, failing = server.site(), server.site(host="127.0.0.2")
    began = time.monotonic()

    def robots(asked: Any) -> Reply:
        return Reply(503) if time.monotonic() - began < 2 * IDLE_SECS else Reply(body="")

    failing.robots = robots
    urls = [failing.url("/"), *site.urls(8)]
    settings = SOON | {"DOWNLOAD_DELAY": 0.5} | STEADY
    result = await crawl(urls=urls, settings=settings)
    assert result.refused == ()
    assert len(result.fetched) == 9


class Persists(RecordingSpider):
    """Yields a request that was refused once more, the same object."""

    async def fail(self, failure: Any) -> Any:
        super().fail(failure)
        await clock_of(self.crawler).sleep(1.0)  # longer than KOSTER_DEFER_MAX_SECS
        yield failure.request


async def test_a_request_that_was_given_up_can_be_made_again(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = [Reply(503), ""]
    urls, settings = [Request(site.url("/"), dont_filter=True)], {"KOSTER_DEFER_LIMIT_SECS": 0}
    result = await crawl(Persists, urls=urls, settings=SOON | settings)
    assert (len(result.refused), result.fetched) == (1, (site.url("/"),))


@pytest.mark.parametrize(
    ("page_secs", "settings"),
    [(0, {"DOWNLOAD_DELAY": 0.5} | STEADY), (3, {"CONCURRENT_REQUESTS_PER_DOMAIN": 2})],
)
async def test_requests_that_waited_leave_places_to_other_hosts(
    crawl: Crawl, server: Server, page_secs: float, settings: dict[str, Any]
) -> None:
    """Two sites are slow, or have a DOWNLOAD_DELAY. A third is known when both fill all places."""
    first, second, healthy = (server.site(host=f"127.0.0.{n}") for n in (1, 2, 3))
    for site in (first, second):
        site.robots = Reply(body="", delay=0.2)
        site.pages(Reply(body="", delay=page_secs))
    healthy.robots = Reply(body="", delay=0.4)
    urls = [*first.urls(8), *second.urls(8), *healthy.urls(3)]
    await crawl(urls=urls, settings=settings | {"CONCURRENT_REQUESTS": 4})
    pages = [[each.at for each in site.requests][1:] for site in (first, healthy)]
    assert pages[1][2] < pages[0][4]


@pytest.mark.parametrize("delay", ["", "Crawl-delay: 0.3"])
async def test_requests_that_waited_leave_other_slots_to_other_requests(
    crawl: Crawl, server: Server, delay: str
) -> None:
    """Redirected requests keep the slot of the first host, here behind pages that hang."""
    slow, site = server.site(), server.site(host="127.0.0.2")
    site.robots = Reply(body=f"User-agent: *\nDisallow:\n{delay}", delay=0.5)
    slow.page("/moved", redirect(site.url("/target")))
    slow.page("/hangs", Hang())
    urls = [slow.url("/moved"), slow.url("/hangs"), *site.urls(6)]
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_TIMEOUT": 30, "RETRY_ENABLED": False}
    result = await crawl(urls=urls, settings=settings | {"KOSTER_CRAWL_DELAY": "obey"})
    assert len(result.fetched) == 7
    assert site.pages_asked[-1] == "/target"
    assert site.requests[-2].at < slow.requests[-1].at + 10


# In place: pictures, files, and requests of callbacks. They wait for an answer, not for a recovery.


class Gallery(RecordingSpider):
    """Each page has a picture, which its callback downloads past the scheduler."""

    picture = ""

    async def parse(self, response: Response, **arguments: Any) -> None:
        self.fetched.append(response.url)
        with suppress(RobotsUnavailable):
            await self.crawler.engine.download_async(Request(self.picture))


class Repeats:
    """Sends a request again that was answered with 503, after a pause, as a project may do."""

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        await sleep(0.3)
        return request.replace() if response.status == 503 else response


@pytest.mark.parametrize("middlewares", [{}, {Repeats: 900}])
async def test_a_crawl_that_closes_asks_no_site_again(
    crawl: Crawl, server: Server, middlewares: dict[type, int]
) -> None:
    """Though a page hangs, and the robots.txt of a failed site is due several times meanwhile."""
    site, failing = server.site(), server.site(host="127.0.0.2")
    site.page("/slow", Reply(body="", delay=5))
    failing.robots = Reply(503)
    urls = [site.url("/slow"), failing.url("/")]
    settings = SOON | {"KOSTER_IDLE_LIMIT_SECS": 60, "DOWNLOADER_MIDDLEWARES": middlewares}
    running = crawl.start(urls=urls, settings=settings)
    await crawl.until(lambda: site.pages_asked)
    asked = failing.asked("/robots.txt")
    await crawl.until(lambda: failing.asked("/robots.txt") > asked)  # so none is on its way
    began, asked = time.monotonic(), failing.asked("/robots.txt")
    result = await running.stop()
    assert time.monotonic() - began > 3
    assert result.fetched == (site.url("/slow"),)
    assert failing.asked("/robots.txt") == asked


async def test_what_waits_in_place_holds_no_place(crawl: Crawl, server: Server) -> None:
    """The host of the picture hangs; 40 pages are fetched beside it, 16 at a time."""
    site, pictures = server.site(), server.site(host="127.0.0.2")
    pictures.robots = Hang()
    settings = SOON | {"KOSTER_TIMEOUT_SECS": 30, "CONCURRENT_REQUESTS": 16, "LOG_LEVEL": "INFO"}
    arguments = {"picture": pictures.url("/")}
    running = crawl.start(Gallery, urls=site.urls(40), settings=settings, arguments=arguments)
    await crawl.until(lambda: len(site.pages_asked) == 40, seconds=20)
    await crawl.until(lambda: pictures.asked("/robots.txt"))
    result = await running.stop()
    assert pictures.asked("/robots.txt") == 1
    assert pictures.pages_asked == []
    assert len(result.fetched) == 40


BIG = b"<p>" + b"x" * 200_000
ANSWERS: dict[str, Any] = {
    "404": Reply(404),
    "503": Reply(503),
    "429 with Retry-After": Reply(429, headers={"Retry-After": "60"}),
    "no file for 5 s": Hang(),
}


class Shop(RecordingSpider):
    """Each page is an item with a picture of another host."""

    picture = ""

    def page(self, response: Response) -> Any:
        yield {"url": response.url, "file_urls": [f"{self.picture}?{response.url}"]}


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        (Shop, "503"),
        (Gallery, "503"),
        *(
            pytest.param(Shop, answer, marks=pytest.mark.long)
            for answer in ANSWERS
            if answer != "503"
        ),
    ],
)
async def test_a_failing_picture_host_does_not_hold_up_the_pages(
    crawl: Crawl, server: Server, tmp_path: Path, kind: type, answer: str
) -> None:
    """60 pages of 200 kB: more than the scraper takes at once while their pictures wait."""
    site, pictures = server.site(), server.site(host="127.0.0.2")
    site.pages(Reply(body=BIG))
    pictures.robots = ANSWERS[answer]
    settings: dict[str, Any] = {
        "KOSTER_TIMEOUT_SECS": 5,
        "LOG_LEVEL": "INFO",
        "RETRY_ENABLED": False,
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path),
    }
    arguments = {"picture": pictures.url("/picture")}
    began = time.monotonic()
    running = crawl.start(kind, urls=site.urls(60), settings=settings, arguments=arguments)
    await crawl.until(lambda: len(site.pages_asked) == 60, seconds=20)
    # As fast as with pictures that do not exist, plus a time-out for the first answer.
    assert time.monotonic() - began < 10
    result = await running.result()
    assert len(result.fetched) == 60
    if answer != "404":
        assert pictures.pages_asked == []


async def test_pictures_that_too_many_wait_for_are_dropped_with_a_warning(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    """FilesPipeline itself logs them at DEBUG. They wait for a Crawl-delay."""
    site, pictures = server.site(), server.site(host="127.0.0.2")
    pictures.robots = "User-agent: *\nCrawl-delay: 30\n"
    settings = {
        "KOSTER_CRAWL_DELAY": "obey",
        "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 10 * 1024,
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path),
    }
    arguments = {"picture": pictures.url("/picture")}
    running = crawl.start(Shop, urls=site.urls(20), settings=settings, arguments=arguments)
    await crawl.until(lambda: site.pages_asked)
    stats: Any = running.crawler.stats
    await crawl.until(lambda: stats.get_value("koster/crawl_delay/dropped", 0) > 1, seconds=20)
    result = await running.stop()
    [warning] = result.logged(logging.WARNING, "scrapy_koster")
    assert "wait for the Crawl-delay of 127.0.0.2: half of SCRAPER_SLOT_MAX_ACTIVE_SIZE" in warning


async def test_with_another_scheduler_requests_wait_for_one_answer(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = Reply(503)
    settings = SOON | IN_PLACE | {"CONCURRENT_REQUESTS": 4}
    result = await crawl(urls=site.urls(20), settings=settings, robots=None)
    assert len(result.refused) == 20
    assert result.seconds < IDLE_SECS


# Commands, and what they show.


PROJECT = """
from scrapy import Request, Spider

ADDONS = {"scrapy_koster.Addon": 500}
SPIDER_MODULES = ["project"]
TELNETCONSOLE_ENABLED = False
KOSTER_STORAGE = "scrapy_koster.storage.memory.MemoryStorage"


class Waiting(Spider):
    name = "waiting"

    async def start(self):
        if first := getattr(self, "first", None):
            yield Request(first)

    def parse(self, response):
        pass
"""


def run_command(folder: Path, *command: str) -> Any:
    (folder / "project.py").write_text(PROJECT)
    return forks.run(
        [sys.executable, "-m", "scrapy", *command],
        cwd=folder,
        env={**os.environ, "SCRAPY_SETTINGS_MODULE": "project", "PYTHONPATH": str(folder)},
        text=True,
    )


@pytest.mark.long
def test_a_command_for_one_page_of_a_host_that_does_not_exist_ends_as_scrapys(
    tmp_path: Path,
) -> None:
    run = run_command(tmp_path, "shell", "http://nosuch-host.invalid/page", "-c", "'answered'")
    assert run.returncode == 1
    assert f"{CannotResolveHostError.__name__}: " in run.stderr
    assert "answered" not in run.stdout


@pytest.mark.parametrize(
    "command", [["fetch"], pytest.param(["parse", "--spider=waiting"], marks=pytest.mark.long)]
)
def test_a_command_for_one_page_waits_for_one_answer(
    server: Server, tmp_path: Path, command: list[str]
) -> None:
    """With the settings that are there without any."""
    site = server.site()
    site.robots = Reply(503)
    began = time.monotonic()
    run = run_command(tmp_path, *command, site.url("/page"), "-L", "INFO")
    assert f"Refused: <GET {site.url('/page')}> is " in run.stderr
    assert time.monotonic() - began < 20
    assert site.asked("/robots.txt") == 1
    assert site.pages_asked == []
    waiting = run.stderr.index(f"Waiting for the robots.txt of {site.url('')}")
    giving_up = run.stderr.index(f"Giving up {site.url('')}")
    assert waiting < giving_up
    assert "scrapy fetch, shell, view and parse do not wait for a site to recover" in run.stderr
    assert "To wait until it recovers, run a crawl." in run.stderr
    assert "KOSTER_IDLE_LIMIT_SECS" not in run.stderr


@pytest.mark.long
def test_a_command_for_one_page_takes_nothing_out_of_the_jobdir(
    server: Server, tmp_path: Path
) -> None:
    site, other = server.site(), server.site()
    site.robots = Reply(503)
    jobdir = ["-s", f"JOBDIR={tmp_path / 'job'}", "-s", "KOSTER_IDLE_LIMIT_SECS=0"]
    run_command(tmp_path, "crawl", "waiting", *jobdir, "-a", f"first={site.url('/page')}")
    run_command(tmp_path, "fetch", "--spider=waiting", *jobdir, other.url("/"))
    assert other.pages_asked == ["/"]
    site.robots = "User-agent: *\nDisallow: /no\n"
    run_command(tmp_path, "crawl", "waiting", *jobdir)
    assert site.pages_asked == ["/page"]
