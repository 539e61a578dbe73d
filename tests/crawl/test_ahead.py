"""How many sites wait before the scheduler takes no more requests from the queue."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from harness.clocks import HandClock
from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster import DeferringScheduler
from scrapy_koster.crawl.assembly import Assembly, Parts, assembly_of
from scrapy_koster.crawl.clock import set_clock
from scrapy_koster.crawl.keeping.ahead import Ahead
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import Failure, NoAnswer
from scrapy_koster.protocol.site import Site


def sites(count: int) -> list[SiteState]:
    return [SiteState(Site("http", f"{n}.example", 80)) for n in range(count)]


def failed(state: SiteState) -> SiteState:
    state.learn(state.facts._replace(known=Failure("503", 1, 0.0, 0.0, 10.0, None)))
    return state


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def room() -> list[str]:
    return []


@pytest.fixture
def ahead(clock: HandClock, room: list[str]) -> Ahead:
    ahead = Ahead(clock, lambda: room.append("room"), first=3, waiting=5)
    ahead.begun()
    return ahead


def full(ahead: Ahead) -> bool:
    return ahead.is_full


def test_it_is_full_while_enough_sites_are_asked_for_the_first_time(ahead: Ahead) -> None:
    one, two, three = sites(3)
    ahead.begins(one)
    ahead.begins(two)
    ahead.begins(two)
    assert not full(ahead)
    ahead.begins(three)
    assert full(ahead)
    ahead.ends(one)
    assert not full(ahead)


def test_a_site_that_may_hang_counts_for_a_second(
    ahead: Ahead, clock: HandClock, room: list[str]
) -> None:
    one, *others = sites(4)
    ahead.begins(one)
    clock.go_on(0.5)
    for state in others[:2]:
        ahead.begins(state)
    assert full(ahead)
    clock.go_on(0.4)
    assert full(ahead)
    assert not room
    clock.go_on(0.1)
    assert not full(ahead)
    assert room == ["room"]
    ahead.begins(others[2])
    assert full(ahead)
    clock.go_on(0.5)
    assert not full(ahead)


def test_all_that_wait_have_a_limit_too(ahead: Ahead, clock: HandClock, room: list[str]) -> None:
    """Those that hang, and those that are deferred, until one of them waits no longer."""
    hanging, deferred, more = sites(3), [failed(state) for state in sites(2)], sites(1)
    for state in hanging:
        ahead.begins(state)
    clock.go_on(1)
    assert not full(ahead)
    room.clear()
    for state in deferred:
        ahead.begins(state)
    assert full(ahead)
    clock.go_on(1000)
    assert full(ahead)
    assert not room
    ahead.ends(deferred[0])
    assert not full(ahead)
    ahead.begins(more[0])
    assert full(ahead)


def test_a_site_that_ends_after_the_close_leaves_no_timer(ahead: Ahead, clock: HandClock) -> None:
    """Attempts that are cancelled by the close end afterwards."""
    for state in sites(4):
        ahead.begins(state)
    ahead.close()
    ahead.ends(next(iter(ahead._waiting)))
    assert not clock.waiting


def test_a_crawl_begins_with_two_sites(clock: HandClock, room: list[str]) -> None:
    """Until the first page has come, or for a quarter of a second."""
    ahead = Ahead(clock, lambda: room.append("room"), first=3, waiting=5)
    one, two, three = sites(3)
    ahead.begins(one)
    clock.go_on(0.2)
    assert not full(ahead)
    ahead.begins(two)
    assert full(ahead)
    assert not room
    clock.go_on(0.05)
    assert not full(ahead)
    assert room == ["room"]
    ahead.begins(three)
    assert full(ahead)


def test_none_begins_while_the_first_page_is_under_way_for_a_moment(
    clock: HandClock, room: list[str]
) -> None:
    ahead = Ahead(clock, lambda: room.append("room"), first=3, waiting=5)
    one, two, three = sites(3)
    ahead.begins(one)
    ahead.begins(two)
    ahead.ends(one)
    assert not full(ahead)
    ahead.first_sent()
    ahead.ends(two)
    clock.go_on(0.01)
    assert full(ahead)
    assert not room
    clock.go_on(0.01)
    assert not full(ahead)
    assert room == ["room"]
    ahead.begins(two)
    ahead.begins(three)
    assert full(ahead)


def test_that_moment_ends_when_the_crawl_has_begun(clock: HandClock, room: list[str]) -> None:
    ahead = Ahead(clock, lambda: room.append("room"), first=3, waiting=5)
    (one,) = sites(1)
    ahead.begins(one)
    ahead.ends(one)
    ahead.first_sent()
    ahead.begun()
    assert not full(ahead)
    assert room == ["room"]
    assert not clock.waiting
    ahead.first_sent()
    assert not full(ahead)


def test_there_is_no_such_moment_where_no_site_has_waited(clock: HandClock) -> None:
    """All are known: none is looked for that could delay a page."""
    ahead = Ahead(clock, lambda: None, first=3, waiting=5)
    ahead.first_sent()
    assert not full(ahead)
    assert not clock.waiting


def test_one_that_has_begun_waits_for_no_time(clock: HandClock, room: list[str]) -> None:
    ahead = Ahead(clock, lambda: room.append("room"), first=3, waiting=5)
    for state in sites(2):
        ahead.begins(state)
    ahead.begun()
    assert not full(ahead)
    assert room == ["room"]
    assert not clock.waiting


def test_one_that_ends_before_it_has_begun_leaves_no_timer(clock: HandClock) -> None:
    ahead = Ahead(clock, lambda: None, first=3, waiting=5)
    for state in sites(2):
        ahead.begins(state)
    assert clock.waiting
    ahead.close()
    assert not clock.waiting


def test_sites_that_failed_before_are_none_of_the_first(ahead: Ahead) -> None:
    for state in sites(4):
        ahead.begins(failed(state))
    assert not full(ahead)


def test_no_timer_is_left(ahead: Ahead, clock: HandClock) -> None:
    for state in sites(3):
        ahead.begins(state)
    ahead.close()
    assert not clock.waiting


@pytest.mark.parametrize(
    ("places", "memory", "first", "waiting"), [(8, 10, 112, 1000), (64, 10_000, 128, 10_000)]
)
def test_the_limits_of_a_crawl(places: int, memory: int, first: int, waiting: int) -> None:
    def taken(state_of: Callable[[SiteState], SiteState]) -> int:
        clock = HandClock()
        ahead = Ahead.of_crawl(clock, lambda: None, places=places, memory=memory)
        ahead.begun()
        for count, state in enumerate(sites(20_000)):
            if ahead.is_full:
                return count
            ahead.begins(state_of(state))
        raise AssertionError("it has no limit")

    assert taken(lambda state: state) == first
    assert taken(failed) == waiting


class SlowQueue(BaseScheduler):
    """As Scrapy's with many hosts in it: what it hands out takes its time."""

    clock: HandClock
    secs = 0.01
    number = 0

    def has_pending_requests(self) -> bool:
        return True

    def enqueue_request(self, request: Request) -> bool:
        return True

    def next_request(self) -> Request:
        self.clock.secs += self.secs
        type(self).number += 1
        return Request(f"http://{self.number}.example/")


