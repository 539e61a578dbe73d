"""Each fault of docs/reliability.md, as a real crawl.

Whatever fails, nothing is fetched that was not allowed, each request ends exactly once, and the
crawl ends within a bound.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from traceback import format_exception
from typing import Any

import pytest
from harness import faults_of_sites
from harness.comparison import ROWS, RULES, Means
from harness.crawling import Crawl, CrawlResult, Running
from harness.documents import rows, text
from harness.faults_around import FAULTS as FAULTS_AROUND
from harness.faults_around import AroundFault, Stage
from harness.faults_of_sites import ALLOWED, FORBIDDEN, Place, SiteFault
from harness.faults_of_sites import FAULTS as FAULTS_OF_SITES
from harness.replies import Reply
from harness.server import Server, Site
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.exceptions import NotConfigured
from scrapy.robotstxt import RobotParser

from scrapy_koster import KosterMiddleware, RobotsForbidden, RobotsUnavailable

BOUND_SECS = 150.0
HEALTHY = 3
LONG_RULES = f"{RULES}# {token_hex(20_000)}\n"
PAGES = (*ALLOWED, *FORBIDDEN)
REFUSED = {
    Means.RULES: RobotsForbidden,
    Means.RESTRICTED: RobotsForbidden,
    Means.DEFERRED: RobotsUnavailable,
}
RESULTS = {
    Means.RULES: "its rules are obeyed",
    Means.DEFERRED: "retried, then refused (RobotsUnavailable)",
}

# What Scrapy leaves open of a crawl that fails at its start is not ours to close.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True, scope="module")
def collected() -> Iterator[None]:
    """What is left open comes up here, and not in the next module."""
    yield
    gc.collect()


def warnings(result: CrawlResult) -> list[str]:
    """Those that name something to repair; which sites were closed is said at the end anyway."""
    lines = result.warnings
    return [line for line in lines if not line.startswith("Closed sites at the end")]


def kept(fault: SiteFault, place: Place, result: CrawlResult) -> list[str]:
    """What of the promises was not kept."""
    passed = {
        Means.RULES: ALLOWED,
        Means.UNRESTRICTED: PAGES,
    }.get(fault.means, ())
    urls = place.urls(PAGES)
    fetched = [url.removeprefix(place.origin) for url in result.fetched if url in urls]
    refused = [(url, error) for url, error in result.refused if url in urls]
    wrong = []
    if Counter(place.asked()) != Counter(passed):
        wrong.append(f"asked for {place.asked()}")
    if Counter(fetched) != Counter(passed):
        wrong.append(f"fetched {fetched}: {refused[:1]}")
    if Counter([*place.urls(fetched), *(url for url, _ in refused)]) != Counter(urls):
        wrong.append("not each request ended once")
    if {type(error) for _, error in refused} != {REFUSED[fault.means]} if refused else False:
        wrong.append(f"refused with {refused[0][1]!r}")
    return wrong


async def test_a_fault_of_a_site_opens_no_page_and_ends_each_request_once(
    crawl: Crawl, server: Server
) -> None:
    placed = [(fault, fault.place(server)) for fault in FAULTS_OF_SITES]
    with faults_of_sites.resolving():
        results = await crawl.together(
            *(
                crawl(
                    urls=[
                        Request(url, meta=dict(place.meta))
                        for fault, place in placed
                        if (fault.means is Means.DEFERRED) is deferred
                        for url in place.urls(PAGES)
                    ],
                    settings={**faults_of_sites.SETTINGS, "KOSTER_TIMEOUT_SECS": secs},
                )
                for deferred, secs in faults_of_sites.TIMEOUTS.items()
            )
        )
    broken = [
        f"{fault.group}: {fault.name}: {wrong}"
        for fault, place in placed
        if (wrong := kept(fault, place, results[fault.means is not Means.DEFERRED]))
    ]
    assert not broken, "\n".join(broken)
    for result in results:
        assert warnings(result) == []
        assert result.seconds <= BOUND_SECS


async def nothing_is_fetched(running: Running, sites: Sequence[Site]) -> None:
    with suppress(AssertionError):  # of an error in the log, with its traceback
        result = await running.result()
        assert result.fetched == ()
        assert len(result.refused) == len(PAGES) * HEALTHY
    assert not running.crawler.crawling
    assert all(site.pages_asked == [] for site in sites)


@pytest.mark.parametrize("fault", FAULTS_AROUND, ids=lambda fault: f"{fault.group}: {fault.name}")
async def test_a_fault_around_a_crawl_opens_no_page(
    crawl: Crawl, server: Server, tmp_path: Path, fault: AroundFault
) -> None:
    gate = server.gate()
    sites = [server.site() for _ in range(HEALTHY)]
    for site in sites:
        site.robots = Reply(200, LONG_RULES, gate=gate)
    stage = Stage(server, sites, tmp_path)
    urls = [site.url(path) for site in sites for path in PAGES]
    given = {"KOSTER_DEFER_FIRST_SECS": 0.1, "KOSTER_DEFER_LIMIT_SECS": 0.3}
    with stage.at_end:
        running = crawl.start(urls=urls, settings={**given, **fault.given(stage)})
        await crawl.until(lambda: fault.closed or all(s.asked("/robots.txt") for s in sites))
        stage.meanwhile()
        gate.open()
        if fault.closed:
            await nothing_is_fetched(running, sites)
            return
        result = await running.result()
    for site in sites:
        assert Counter(site.pages_asked) == Counter(ALLOWED)
    assert Counter(result.fetched) == Counter(s.url(path) for s in sites for path in ALLOWED)
    assert Counter([*result.fetched, *(url for url, _ in result.refused)]) == Counter(urls)
    assert {type(error) for _, error in result.refused} == {RobotsForbidden}
    assert len(warnings(result)) in range(0 if fault.silent else fault.warnings, fault.warnings + 1)
    assert result.seconds <= BOUND_SECS


class Unlicensed(RobotParser):
    @classmethod
    def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> Any:
        raise NotConfigured("no licence")

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return True


class NotOpening(Scheduler):
    def open(self, spider: Spider) -> Any:
        raise OSError("no queue")


class KosterOff(KosterMiddleware):
    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        raise NotConfigured("no luck")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"KOSTER_REPORT": "."}, "cannot be written"),
        ({"KOSTER_PARSER": Unlicensed}, "licence"),
        ({"SCHEDULER": NotOpening}, "no queue"),
        ({"DOWNLOADER_MIDDLEWARES": {KosterMiddleware: None, KosterOff: 100}}, "no KosterMiddle"),
    ],
)
async def test_a_crawl_stops_at_its_start_if_a_part_cannot_be_built(
    crawl: Crawl, server: Server, settings: dict[str, Any], says: str
) -> None:
    site = server.site()
    with pytest.raises(Exception) as caught:  # noqa: PT011  # whichever
        await crawl(urls=[site.url()], settings=settings)
    # Scrapy may stumble over what is not there once it has failed.
    assert says in "".join(format_exception(caught.value))
    assert site.requests == ()


def test_docs_reliability_has_each_fault_and_its_result() -> None:
    """Or docs/access.md has it."""
    tables = [cells for cells in rows(text("docs/reliability.md")) if len(cells) == 2]
    named = {(fault, result) for faults, result in tables for fault in faults.split("; ")}
    compared = {row.answer for row in ROWS}
    of_sites = [fault for fault in FAULTS_OF_SITES if fault.name not in compared]
    assert {(fault.name, RESULTS[fault.means]) for fault in of_sites} <= named
    assert {(fault.name, f"rules are obeyed; {fault.warned}") for fault in FAULTS_AROUND} <= named
