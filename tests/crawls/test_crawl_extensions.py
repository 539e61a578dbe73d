"""What Scrapy brings along, beside sites that fail: pipelines, feeds, limits, other schemes.

In each crawl nothing leaks, each request ends once, and the crawl ends in its time.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Sequence
from pathlib import Path
from threading import enumerate as threads
from typing import Any

import pytest
from harness.crawling import Crawl, CrawlResult, WithFiles
from harness.replies import Hang, Reply
from harness.server import Server, Site

RULES = "User-agent: *\nDisallow: /secret\n"
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


def sites_of(server: Server) -> tuple[Site, Site, Site, Site]:
    """Return a site with rules, and others that hang, fail and are down."""
    site, hanging, failing = (server.site(host=f"127.0.0.{n}") for n in (2, 3, 4))
    site.robots, hanging.robots, failing.robots = RULES, Hang(), Reply(503)
    return site, hanging, failing, server.down()


@pytest.mark.beside("Scrapy", "FilesPipeline")
async def test_media_pipelines(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    """Its downloads obey."""
    site, *others = sites_of(server)
    paths = ("/a.png", "/b.png", "/secret/c.png")
    for path in paths:
        site.page(path, "a picture")
    media = [*map(site.url, paths), *(each.url("/d.png") for each in others)]
    settings = SOON | {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path / "store"),
    }
    result = await crawl(
        WithFiles, urls=site.urls(6), settings=settings, arguments={"media": media}
    )
    assert len(result.items) == 6
    for item in result.items:
        assert sorted(got["url"] for got in item["files"]) == sorted(media[:2])
    assert not any("secret" in path for path in site.pages_asked)
    assert all(each.pages_asked == [] for each in others)
    assert result.seconds < IDLE_SECS + HEARTBEAT_SECS


# Many crawls in one process.


async def measured(crawl: Crawl, sites: Sequence[Site]) -> tuple[float, int, int]:
    """Crawl once; return the memory in MB, the open files and the threads."""
    urls = [each.url(path) for each in sites for path in ("/1", "/secret")]
    result: CrawlResult = await crawl(urls=urls, settings=SOON | {"KOSTER_TIMEOUT_SECS": 0.3})
    assert result.fetched == (sites[0].url("/1"),)
    assert len(result.refused) == 7
    crawl.runs.clear()
    del result
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20, len(list(Path("/proc/self/fd").iterdir())), len(threads())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc, as Linux has it")
async def test_many_crawls_in_one_process(crawl: Crawl, server: Server) -> None:
    """Memory, open files and threads stay what they were after the third."""
    sites = sites_of(server)
    logging.disable(logging.CRITICAL)  # pytest keeps what is logged, and with it each crawler
    try:
        seen = [await measured(crawl, sites) for _ in range(6)]
    finally:
        logging.disable(logging.NOTSET)
    memory, files, running = zip(*seen[3:], strict=True)
    assert memory[-1] - memory[0] < 10
    assert max(files) - min(files) <= 8
    assert max(running) - min(running) <= 8
