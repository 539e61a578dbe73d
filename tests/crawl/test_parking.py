"""Where requests wait: order, priority, and what goes to the file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from harness import forks
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spiders import Spider

from scrapy_koster.crawl.parking.file import ParkedFile
from scrapy_koster.crawl.parking.journal import NoJournal
from scrapy_koster.crawl.parking.parking import Parking

TESTS = str(Path(__file__).parents[1])


class WaitingSpider(Spider):
    name = "waiting"

    def parse(self, response: Response) -> None:
        pass

    def page(self, response: Response) -> None:
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
    parking.push("a", asked(1))
    parking.push("a", asked(2))
    assert parking.waiting_for("a") == 2
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
    parking.push("a", asked(3, 9))
    assert parking.waiting_for("a") == 1
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


def said_by(script: str, *arguments: object) -> str:
    """What a process of its own that has limits writes to its standard error."""
    run = forks.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=Path(__file__).parent,
        text=True,
        timeout=forks.ENDS_SECS,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": TESTS},
    )
    assert run.returncode == 0, run.stderr
    said: str = run.stderr
    return said


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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files as POSIX does")
@pytest.mark.parametrize("room", [0, 6_000, 300_000])
def test_nothing_is_lost_when_the_disk_is_full(room: int) -> None:
    assert said_by(NO_ROOM, room).count("All waiting requests are kept in memory") == 1


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
    before, _, after = record.getMessage().partition(" (")
    assert before == (
        "All waiting requests are kept in memory: their temporary file cannot be written"
    )
    assert after.startswith("FileNotFoundError: ")
    assert after.endswith("). Give the folder for temporary files (TMPDIR) more room")
    parking.close()


def test_a_file_of_the_jobdir_that_cannot_be_written_is_said_once(
    crawler: Crawler,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    parking = Parking(crawler, in_memory=0, folder=tmp_path)
    broken(monkeypatch, "_opened", sqlite3.OperationalError("disk is full"), 0)
    for number in range(3):
        parking.push("a", asked(number))
    parking.open("a")
    assert numbers(parking) == [0, 1, 2]
    [record] = caplog.records
    assert record.getMessage() == (
        f"{tmp_path / 'koster-parked.sqlite3'} cannot be written (OperationalError: disk is full)."
        " Waiting requests are kept in memory only, and lost if this process is killed. The next"
        " run may crawl pages of this run again. Give the JOBDIR more room"
    )
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


# What would not come back as it went.


class Reluctant:
    """Raises when it is pickled, or when it is unpickled."""

    def __init__(self, error: type[BaseException], *, back: bool) -> None:
        self.error = error
        self.back = back

    def __reduce__(self) -> Any:
        if self.back:
            return raising, (self.error,)
        raise self.error


def raising(error: type[BaseException]) -> None:
    raise error


@pytest.mark.parametrize("back", [True, False], ids=["reading", "writing"])
@pytest.mark.parametrize("error", [RuntimeError, RecursionError, OverflowError, MemoryError])
@pytest.mark.parametrize("lasting", [True, False])
def test_what_fails_to_be_pickled_stays_in_memory(
    crawler: Crawler, tmp_path: Path, error: type[BaseException], back: bool, lasting: bool
) -> None:
    parking = Parking(crawler, in_memory=0, folder=tmp_path if lasting else None)
    parking.push("a", asked(1, meta={"x": Reluctant(error, back=back)}))
    parking.push("a", asked(2))
    parking.open("a")
    assert numbers(parking) == [1, 2]
    parking.close()


@pytest.mark.parametrize("priority", [10**20, -(10**20), 2**63, -(2**63) - 1])
def test_a_priority_that_sqlite_has_no_room_for(crawler: Crawler, priority: int) -> None:
    parking = Parking(crawler, in_memory=0)
    parking.push("a", asked(1, priority))
    parking.push("a", asked(2))
    parking.open("a")
    assert numbers(parking) == ([1, 2] if priority > 0 else [2, 1])
    parking.close()


@pytest.mark.parametrize(
    "shared", [["x"], {"x": 1}, {1}, bytearray(b"x"), Reluctant(ValueError, back=False), (1, [2])]
)
def test_what_requests_share_they_go_on_to_share(crawler: Crawler, shared: object) -> None:
    parking = Parking(crawler, in_memory=1)
    for number in range(3):
        parking.push("a", asked(number, cb_kwargs={"found": shared}))
        parking.push("a", asked(number, meta={"found": shared}))
    assert parking._held_count == 6
    parking.open("a")
    out = [parking.pop() for _ in range(6)]
    found = [{**each.cb_kwargs, **each.meta}["found"] for each in out if each is not None]
    assert len(found) == 6
    assert all(each is shared for each in found)
    parking.close()


def test_what_nobody_can_tell_from_its_copy_goes_to_the_file(crawler: Crawler) -> None:
    parking = Parking(crawler, in_memory=0)
    plain = {"depth": 3, "text": "x", "octets": b"y", "rate": 0.5, "none": None, "pair": (1, "z")}
    parking.push("a", asked(1, meta=plain, cb_kwargs=plain))
    assert parking._held_count == 0
    parking.open("a")
    back = parking.pop()
    assert back is not None
    assert (back.meta, back.cb_kwargs) == (plain, plain)
    parking.close()


class Marked(Request):
    """Has a __dict__, as whatever is derived from Scrapy's request."""


