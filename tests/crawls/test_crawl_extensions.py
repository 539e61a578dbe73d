"""What Scrapy brings along, beside sites that fail: pipelines, feeds, limits, other schemes.

In each crawl nothing leaks, each request ends once, and the crawl ends in its time.
"""

from __future__ import annotations

import gc
import logging
from base64 import b64decode
from pathlib import Path
from threading import enumerate as threads
from typing import Any

import pytest
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Hang, Reply
from harness.server import Server, Site
from scrapy.http import Response

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
        yield {"url": response.url, "file_urls": self.media}


def sites_of(server: Server) -> tuple[Site, Site, Site, Site]:
    """Return a site with rules, and others that hang, fail and are down."""
    site, hanging, failing = (server.site(host=f"127.0.0.{n}") for n in (2, 3, 4))
    site.robots, hanging.robots, failing.robots = RULES, Hang(), Reply(503)
    return site, hanging, failing, server.down()


async def test_media_pipelines(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    site, *others = sites_of(server)
    paths = ("/a.png", "/b.png", "/secret/c.png")
    for path in paths:
        site.page(path, Reply(200, PICTURE, headers={"Content-Type": "image/png"}))
    media = [site.url(path) for path in paths] + [each.url("/d.png") for each in others]
    settings = SOON | {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path / "store"),
    }
    result = await crawl(
        WithMedia, urls=site.urls(6), settings=settings, arguments={"media": media}
    )
    assert len(result.items) == 6
    for item in result.items:
        assert sorted(got["url"] for got in item["files"]) == sorted(media[:2])
    assert not any("secret" in path for path in site.pages_asked)
    assert all(each.pages_asked == [] for each in others)
    assert result.seconds < 3 * IDLE_SECS + 2 * HEARTBEAT_SECS


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
async def test_many_crawls_in_one_process(crawl: Crawl, server: Server) -> None:
    times = 8
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
