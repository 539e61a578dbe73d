"""A long queue of sites that do not answer: few are asked at a time, and none keeps the others."""

from __future__ import annotations

import pytest
from harness.crawling import Crawl
from harness.replies import Hang
from harness.server import Server
from harness.virtual import TIME

pytestmark = pytest.mark.crawl


@pytest.mark.promise("README.md", "A failing site does not hold up the others")
@pytest.mark.promise("docs/access.md", "a healthy site does not wait for sites that hang")
async def test_300_hanging_sites_delay_a_healthy_one_by_3_seconds(
    crawl: Crawl, server: Server
) -> None:
    down, healthy = server.site(host="0.0.0.0"), server.site()
    down.robots = Hang()
    urls = [f"http://127.3.{n // 250}.{n % 250 + 1}:{down.port}/page" for n in range(300)]
    began = TIME.now()
    running = crawl.start(urls=[*urls, healthy.url("/page")])
    await crawl.until(lambda: healthy.pages_asked)
    assert TIME.now() - began <= 3
    await running.stop()