def test_a_request_with_attributes_of_its_own_stays_in_memory(crawler: Crawler) -> None:
    parking = Parking(crawler, in_memory=0)
    request = Marked("http://a.example/1")
    parking.push("a", request)
    assert parking._held_count == 0
    request.mine = 1  # type: ignore[attr-defined]
    parking.push("a", request)
    assert parking._held_count == 1
    parking.close()


def broken(monkeypatch: pytest.MonkeyPatch, method: str, error: Exception, after: int) -> None:
    """ParkedFile.*method* raises from its call number *after* on."""
    real, calls = getattr(ParkedFile, method), iter(range(1_000_000))

    def failing(*arguments: Any) -> Any:
        if next(calls) >= after:
            raise error
        return real(*arguments)

    monkeypatch.setattr(ParkedFile, method, failing)


@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_file_that_cannot_be_read_any_more_loses_its_requests_alone(
    crawler: Crawler,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    after: int,
) -> None:
    parking = Parking(crawler, in_memory=4)
    for number in range(8):
        parking.push("ab"[number % 2], asked(number))
    broken(monkeypatch, "first", sqlite3.DatabaseError("malformed"), after)
    parking.open("a")
    parking.open("b")
    out = numbers(parking)
    assert {0, 1, 2, 3} <= set(out)
    assert len(parking) == 0
    said = [record.getMessage() for record in caplog.records]
    lost = sum(int(each.rsplit(": ", 1)[1]) for each in said if "are lost" in each)
    assert lost == 8 - len(out) > 0
    parking.close()


