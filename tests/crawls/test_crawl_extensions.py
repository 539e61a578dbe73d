"""What Scrapy brings along, beside sites that fail: pipelines, feeds, limits, other schemes.

In each crawl nothing leaks, each request ends once, and the crawl ends in its time.
"""

from __future__ import annotations

import gc
import json
import logging
import signal
from base64 import b64decode
from collections import Counter
from itertools import chain, repeat
from pathlib import Path
from threading import enumerate as threads
from typing import Any

import pytest
from harness.clocks import JumpingClock
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.forks import ENDS_SECS
from harness.jobs import OPEN, Job
from harness.replies import Hang, Reply, redirect
from harness.server import Server, Site
from scrapy import Request
from scrapy.exceptions import NotSupported
from scrapy.http import Response

from scrapy_koster import RobotsForbidden, RobotsUnavailable

RULES = "User-agent: *\nDisallow: /secret\n"
PICTURE = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
IDLE_SECS = 2.0
HEARTBEAT_SECS = 5.0
"""How often Scrapy looks whether a spider is idle. With 2.17 nothing else makes it look."""
SOON: dict[str, Any] = {
    "KOSTER_TIMEOUT_SECS": 1,
    "KOSTER_DEFER_FIRST_SECS": 0.5,
    "KOSTER_DEFER_MAX_SECS": 1,
    "KOSTER_IDLE_LIMIT_SECS": IDLE_SECS,
    "RETRY_ENABLED": False,
}


class WithMedia(RecordingSpider):
    """Each page has what pipelines are to download."""

    media: Any = ()

    def page(self, response: Response) -> Any:
        yield {"url": response.url, "file_urls": self.media, "image_urls": self.media}


def sites_of(server: Server) -> tuple[Site, Site, Site, Site]:
    """Return a site with rules, and others that hang, fail and are down."""
    site, hanging, failing = (server.site(host=f"127.0.0.{n}") for n in (2, 3, 4))
    site.robots, hanging.robots, failing.robots = RULES, Hang(), Reply(503)
    return site, hanging, failing, server.down()


@pytest.mark.parametrize("kind", ["files.FilesPipeline", "images.ImagesPipeline"])
async def test_media_pipelines(crawl: Crawl, server: Server, tmp_path: Path, kind: str) -> None:
    if "images" in kind:
        pytest.importorskip("PIL")
    site, *others = sites_of(server)
    paths = ("/a.png", "/b.png", "/secret/c.png")
    for path in paths:
        site.page(path, Reply(200, PICTURE, headers={"Content-Type": "image/png"}))
    media = [site.url(path) for path in paths] + [each.url("/d.png") for each in others]
    settings = SOON | {
        "ITEM_PIPELINES": {f"scrapy.pipelines.{kind}": 1},
        "FILES_STORE": str(tmp_path / "store"),
        "IMAGES_STORE": str(tmp_path / "store"),
    }
    result = await crawl(
        WithMedia, urls=site.urls(6), settings=settings, arguments={"media": media}
    )
    assert len(result.items) == 6
    field = kind.partition(".")[0]
    for item in result.items:
        assert sorted(got["url"] for got in item[field]) == sorted(media[:2])
    assert not any("secret" in path for path in site.pages_asked)
    assert all(each.pages_asked == [] for each in others)
    assert result.seconds < 3 * IDLE_SECS + 2 * HEARTBEAT_SECS


