"""`scrapy robots explain` and a crawl cannot disagree: both over the conformance cases."""

from __future__ import annotations

from time import time

import pytest
from harness.conformance import CASES
from harness.crawling import Crawl
from harness.replies import Reply
from harness.server import Server
from scrapy import Request, Spider
from scrapy.crawler import Crawler

from scrapy_koster import RobotsForbidden
from scrapy_koster.commands.explained import explain
from scrapy_koster.commands.lookup import Basis
from scrapy_koster.crawl.config import config_of
from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.site import site_of
from scrapy_koster.protocol.step import Obey
from scrapy_koster.protocol.verdict import Source, Verdict

CONFIG = config_of(Crawler(Spider))


def case_urls() -> list[tuple[str, bytes, str]]:
    """The URL of each case, as it stands and with dots that may be resolved: a site each."""
    rows: list[tuple[str, bytes, str]] = []
    for case in CASES:
        _, _, behind = case.url.partition("//")
        at = min((behind.find(sign) for sign in "/?#" if sign in behind), default=len(behind))
        for path in (behind[at:], f"/x/../{behind[at:].removeprefix('/')}"):
            url = f"http://www.fict.org:{len(rows) + 1}{path}"
            rows.append((url, case.body, case.agent))
    return [row for row in rows if row[2]]  # an empty header would be that of the settings


def explained(url: str, body: bytes, robot: str) -> Verdict:
    site = site_of(url)
    assert site is not None
    copy = Copy(site.robots_url, 200, body, None, None, time(), time())
    step = Obey(copy, time())
    basis = Basis(step, Source.FILE, KosterRobotParser(body), CONFIG, robot, time())
    url = Request(url).url
    return explain(url, robot, basis, failed=lambda error: pytest.fail(repr(error))).verdict


@pytest.mark.long
async def test_explain_says_what_a_crawl_does(crawl: Crawl, server: Server) -> None:
    rows = case_urls()
    proxy = server.site()
    requests, expected = [], {}
    for url, body, robot in rows:
        verdict = explained(url, body, robot)
        proxy.page(verdict.site.robots_url, Reply(body=body))
        headers = {"User-Agent": robot.encode()}
        requests.append(
            Request(url, headers=headers, meta={"proxy": proxy.url()}, dont_filter=True)
        )
        expected[verdict.url] = verdict
    storage = "scrapy_koster.storage.memory.MemoryStorage"
    settings = {"CONCURRENT_REQUESTS": 64, "URLLENGTH_LIMIT": 0, "KOSTER_STORAGE": storage}
    result = await crawl(urls=requests, settings=settings)
    allowed = [url.partition("#")[0] for url, verdict in expected.items() if verdict.allowed]
    fetched = [url.partition("#")[0] for url in result.fetched]
    assert sorted(fetched) == sorted(allowed)
    assert len(fetched) + len(result.refused) == len(rows)
    for url, error in result.refused:
        assert isinstance(error, RobotsForbidden)
        said, told = error.verdict, expected[url]
        assert (said.line, said.section, said.spelling) == (told.line, told.section, told.spelling)
    rewritten = [verdict for verdict in expected.values() if verdict.spelling]
    assert len(rewritten) > 50