def test_a_request_that_cannot_be_read_back_is_lost_alone(
    crawler: Crawler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parking = Parking(crawler, in_memory=0)
    for number in range(5):
        parking.push("a", asked(number))
    parking.open("a")
    broken(monkeypatch, "read", ValueError("gone"), 4)
    assert numbers(parking) == [0, 1, 2, 3]
    assert len(parking) == 0
    assert caplog.records[-1].getMessage() == (
        "Requests that waited for a cannot be read back from their file, and are lost: 1"
    )
    parking.close()


# A file that lasts.


def left_behind(crawler: Crawler, folder: Path) -> tuple[Parking, list[int]]:
    """The parking of the next run, and which requests the last one left to it."""
    parking = Parking(crawler, folder=folder)
    found: list[Request] = []
    parking.begin(NoJournal(), found.append)
    return parking, sorted(int(request.url.rsplit("/", 1)[1]) for request in found)


@pytest.mark.parametrize("in_memory", [0, 3, 100])
def test_what_waits_is_there_for_the_next_run(
    crawler: Crawler, tmp_path: Path, in_memory: int
) -> None:
    parking = Parking(crawler, in_memory=in_memory, folder=tmp_path)
    for number in range(10):
        parking.push("ab"[number % 2], asked(number, number % 3))
    assert list(parking.drain()) == []
    parking.close()
    parking, found = left_behind(crawler, tmp_path)
    assert found == list(range(10))
    assert parking.by_site() == {"a": 5, "b": 5}
    assert (parking.waiting_for("a"), parking.waiting_for("c")) == (5, 0)
    assert parking._held_count == 0
    parking.push("a", asked(10, 1))
    parking.open("a")
    assert numbers(parking) == [2, 8, 4, 10, 0, 6]
    parking.close()


def test_what_waits_survives_a_process_that_is_killed(crawler: Crawler, tmp_path: Path) -> None:
    """What came out before is gone; what is to be given up is not."""
    parking = Parking(crawler, folder=tmp_path)
    for number in range(6):
        parking.push("a", asked(number))
    parking.give_up("a", lambda request: None)
    assert [parking.pop() is None for _ in range(2)] == [False, False]
    parking.push("a", asked(6))
    copied = tmp_path / "as it was"
    copied.mkdir()
    for each in tmp_path.glob("koster-parked.sqlite3*"):
        shutil.copy(each, copied)
    parking.close()
    next_run, found = left_behind(crawler, copied)
    assert found == [2, 3, 4, 5, 6]
    next_run.close()


def test_a_file_with_nothing_in_it_is_deleted(crawler: Crawler, tmp_path: Path) -> None:
    parking = Parking(crawler, in_memory=0, folder=tmp_path)
    parking.push("a", asked(1))
    assert len(list(tmp_path.iterdir())) > 0
    parking.open("a")
    assert numbers(parking) == [1]
    parking.close()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_kept_is_given_up_apart(crawler: Crawler, tmp_path: Path) -> None:
    """The others of the site wait on; so does what comes later."""
    parking = Parking(crawler, folder=tmp_path)
    for number in range(6):
        unwritable = {"callback": lambda response: None} if number % 2 else {}
        parking.push("a", asked(number, number // 2, **unwritable))
    parking.push("b", asked(9, callback=lambda response: None))
    marked: list[Request] = []
    parking.give_up_unwritten("none", marked.append)
    parking.give_up_unwritten("a", marked.append)
    assert parking.waiting_for("a") == 3
    assert numbers(parking) == [5, 3, 1]
    assert len(marked) == 3
    parking.give_up_unwritten("b", marked.append)
    assert parking.waiting_for("b") == 0
    assert numbers(parking) == [9]
    parking.push("a", asked(6))
    assert len(parking) == 4
    assert parking._held_count == 0
    parking.open("a")
    assert numbers(parking) == [4, 2, 0, 6]
    assert len(parking) == 0
    parking.close()


def test_what_cannot_be_kept_is_drained(crawler: Crawler, tmp_path: Path) -> None:
    parking = Parking(crawler, folder=tmp_path)
    parking.push("a", asked(1, callback=lambda response: None))
    parking.push("a", asked(2))
    assert [request.url[-1] for request in parking.drain()] == ["1"]
    parking.close()
    parking, found = left_behind(crawler, tmp_path)
    assert found == [2]
    parking.close()


def test_what_this_code_cannot_read_stays_for_one_that_can(
    crawler: Crawler, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spider = crawler.spider
    assert isinstance(spider, WaitingSpider)
    parking = Parking(crawler, in_memory=0, folder=tmp_path)
    parking.push("a", asked(1, callback=spider.page))
    parking.push("a", asked(2))
    parking.close()
    other = Crawler(Spider)
    other.spider = Spider("other")
    for _ in range(2):
        parking, found = left_behind(other, tmp_path)
        assert found == [2]
        assert len(parking) == 1
        [path] = tmp_path.glob("*.sqlite3")
        assert caplog.records[-1].getMessage() == (
            f"Requests in {path} that cannot be loaded: 1. This spider does not have their"
            " callbacks or classes. They stay in the file: to crawl them, run a version of the"
            " spider that has these"
        )
        parking.close()
    parking, found = left_behind(crawler, tmp_path)
    assert found == [1, 2]
    assert parking.by_site() == {"a": 2}
    parking.close()


@pytest.mark.parametrize("contents", ["text", "later", "folder"])
def test_a_file_that_cannot_be_used_is_said_once(
    crawler: Crawler, tmp_path: Path, caplog: pytest.LogCaptureFixture, contents: str
) -> None:
    path = tmp_path / "koster-parked.sqlite3"
    match contents:
        case "text":
            path.write_text("no database at all, but long enough to be looked at" * 100)
        case "later":
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA user_version = 99")
        case _:
            path.mkdir()
    parking, found = left_behind(crawler, tmp_path)
    assert found == []
    assert not parking._file.lasts
    parking.push("a", asked(1))
    parking.open("a")
    assert numbers(parking) == [1]
    parking.close()
    [record] = caplog.records
    before, _, after = record.getMessage().partition(": ")
    assert before == (
        f"{path} has requests that waited when the last run ended, and cannot be read"
    )
    assert after.partition(":")[0] in ("DatabaseError", "OperationalError", "OSError")
    end = ". In this run requests wait in memory. Repair the file, or delete it to"
    end += " drop these requests"
    assert after.endswith(end)
    assert path.exists()


DISK_FULL = """
import resource, sys
from pathlib import Path
from test_parking import *

crawler = Crawler(WaitingSpider)
crawler.spider = WaitingSpider()
parking = Parking(crawler, folder=Path(sys.argv[2]))
for number in range(1000):
    parking.push("a", asked(number, headers={"X": "x" * 100}))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
for number in range(1000, 3000):
    parking.push("a", asked(number, headers={"X": "x" * 100}))
parking.open("a")
assert numbers(parking) == list(range(3000))
parking.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files as POSIX does")
@pytest.mark.parametrize("room", [0, 300_000])
def test_a_full_disk_is_one_warning_and_loses_nothing(room: int, tmp_path: Path) -> None:
    """And where it has no room for what came out to be deleted, that is done twice at worst."""
    assert said_by(DISK_FULL, room, tmp_path).count("kept in memory only") == 1


@pytest.mark.slow
def test_what_cannot_be_deleted_does_not_come_out_again(
    crawler: Crawler, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In a time that grows with the number of requests."""
    times = []
    for count in (1000, 4000):
        parking = Parking(crawler, folder=tmp_path / str(count))
        (tmp_path / str(count)).mkdir()
        for number in range(count):
            parking.push("a", asked(number, number % 3))
        connection = parking._file._connection
        assert connection is not None
        connection.execute("PRAGMA query_only = ON")
        parking.open("a")
        began = time.process_time()
        assert numbers(parking) == sorted(range(count), key=lambda each: (-(each % 3), each))
        times.append(time.process_time() - began)
        connection.execute("PRAGMA query_only = OFF")
        parking.close()
        assert not list((tmp_path / str(count)).iterdir())
    assert times[1] < 4 * 2.3 * times[0]
    assert "The next run may crawl pages of this run again" in caplog.text


def test_another_process_that_has_the_file_is_not_waited_for(
    crawler: Crawler, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = (Parking(crawler, folder=tmp_path) for _ in range(2))
    first.push("a", asked(1))
    began = time.monotonic()
    for number in range(20):
        second.push("a", asked(number))
    assert time.monotonic() - began < 2
    second.open("a")
    assert numbers(second) == list(range(20))
    second.close()
    first.close()
    assert caplog.text.count("is locked") == 1


@pytest.mark.slow
def test_len_does_not_look_at_each_site(crawler: Crawler) -> None:
    """The engine asks at each turn."""
    times = []
    for sites in (100, 20_000):
        parking = Parking(crawler)
        for number in range(sites):
            parking.push(f"site{number}", asked(number))
        parking.open("site1")
        began = time.process_time()
        for _ in range(2000):
            assert len(parking) == sites
            assert parking.has_next
        times.append(time.process_time() - began)
        parking.close()
    assert times[1] < 5 * times[0] + 0.01