class Never:
    """No site answers."""

    def __init__(self) -> None:
        self._asked: list[Deferred[Any]] = []

    async def fetch(self, *_: object, **__: object) -> Any:
        self._asked.append(Deferred())
        return await maybe_deferred_to_future(self._asked[-1])

    def cancel(self) -> None:
        while self._asked:
            self._asked.pop().callback(NoAnswer("the crawl is closing"))


def opened(
    queue: type[BaseScheduler],
    clock: HandClock,
    woken: Callable[[], object],
    *,
    taken: int = 2,
    first: int = 10,
    has_begun: bool = True,
) -> tuple[DeferringScheduler, Assembly]:
    """A scheduler that wraps *queue*; of its 4 places some are *taken*."""
    settings = {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 4,
        "KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage",
        "KOSTER_FALLBACK_SCHEDULER": queue,
    }
    crawler = Crawler(Spider, settings)
    crawler.spider = Spider("slow")
    crawler.stats = MemoryStatsCollector(crawler)
    wakes = SimpleNamespace(schedule=woken)
    crawler.engine = SimpleNamespace(  # type: ignore[assignment]
        _slot=SimpleNamespace(nextcall=wakes),
        downloader=SimpleNamespace(active=[Request("http://taken.example/")] * taken),
    )
    set_clock(crawler, clock)
    assembly = assembly_of(
        crawler,
        Parts(fetch=Never(), ahead=lambda *given: Ahead(*given, first=first, waiting=100)),
    )
    scheduler = DeferringScheduler.from_crawler(crawler)
    assembly.parked.open(is_kept=False)
    if has_begun:
        assembly.sites.ahead.begun()
    return scheduler, assembly


