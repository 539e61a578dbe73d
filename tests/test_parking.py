"""Where requests wait: order, priority, and what goes to the file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
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

from scrapy_koster.crawl.parking.memory import Parking


class WaitingSpider(Spider):
    name = "waiting"

    def parse(self, response: Response) -> None:
        pass


@pytest.fixture
def crawler() -> Crawler:
    crawler = Crawler(WaitingSpider)
    crawler.spider = WaitingSpider()
    return crawler


@pytest.fixture(params=[100, 3, 0], ids=["memory", "both", "file"])
def parking(crawler: Crawler, request: pytest.FixtureRequest) -> Iterator[Parking]:
    parking = Parking(crawler, in_memory=request.param)
    yield parking
    parking.close()


def asked(number: int, priority: int = 0, **arguments: Any) -> Request:
    return Request(f"http://a.example/{number}", priority=priority, **arguments)


def numbers(parking: Parking) -> list[int]:
    found = []
    while (request := parking.pop()) is not None:
        found.append(int(request.url.rsplit("/", 1)[1]))
    return found


def test_nothing_comes_out_before_its_site_is_open(parking: Parking) -> None:
    assert parking.push("a", asked(1)) == 1
    assert parking.push("a", asked(2)) == 2
    assert parking.pop() is None
    parking.open("b")
    assert parking.pop() is None
    assert len(parking) == 2
    parking.open("a")
    parking.open("a")
    assert numbers(parking) == [1, 2]
    assert len(parking) == 0


def test_what_is_given_up_comes_out_apart_from_what_comes_later(parking: Parking) -> None:
    """Its site may be due again, and closed, by the time it comes out."""
    parking.push("a", asked(1))
    parking.push("a", asked(2, -1))
    marked: list[Request] = []
    parking.give_up("a", marked.append)
    assert parking.push("a", asked(3, 9)) == 1
    assert numbers(parking) == [1, 2]
    assert [request.url[-1] for request in marked] == ["1", "2"]
    assert len(parking) == 1
    parking.open("a")
    assert numbers(parking) == [3]
    assert len(marked) == 2
    parking.give_up("a", marked.append)
    assert len(parking) == 0


def test_first_come_first_served_among_equals(parking: Parking) -> None:
    for number in range(10):
        parking.push("a", asked(number))
    parking.open("a")
    assert numbers(parking) == list(range(10))


def test_higher_priorities_first_across_open_sites(parking: Parking) -> None:
    for number, priority in enumerate([0, 5, -1, 5]):
        parking.push("a", asked(number, priority))
        parking.push("b", asked(10 + number, priority))
        parking.push("shut", asked(99, 100))
    parking.open("a")
    parking.open("b")
    assert numbers(parking) == [1, 11, 3, 13, 0, 10, 2, 12]
    assert len(parking) == 4


def test_a_push_closes_its_site_again(parking: Parking) -> None:
    parking.push("a", asked(1))
    parking.push("a", asked(2))
    parking.open("a")
    first = parking.pop()
    assert first is not None
    assert first.url.endswith("/1")
    parking.push("a", asked(3))
    assert parking.pop() is None
    parking.open("a")
    assert numbers(parking) == [2, 3]


def test_drain_takes_all(parking: Parking) -> None:
    for number in range(5):
        parking.push(f"site{number % 2}", asked(number))
    parking.open("site0")
    assert sorted(request.url[-1] for request in parking.drain()) == list("01234")
    assert len(parking) == 0
    assert parking.pop() is None


def test_a_request_comes_back_as_it_went(parking: Parking, crawler: Crawler) -> None:
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
        parking.push("a", request)
    parking.open("a")
    for _ in range(4):
        back = parking.pop()
        assert back is not None
        assert back.to_dict(spider=spider) == request.to_dict(spider=spider)


def test_what_cannot_be_written_stays_in_memory(crawler: Crawler) -> None:
    parking = Parking(crawler, in_memory=0)
    parking.push("a", asked(1, callback=lambda response: None))
    parking.push("a", asked(2, meta={"lock": lambda: None}))
    parking.push("a", asked(3))
    parking.open("a")
    assert numbers(parking) == [1, 2, 3]
    parking.close()


NO_ROOM = """
import resource, sys
from test_parking import *

crawler = Crawler(WaitingSpider)
crawler.spider = WaitingSpider()
parking = Parking(crawler, in_memory=10)
room = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
for number in range(3000):
    parking.push("a", asked(number, number % 3, headers={"X": "x" * 100}))
parking.open("a")
assert numbers(parking) == sorted(range(3000), key=lambda number: (-(number % 3), number))
parking.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files as POSIX does")
@pytest.mark.parametrize("room", [0, 6_000, 300_000])
def test_nothing_is_lost_when_the_disk_is_full(room: int) -> None:
    run = subprocess.run(
        [sys.executable, "-c", NO_ROOM, str(room)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("all kept in memory") == 1


def test_without_a_folder_for_temporary_files(
    crawler: Crawler,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    parking = Parking(crawler, in_memory=0)
    for number in range(3):
        parking.push("a", asked(number))
    parking.open("a")
    assert numbers(parking) == [0, 1, 2]
    [record] = caplog.records
    assert "Give the folder for temporary files (TMPDIR) more room" in record.getMessage()
    parking.close()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
def test_the_file_cannot_be_found(
    crawler: Crawler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    parking = Parking(crawler, in_memory=0)
    for number in range(1000):
        parking.push("a", asked(number))
    assert list(tmp_path.iterdir()) == []
    parking.open("a")
    assert numbers(parking) == list(range(1000))
    parking.close()


@given(
    pushes=st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 2)), max_size=30),
    opened=st.sets(st.sampled_from("abc")),
    in_memory=st.integers(0, 10),
)
def test_nothing_is_lost_and_order_holds(
    pushes: list[tuple[str, int]], opened: set[str], in_memory: int
) -> None:
    crawler = Crawler(WaitingSpider)
    crawler.spider = WaitingSpider()
    parking = Parking(crawler, in_memory=in_memory)
    for number, (site, priority) in enumerate(pushes):
        parking.push(site, asked(number, priority))
    for site in opened:
        parking.open(site)
    out = [number for number, (site, _) in enumerate(pushes) if site in opened]
    assert numbers(parking) == sorted(out, key=lambda number: (-pushes[number][1], number))
    assert len(parking) == len(pushes) - len(out)
    assert len(list(parking.drain())) == len(pushes) - len(out)
    parking.close()
