"""Requests that wait from the last run are known again, by whichever process looks."""

from __future__ import annotations

import dataclasses
import enum
import os
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from harness import forks
from scrapy import Field, Item, Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spiders import Spider
from scrapy.utils.request import RequestFingerprinter

from scrapy_koster.crawl.parking.identity import digest
from scrapy_koster.crawl.parking.journal import NoJournal
from scrapy_koster.crawl.parking.lastrun import LastRun
from scrapy_koster.crawl.parking.parking import Parking

TESTS = str(Path(__file__).parents[1])
WORDS = [f"word {number}" for number in range(20)]


class Plain:
    """Its representation is an address."""


class Colour(enum.Enum):
    RED = enum.auto()


@dataclasses.dataclass
class Found:
    tags: frozenset[str]
    by: object


class FoundItem(Item):
    tags = Field()


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError


def in_itself() -> list[Any]:
    loop: list[Any] = [{1, 2}]
    loop.append({"loop": loop})
    return loop


def metas() -> list[dict[Any, Any]]:
    """What start URLs carry: built anew by each run."""
    return [
        {"tags": set(WORDS)},
        {"tags": (frozenset(WORDS), [{"in": set(WORDS)}])},
        {"plain": Plain(), "listed": [Plain()]},
        {frozenset(WORDS): Colour.RED},
        {"found": Found(frozenset(WORDS), Plain())},
        {"item": FoundItem(tags=set(WORDS))},
        {"loop": in_itself()},
        {"unprintable": Unprintable()},
        {"odd": "\ud800", "when": datetime(2026, 1, 1, tzinfo=timezone.utc)},
        {"page": 3, "list": [1, 2], "rate": 0.5},
    ]


class StartingSpider(Spider):
    name = "starting"

    def page(self, response: Response) -> None:
        pass


def made_crawler() -> Crawler:
    crawler = Crawler(StartingSpider)
    crawler.spider = StartingSpider()
    crawler.request_fingerprinter = RequestFingerprinter(crawler)
    return crawler


def starts(crawler: Crawler) -> list[Request]:
    assert isinstance(crawler.spider, StartingSpider)
    callback = crawler.spider.page
    urls = (f"http://a.example/{number}" for number in range(100))
    return [
        Request(url, callback=callback, meta=meta) for url, meta in zip(urls, metas(), strict=False)
    ]


def leave(folder: Path) -> None:
    """Have each start wait when the run ends."""
    crawler = made_crawler()
    parking = Parking(crawler, folder=folder)
    for request in starts(crawler):
        parking.push("a", request)
    assert not list(parking.drain())
    parking.close()


def unknown(folder: Path) -> list[str]:
    """The starts of this run that it does not know from the last one."""
    crawler = made_crawler()
    last_run = LastRun(crawler)
    parking = Parking(crawler, folder=folder)
    assert parking.begin(NoJournal(), last_run.add) == len(metas())
    parking.close()
    return [str(request.meta) for request in starts(crawler) if not last_run.has(request)]


RUN = "import sys, test_lastrun, pathlib; print({}(pathlib.Path(sys.argv[1])))"


def test_start_urls_are_known_again_by_another_process(tmp_path: Path) -> None:
    for hash_seed, step in (("1", "test_lastrun.leave"), ("2", "test_lastrun.unknown")):
        run = subprocess.run(
            [sys.executable, "-c", RUN.format(step), str(tmp_path)],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=forks.ENDS_SECS,
            check=False,
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
        )
        assert run.returncode == 0, run.stderr
    assert run.stdout == "[]\n"


def test_requests_that_differ_are_told_apart() -> None:
    values: list[Any] = [
        1,
        True,
        1.0,
        "1",
        b"1",
        None,
        [1],
        (1,),
        {1},
        {1: 1},
        [[1], 1],
        [[1, 1]],
        ["a", "bc"],
        ["ab", "c"],
        {"a": "b"},
        {"b": "a"},
        Colour.RED,
        Found(frozenset("a"), 1),
        Found(frozenset("b"), 1),
        datetime(2026, 1, 1, tzinfo=timezone.utc),
        datetime(2026, 1, 2, tzinfo=timezone.utc),
    ]
    assert len({digest(value) for value in values}) == len(values)
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_a_request_that_cannot_have_been_written_is_none_that_waits(tmp_path: Path) -> None:
    """The scheduler looks for each request: an error would be the end of it."""
    crawler = made_crawler()
    last_run = LastRun(crawler)
    [waiting, *_] = starts(crawler)
    last_run.add(waiting)
    assert not last_run.has(waiting.replace(callback=lambda response: None))
    assert last_run.has(waiting)
    last_run.add(waiting.replace(callback=lambda response: None))
    assert last_run.take_first()[0] == "http://a.example"
    assert not last_run.is_new


def test_it_takes_linear_time() -> None:
    """What is shared is looked at once, and what is deep not to its end."""
    shared: list[Any] = []
    for _ in range(40):
        shared = [shared, shared]
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    began = time.process_time()
    digest([shared, deep, in_itself()])
    assert time.process_time() - began < 1
