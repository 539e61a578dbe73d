"""Requests that wait: in which order they come out, and which of them are in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spiders import Spider
from scrapy.utils.request import RequestFingerprinter

from scrapy_koster.crawl.parking.parked_file import ParkedFile
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import FetchFailure
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.step import Refuse

FAILURE = FetchFailure("it is away", 1, 0.0, 0.0, 0.0, None)


class Engine:
    """One whose downloader has nothing to do, but for what is put into it."""

    def __init__(self) -> None:
        self.under_way: set[Request] = set()
        self.slots: dict[str, Any] = {}
        self.slot_key = self.wake = lambda *_: ""


def parked_in(crawler: Crawler, folder: Path | None = None) -> Any:
    engine: Any = Engine()
    parked = ParkedRequests(crawler, file=ParkedFile(crawler, folder), engine=engine)
    parked.resume(None)
    assert sorted(parked.unopened) == sorted(parked.by_name())
    return parked


def settle(parked: ParkedRequests, name: str, *, is_kept: bool = False) -> None:
    """Have the site of this name given up, or have those that cannot be kept."""
    state = SiteState(Site("http", name, 80))
    parked.release(state, Refuse(FAILURE, 0.0), is_kept=is_kept)


class WaitingSpider(Spider):
    name = "waiting"

    def parse(self, response: Response) -> None:
        pass

    def page(self, response: Response) -> None:
        pass


@pytest.fixture
def crawler() -> Crawler:
    return crawler_of(WaitingSpider())


def crawler_of(spider: Spider) -> Crawler:
    crawler = Crawler(type(spider))
    crawler.spider = spider
    crawler.request_fingerprinter = RequestFingerprinter()
    return crawler


@pytest.fixture(params=[False, True], ids=["memory", "file"])
def parked(
    crawler: Crawler, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[ParkedRequests]:
    parked = parked_in(crawler, tmp_path if request.param else None)
    yield parked
    parked.close()


def asked(number: int, priority: int = 0, **arguments: Any) -> Request:
    return Request(f"http://a.example/{number}", priority=priority, **arguments)


def numbers(parked: ParkedRequests) -> list[int]:
    found = []
    while (request := parked.pop()) is not None:
        found.append(int(request.url.rsplit("/", 1)[1]))
    return found


@pytest.mark.parametrize("meta", [{}, {"retry_times": 1}])
def test_a_request_with_dont_filter_holds_no_other_back_unless_it_is_a_retry(
    crawler: Crawler, tmp_path: Path, meta: dict[str, int]
) -> None:
    parked = parked_in(crawler, tmp_path)
    parked.push("a", asked(1).replace(dont_filter=True, meta=meta))
    parked._file._disconnect()  # the process is killed
    parked = parked_in(crawler, tmp_path)
    assert parked.is_resumed(asked(1)) is bool(meta)
    parked.close()


def test_a_request_comes_back_as_it_went(parked: ParkedRequests, crawler: Crawler) -> None:
    spider = crawler.spider
    assert spider is not None
    request = Request(
        "http://a.example/1",
        callback=spider.parse,
        meta={"a": [1]},
        cb_kwargs={"b": 2},
        dont_filter=True,
        headers={"X": "y"},
    )
    for _ in range(4):
        parked.push("a", request)
    parked.let_out("a")
    for _ in range(4):
        back = parked.pop()
        assert back is not None
        assert back.to_dict(spider=spider) == request.to_dict(spider=spider)


@given(
    pushes=st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 2)), max_size=30),
    opened=st.sets(st.sampled_from("abc")),
    lasts=st.booleans(),
)
def test_nothing_is_lost_and_order_holds(
    pushes: list[tuple[str, int]], opened: set[str], lasts: bool, tmp_path_factory: Any
) -> None:
    crawler = crawler_of(WaitingSpider())
    parked = parked_in(crawler, tmp_path_factory.mktemp("jobdir") if lasts else None)
    for number, (site, priority) in enumerate(pushes):
        parked.push(site, asked(number, priority))
    for site in opened:
        parked.let_out(site)
    out = [number for number, (site, _) in enumerate(pushes) if site in opened]
    found = numbers(parked)
    assert sorted(found) == out
    for site in opened:
        of_site = [number for number in found if pushes[number][0] == site]
        assert of_site == sorted(of_site, key=lambda number: (-pushes[number][1], number))
    assert len(parked) == len(pushes) - len(out)
    left = 0 if lasts else len(parked)
    assert len(list(parked.unwritten())) == left
    parked.close()


# A file that lasts.


def test_what_cannot_be_kept_is_given_up_apart(crawler: Crawler, tmp_path: Path) -> None:
    """The others of the site wait on; so does what comes later."""
    parked = parked_in(crawler, folder=tmp_path)
    for number in range(6):
        unwritable = {"callback": lambda response: None} if number % 2 else {}
        parked.push("http://a", asked(number, number // 2, **unwritable))
    parked.push("http://b", asked(9, callback=lambda response: None))
    settle(parked, "none", is_kept=True)
    settle(parked, "a", is_kept=True)
    assert parked.waiting_in("http://a") == 3
    out = [parked.pop() for _ in range(3)]
    assert [each.url[-1] for each in out if each] == ["5", "3", "1"]
    assert all(each in parked.given_up for each in out)
    assert parked.pop() is None
    settle(parked, "b", is_kept=True)
    assert parked.waiting_in("http://b") == 0
    assert numbers(parked) == [9]
    parked.push("http://a", asked(6))
    assert len(parked) == 4
    parked.let_out("http://a")
    assert numbers(parked) == [4, 2, 0, 6]
    assert len(parked) == 0
    parked.close()


def test_when_a_site_first_failed_counts_over_the_runs(crawler: Crawler, tmp_path: Path) -> None:
    """Within a run, a new series of failures has its own beginning."""
    for folder in (None, tmp_path):
        parked = parked_in(crawler, folder)
        parked.push("http://a", asked(1))
        assert [parked.failed_since("http://a", since) for since in (5.0, 9.0)] == [5.0, 9.0]
        parked.close()
    parked = parked_in(crawler, tmp_path)
    assert parked.failed_since("http://a", 20.0) == 9.0
    parked.close()


def test_what_this_code_cannot_read_stays_for_one_that_can(
    crawler: Crawler, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spider = crawler.spider
    assert isinstance(spider, WaitingSpider)
    parked = parked_in(crawler, folder=tmp_path)
    parked.push("a", asked(1, callback=spider.page))
    parked.push("a", asked(2, callback=spider.page))
    parked.close()
    other = crawler_of(Spider("other"))
    for _ in range(2):
        parked = parked_in(other, tmp_path)
        parked.let_out("a")
        assert numbers(parked) == []
        assert len(parked) == 0
        [path] = tmp_path.glob("*.sqlite3")
        parked.close()
        assert caplog.records[-1].getMessage() == (
            f"Requests in {path} that cannot be loaded: 2. This spider does not have their"
            " callbacks or classes. They stay in the file: to crawl them, run a version of the"
            " spider that has these"
        )
    parked = parked_in(crawler, tmp_path)
    parked.let_out("a")
    assert numbers(parked) == [1, 2]
    parked.close()