async def test_feeds(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    site, hanging, *_ = sites_of(server)
    feed = tmp_path / "items.jsonl"
    urls = [*site.urls(5), *site.urls(3, "/secret/{}"), *hanging.urls(3)]
    settings = SOON | {"FEEDS": {str(feed): {"format": "jsonlines"}}}
    result = await crawl(WithMedia, urls=urls, settings=settings)
    written = [json.loads(line)["url"] for line in feed.read_text().splitlines()]
    assert sorted(written) == sorted(site.urls(5))
    assert len(result.refused) == 6
    assert result.stats["feedexport/success_count/FileFeedStorage"] == 1


async def test_cookies(crawl: Crawl, server: Server) -> None:
    """Pages keep their session; a robots.txt is asked for, again and again, without one."""
    site = server.site()
    site.robots = Reply(
        200, RULES, headers={"Cache-Control": "max-age=1", "Set-Cookie": "robots=yes; Path=/"}
    )
    site.pages(Reply(200, "a page", headers={"Set-Cookie": "session=1; Path=/"}))
    site.page("/old", redirect(site.url("/new")))
    settings = SOON | {"KOSTER_EXPIRY_MIN_SECS": 0, "DOWNLOAD_DELAY": 0.7}
    settings["CONCURRENT_REQUESTS"] = 1
    result = await crawl(urls=[*site.urls(4), site.url("/old")], settings=settings)
    assert len(result.fetched) == 5
    asked = [each for each in site.requests if each.path == "/robots.txt"]
    assert len(asked) > 1
    assert not any(each.header("Cookie") for each in asked)
    pages = [each.header("Cookie") for each in site.requests if each.path != "/robots.txt"]
    # A page whose copy has expired gives its place to the next while it waits. Once, on a busy
    # machine, a second page was under way before the first had given its cookie.
    first = pages.index("session=1")
    assert first in (1, 2)
    assert pages == [None] * first + ["session=1"] * (len(pages) - first)


@pytest.mark.parametrize("in_url", [True, False], ids=["in the URL", "in a header"])
async def test_a_proxy_that_wants_a_password(crawl: Crawl, server: Server, in_url: bool) -> None:
    site, proxy = server.site(), server.proxy()
    site.robots = RULES
    meta = {"proxy": proxy.url("")}
    headers = {"Proxy-Authorization": "Basic dTpw"}
    if in_url:
        meta, headers = {"proxy": f"http://u:p@{proxy.authority}"}, {}
    urls = [*site.urls(2), site.url("/secret")]
    result = await crawl(urls=urls, meta=meta, headers=headers, settings=SOON)
    assert len(result.fetched) == 2
    [(_, error)] = result.refused
    assert isinstance(error, RobotsForbidden)
    said = [(each.target, each.header("Proxy-Authorization")) for each in proxy.requests]
    if in_url:
        assert {password for _, password in said} == {"Basic dTpw"}
    else:  # a header of a page is the page's own
        assert all(password == "Basic dTpw" for target, password in said if "page" in target)
    assert not any(each.header("Proxy-Authorization") for each in site.requests)


async def test_other_schemes_have_no_robots_txt(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    site, hanging, *_ = sites_of(server)
    file = tmp_path / "page.html"
    file.write_text("<p>x")
    ftp = f"ftp://127.0.0.1:{server.down().port}/x"
    urls = ["data:,x", file.as_uri(), ftp, "s3://bucket/key", site.url("/1"), hanging.url("/2")]
    meta = {"ftp_user": "u", "ftp_password": "p"}
    result = await crawl(urls=[Request(url, meta=meta) for url in urls], settings=SOON)
    assert sorted(result.fetched) == sorted(["data:,x", file.as_uri(), site.url("/1")])
    refused = dict(result.refused)
    assert isinstance(refused[hanging.url("/2")], RobotsUnavailable)
    assert isinstance(refused["s3://bucket/key"], NotSupported)
    assert sorted(refused) == sorted([ftp, "s3://bucket/key", hanging.url("/2")])
    assert result.stats["robotstxt/request_count"] < 6


class Erring(RecordingSpider):
    """Each page is an error, which is not logged: the tests take that for a defect of ours."""

    def page(self, response: Response) -> Any:
        logging.getLogger("scrapy.core.scraper").addFilter(_no_error)
        raise ValueError("this page is odd")


def _no_error(record: logging.LogRecord) -> bool:
    return "this page is odd" not in str(record.exc_info)


class Pictures(RecordingSpider):
    """Each page has a picture on a site that hangs, which is downloaded past the scheduler."""

    picture = ""

    async def parse(self, response: Response, **arguments: Any) -> None:
        self.fetched.append(response.url)
        try:
            await self.crawler.engine.download_async(Request(self.picture))
        except RobotsUnavailable as error:
            self.refused.append((self.picture, error))


LIMITS: dict[str, tuple[type[RecordingSpider], dict[str, Any], str]] = {
    "timeout": (RecordingSpider, {"CLOSESPIDER_TIMEOUT": 1.5}, "closespider_timeout"),
    "timeout, in place": (Pictures, {"CLOSESPIDER_TIMEOUT": 1.5}, "closespider_timeout"),
    "item count": (WithMedia, {"CLOSESPIDER_ITEMCOUNT": 2}, "closespider_itemcount"),
    "page count": (RecordingSpider, {"CLOSESPIDER_PAGECOUNT": 2}, "closespider_pagecount"),
    "page count, in place": (Pictures, {"CLOSESPIDER_PAGECOUNT": 2}, "closespider_pagecount"),
    "page count without item": (
        RecordingSpider,
        {"CLOSESPIDER_PAGECOUNT_NO_ITEM": 2},
        "closespider_pagecount_no_item",
    ),
    "error count": (Erring, {"CLOSESPIDER_ERRORCOUNT": 1}, "closespider_errorcount"),
    "timeout without item": (
        RecordingSpider,
        {"CLOSESPIDER_TIMEOUT_NO_ITEM": 1},
        "closespider_timeout_no_item",
    ),
}


@pytest.mark.parametrize(
    "with_job", [False, pytest.param(True, marks=pytest.mark.long)], ids=["", "JOBDIR"]
)
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
async def test_what_closes_a_spider(
    crawl: Crawl, server: Server, tmp_path: Path, *, limit: str, with_job: bool
) -> None:
    """It does so while requests wait: parked, and in place."""
    spider, given, reason = LIMITS[limit]
    site, hanging, failing, down = sites_of(server)
    site.pages(Reply(200, "a page", delay=0.3))
    waiting = [*hanging.urls(3), *failing.urls(3), *down.urls(3)]
    settings = SOON | {"KOSTER_IDLE_LIMIT_SECS": 30, "CONCURRENT_REQUESTS": 20} | given
    if with_job:
        settings["JOBDIR"] = str(tmp_path / "job")
    arguments = {"picture": failing.url("/picture")} if spider is Pictures else {}
    result = await crawl(
        spider, urls=[*waiting, *site.urls(30)], settings=settings, arguments=arguments
    )
    assert result.finish_reason == reason
    assert result.stats["koster/parked"] >= len(waiting)  # and pages of the site, perhaps
    assert result.seconds < 10
    assert all(each.pages_asked == [] for each in (hanging, failing))


async def test_a_limit_of_memory(
    crawl: Crawl, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MEMUSAGE: a warning, and an end, while requests wait."""
    pytest.importorskip("resource")
    site, hanging, failing, down = sites_of(server)
    sizes = chain([10, 10, 60, 60], repeat(200))
    monkeypatch.setattr(
        "scrapy.extensions.memusage.MemoryUsage.get_virtual_size", lambda _: next(sizes) * 2**20
    )
    settings = SOON | {
        "KOSTER_IDLE_LIMIT_SECS": 60,
        "MEMUSAGE_ENABLED": True,
        "MEMUSAGE_CHECK_INTERVAL_SECONDS": 0.5,
        "MEMUSAGE_LIMIT_MB": 100,
        "MEMUSAGE_WARNING_MB": 50,
    }
    urls = [each.url(path) for each in (site, hanging, failing, down) for path in ("/1", "/2")]
    result = await crawl(urls=urls, settings=settings)
    assert result.finish_reason == "memusage_exceeded"
    assert result.stats["koster/parked"] == 6
    assert result.seconds < 10


DAY = 86_400.0


JUMPS = (
    (3600, -3600),
    (-10 * DAY,),
    (-3600, 3600),
    (10 * DAY,),
    (1, -1) * 5,
    (400 * DAY, -400 * DAY),
)


@pytest.mark.parametrize(
    "jumps",
    [*JUMPS[:2], *(pytest.param(each, marks=pytest.mark.long) for each in JUMPS[2:])],
    ids=str,
)
async def test_clocks_that_jump(crawl: Crawl, server: Server, jumps: tuple[float, ...]) -> None:
    """Once a second, while sites fail, answer again, and hang; pages wait parked and in place."""
    site, hanging, failing, down = sites_of(server)
    site.pages(Reply(200, "a page", delay=0.3))
    again = server.site(host="127.0.0.5")
    again.robots = [Reply(503), Reply(503), Reply(200, RULES)]
    crawl.clock = clock = JumpingClock()
    settings = SOON | {"DOWNLOAD_DELAY": 0.5, "KOSTER_DEFER_LIMIT_SECS": 20}
    urls = [
        *(each.url(path) for each in (again, hanging, failing, down) for path in ("/1", "/secret")),
        *site.urls(12),
    ]
    running = crawl.start(
        Pictures, urls=urls, settings=settings, arguments={"picture": down.url("/picture")}
    )
    for ahead in jumps:
        await crawl.sleep(1)
        clock.ahead += ahead
    result = await running.result()
    pages = {*site.urls(12), again.url("/1")}
    assert pages <= set(result.fetched)
    assert again.pages_asked == ["/1"]
    assert all(each.pages_asked == [] for each in (hanging, failing))
    ended = Counter([*result.fetched, *(url for url, _ in result.refused)])
    assert ended == Counter(urls) + Counter({down.url("/picture"): len(pages)})
    assert result.seconds < 60


# A process that is killed while it closes.

STAGES = (
    "ParkedRequests.close.before",
    "ParkedRequests.close.after",
    "signals.spider_idle",
    "signals.spider_closed",
    "signals.engine_stopped",
)
KILLED = """
import os, signal as posix
from scrapy import signals
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests

class Killer:
    @classmethod
    def from_crawler(cls, crawler):
        def kill(*_, **__):
            os.kill(os.getpid(), crawler.settings.getint("SENT"))

        made = cls()
        made.kill = kill
        stage = crawler.settings["STAGE"]
        if stage.startswith("signals."):
            crawler.signals.connect(kill, getattr(signals, stage.partition(".")[2]))
        else:
            kind, method, when = stage.split(".")
            owner = globals()[kind]
            real = getattr(owner, method)
            def around(*args, **named):
                if when == "before":
                    kill()
                result = real(*args, **named)
                kill()
                return result
            setattr(owner, method, around)
        return made
"""


async def sent_while_it_closes(
    crawl: Crawl, server: Server, tmp_path: Path, stage: str, sent: signal.Signals
) -> int:
    """Have the process send itself a signal at this stage; return how it ended."""
    (tmp_path / "killer.py").write_text(KILLED)
    job = Job(tmp_path, crawl)
    site = server.site()
    site.robots = Reply(503)
    given: dict[str, Any] = {
        "EXTENSIONS": {"killer.Killer": 1},
        "STAGE": stage,
        "SENT": int(sent),
        "KOSTER_IDLE_LIMIT_SECS": 1,
    }
    process = job.start(site.urls(30), **given)
    if stage != "signals.spider_idle":
        await job.until_parked()
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=ENDS_SECS)
    assert site.pages_asked == []
    site.robots = OPEN
    job.run([] if stage != "signals.spider_idle" else site.urls(30))
    assert Counter(site.pages_asked) == Counter(f"/page{n}" for n in range(30))
    return process.returncode


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(
            stage, marks=() if stage == "ParkedRequests.close.before" else pytest.mark.long
        )
        for stage in STAGES
    ],
)
async def test_killed_while_it_closes(
    crawl: Crawl, server: Server, tmp_path: Path, stage: str
) -> None:
    """What waits is there for the next run, none of it twice."""
    ended = await sent_while_it_closes(crawl, server, tmp_path, stage, signal.SIGKILL)
    assert ended == -signal.SIGKILL


@pytest.mark.long
@pytest.mark.parametrize("stage", STAGES)
async def test_interrupted_again_while_it_closes(
    crawl: Crawl, server: Server, tmp_path: Path, stage: str
) -> None:
    assert await sent_while_it_closes(crawl, server, tmp_path, stage, signal.SIGINT) == 0


# Many crawls in one process.


def _files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


async def crawled_often(crawl: Crawl, server: Server, times: int) -> list[tuple[float, int, int]]:
    """Crawl so many times; return memory in MB, open files and threads after each."""
    site, hanging, failing, down = sites_of(server)
    seen = []
    urls = [each.url(path) for each in (site, hanging, failing, down) for path in ("/1", "/secret")]
    for _ in range(times):
        result: CrawlResult = await crawl(urls=urls, settings=SOON | {"KOSTER_TIMEOUT_SECS": 0.3})
        assert result.fetched == (site.url("/1"),)
        assert len(result.refused) == 7
        crawl.runs.clear()
        del result
        gc.collect()
        seen.append((_resident_mb(), _files(), len(threads())))
    return seen


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc, as Linux has it")
@pytest.mark.bound(1200)
@pytest.mark.parametrize("times", [8, pytest.param(60, marks=pytest.mark.long)])
async def test_many_crawls_in_one_process(crawl: Crawl, server: Server, times: int) -> None:
    logging.disable(logging.CRITICAL)  # pytest keeps what is logged, and with it each crawler
    try:
        seen = await crawled_often(crawl, server, times)
    finally:
        logging.disable(logging.NOTSET)
    memory, files, running = zip(*seen[times // 2 :], strict=True)
    print(f"MB {memory[0]:.1f} to {memory[-1]:.1f}, files {files}, threads {running}")  # noqa: T201
    assert memory[-1] - memory[0] < 10
    assert max(files) - min(files) <= 8
    assert max(running) - min(running) <= 8