async def test_the_scheduler_takes_requests_for_milliseconds_and_until_enough_wait(
    clock: HandClock,
) -> None:
    class Queue(SlowQueue):
        pass

    Queue.clock = clock
    woken: list[bool] = []
    scheduler, assembly = opened(Queue, clock, lambda: woken.append(True))
    taken = []
    while not assembly.sites.ahead.is_full:
        before = Queue.number
        assert scheduler.next_request() is None
        taken.append(Queue.number - before)
    assert taken == [4, 4, 2]
    assert len(woken) == 2  # when enough sites wait an answer wakes it
    assert scheduler.next_request() is None
    assert Queue.number == 10
    await assembly.sites.close()


async def test_the_loop_goes_on_after_some_requests_however_quick_they_are(
    clock: HandClock,
) -> None:
    class Queue(SlowQueue):
        secs = 0.0

    Queue.clock = clock
    scheduler, assembly = opened(Queue, clock, int, first=100)
    assert scheduler.next_request() is None
    assert Queue.number == 16
    await assembly.sites.close()


async def test_whether_there_are_more_is_not_asked_where_it_is_about_to_look(
    clock: HandClock,
) -> None:
    """Scrapy's queue of many hosts takes its time to count its requests."""

    class Queue(SlowQueue):
        asked = 0

        def has_pending_requests(self) -> bool:
            type(self).asked += 1
            return False

    Queue.clock = clock
    scheduler, assembly = opened(Queue, clock, int, first=5)
    assert scheduler.next_request() is None
    assert Queue.number == 4
    assert scheduler.has_pending_requests()
    scheduler.next_request()
    assert Queue.number == 5
    assert (Queue.asked, scheduler.has_pending_requests(), Queue.asked) == (0, False, 1)
    await assembly.sites.close()


class Few(BaseScheduler):
    """Of a queue that has some requests."""

    urls: list[str]

    def has_pending_requests(self) -> bool:
        return bool(self.urls)

    def enqueue_request(self, request: Request) -> bool:
        self.urls.append(request.url)
        return True

    def next_request(self) -> Request | None:
        return decided(self.urls.pop(0)) if self.urls else None


def decided(url: str) -> Request:
    """A request that can be decided at once, unless it is to a new site."""
    return Request(url, meta={"dont_obey_robotstxt": not url.endswith("/new")})


def taken_by(scheduler: DeferringScheduler) -> list[str]:
    """The URLs that come out."""
    found = []
    while (request := scheduler.next_request()) is not None:
        found.append(request.url)
    return found


async def test_with_each_page_a_new_site_is_asked_while_all_places_are_taken(
    clock: HandClock,
) -> None:
    class Queue(Few):
        urls = [f"http://{n}.example/new" for n in range(20)]

    scheduler, assembly = opened(Queue, clock, int)
    ready = [f"http://ready{n}.example/" for n in range(6)]
    for url in ready:
        assembly.parked.push(url, decided(url))
        assembly.parked.let_out(url)
    taken = []
    for _ in range(6):
        request = scheduler.next_request()
        assert request is not None
        taken.append(request.url)
        assert len(assembly.parked) == 6
    assert taken == ready
    await assembly.sites.close()


async def test_new_requests_and_those_that_are_ready_come_by_turns(clock: HandClock) -> None:
    class Queue(Few):
        urls = ["http://a.example/known"] * 4

    scheduler, assembly = opened(Queue, clock, int, taken=4)
    for number in range(2):
        url = f"http://ready{number}.example/"
        assembly.parked.push(url, decided(url))
        assembly.parked.let_out(url)
    known, *ready = "http://a.example/known", "http://ready0.example/", "http://ready1.example/"
    assert taken_by(scheduler) == [known, ready[0], known, ready[1], known, known]
    await assembly.sites.close()
