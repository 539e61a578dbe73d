"""The priority queue for broad crawls: which request comes next, and what that costs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.server import Server
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.settings import Settings
from scrapy.squeues import FifoMemoryQueue
from scrapy.utils.httpobj import urlparse_cached

from scrapy_koster import RoundRobinPriorityQueue

HOSTS = ("a", "b", "c", "d")


class Slots(dict[str, Any]):
    """Those of a downloader, by host. Counts how often it was asked for one."""

    looked = 0

    def __contains__(self, slot: object) -> bool:
        self.looked += 1
        return super().__contains__(slot)

    def set(self, host: str, downloads: int) -> None:
        self[host] = SimpleNamespace(active=range(downloads))


class Downloader:
    def __init__(self) -> None:
        self.slots = Slots()

    def get_slot_key(self, request: Request) -> str:
        return urlparse_cached(request).hostname or ""


def queue(downloader: Downloader) -> Any:
    crawler: Any = SimpleNamespace(
        settings=Settings(), engine=SimpleNamespace(downloader=downloader), spider=None
    )
    return RoundRobinPriorityQueue.from_crawler(crawler, FifoMemoryQueue, "", None)


class EnqueuesAll(RecordingSpider):
    """Has all its requests queued before the first is sent."""

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            self.crawler.engine.crawl(self.ask(url))
        for none in self.urls[:0]:
            yield none


def request(host: str, number: int = 0) -> Request:
    return Request(f"http://{host}/{number}")


def filled(queue: Any, hosts: Iterable[str], each: int = 1) -> Any:
    for host in hosts:
        for number in range(each):
            queue.push(request(host, number))
    return queue


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.sampled_from(HOSTS)),
        st.tuples(st.just("pop"), st.just("")),
        st.tuples(st.sampled_from(["0", "1", "2"]), st.sampled_from(HOSTS)),
    ),
    max_size=60,
)


@given(STEPS)
def test_whatever_happens_none_is_lost_and_the_fewest_downloads_come_first(
    steps: Sequence[tuple[str, str]],
) -> None:
    downloader, number = Downloader(), 0
    found = queue(downloader)
    waiting: dict[str, list[str]] = {}
    passed: dict[str, set[str]] = {}  # whom a host has let pass since its last turn

    def pop() -> None:
        one = found.pop()
        if one is None:
            assert not any(waiting.values())
            return
        host = urlparse_cached(one).hostname or ""
        assert one.url == waiting[host].pop(0)
        downloads = {each: _downloads(downloader, each) for each, urls in waiting.items() if urls}
        assert _downloads(downloader, host) <= min(downloads.values(), default=2)
        for other, count in downloads.items():
            if other != host and count <= _downloads(downloader, host):
                assert host not in passed.setdefault(other, set())
                passed[other].add(host)
        passed[host] = set()

    for step, host in steps:
        if step == "push":
            number += 1
            one = request(host, number)
            found.push(one)
            waiting.setdefault(host, []).append(one.url)
        elif step == "pop":
            pop()
        else:
            downloader.slots.set(host, int(step))
            passed.clear()  # whose turn it was depends on what was then
        assert len(found) == sum(map(len, waiting.values()))
    for _ in range(number + 1):
        pop()
    assert not any(waiting.values())


def _downloads(downloader: Downloader, host: str) -> int:
    slot = downloader.slots.get(host)
    return 0 if slot is None else len(slot.active)


@pytest.mark.parametrize("hosts", [100, 400])
def test_a_request_costs_the_same_however_many_hosts_wait(hosts: int) -> None:
    busy = 8
    downloader = Downloader()
    found = filled(queue(downloader), (f"h{number}" for number in range(hosts)), each=2)
    for number in range(busy):
        downloader.slots.set(f"h{number}", 1)
    for _ in range(hosts):
        downloader.slots.looked = 0
        found.pop()
        assert downloader.slots.looked <= busy + 1


async def test_a_crawl_goes_on_in_the_jobdir_of_scrapys_queue(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    sites = [server.site(host=f"127.5.0.{n}") for n in range(1, 5)]
    for site in sites:
        site.pages(Reply(delay=0.2))
    settings = {
        "JOBDIR": str(tmp_path),
        "CONCURRENT_REQUESTS": 1,
        "SCHEDULER_PRIORITY_QUEUE": DownloaderAwarePriorityQueue,
    }
    urls = [url for site in sites for url in site.urls(3)]
    running = crawl.start(EnqueuesAll, urls=urls, settings=settings)
    await crawl.until(lambda: any(site.pages_asked for site in sites))
    first = await running.stop()
    settings["SCHEDULER_PRIORITY_QUEUE"] = RoundRobinPriorityQueue
    second = await crawl(EnqueuesAll, urls=[], settings=settings)
    assert 0 < len(first.fetched) < len(urls)
    assert sorted([*first.fetched, *second.fetched]) == sorted(urls)
