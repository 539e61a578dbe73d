"""What is asked of the scheduler that is wrapped, and what is made of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import RecordingSpider
from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter

from scrapy_koster.crawl.parking.inner import InnerScheduler, folder_of

KEPT = "They are kept for the next run: start the same crawl again to go on"
GIVEN_BACK = "They go back to the scheduler that is wrapped, which may keep them"
BROKEN = OSError("no such file")


class Seen(BaseDupeFilter):
    def __init__(self) -> None:
        self.seen: list[Request] = []

    def request_seen(self, request: Request) -> bool:
        self.seen.append(request)
        return False


class Queue:
    """What a scheduler answers, one after the other: a request, None or an error."""

    persist: bool

    def __init__(self, answers: Sequence[Request | Exception | None] = (), left: int = 3) -> None:
        self.answers = list(answers)
        self.left = left
        self.taken: list[Request] = []

    def enqueue_request(self, request: Request) -> bool:
        self.taken.append(request)
        return True

    def has_pending_requests(self) -> bool:
        return bool(self.answers)

    def next_request(self) -> Request | None:
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def __len__(self) -> int:
        return self.left


class ScrapysQueue(Queue, Scheduler):
    """One that counts as Scrapy's own, whose disk queues may be broken."""

    def __init__(self, answers: Sequence[Request | Exception | None] = (), left: int = 3) -> None:
        super().__init__(answers, left)
        self.df = self.filter = Seen()

    def __len__(self) -> int:
        self.left -= 1
        return max(self.left, 0)


def wrapped(scheduler: Any, jobdir: Path | None = None) -> InnerScheduler:
    crawler = Crawler(RecordingSpider, {"JOBDIR": str(jobdir)} if jobdir else {})
    crawler.spider = RecordingSpider()
    folder = folder_of(type(scheduler), crawler.settings)
    return InnerScheduler(crawler, scheduler, folder=folder)


@pytest.mark.parametrize(
    ("kind", "persist", "jobdir", "keeps", "fate"),
    [
        (ScrapysQueue, None, True, True, KEPT),
        (
            ScrapysQueue, None, False, False,
            "They are dropped: set JOBDIR to keep them for the next run",
        ),
        (Queue, True, False, True, KEPT),
        (
            Queue, False, False, False,
            "They are dropped: set SCHEDULER_PERSIST = True to keep them for the next run",
        ),
        (Queue, None, False, False, GIVEN_BACK),
        (Queue, None, True, False, GIVEN_BACK),
    ],
)  # fmt: skip
def test_what_becomes_of_what_still_waits(
    tmp_path: Path, kind: Any, fate: str, *, persist: bool | None, jobdir: bool, keeps: bool
) -> None:
    scheduler = kind()
    if persist is not None:
        scheduler.persist = persist
    one = wrapped(scheduler, tmp_path if jobdir else None)
    assert (one.keeps_requests, one.fate(0)) == (keeps, fate)
    assert one.takes_back is ("dropped" not in fate)


def test_what_is_given_back_is_taken_although_it_was_seen(tmp_path: Path) -> None:
    queue = Queue()
    one = wrapped(queue)
    requests = [Request("http://a.example/1"), Request("http://a.example/2", dont_filter=True)]
    one.take_back(requests)
    assert [(r.url, r.dont_filter, r.meta) for r in queue.taken] == [
        ("http://a.example/1", True, {}), ("http://a.example/2", True, {})
    ]  # fmt: skip
    assert one.fate(2) == GIVEN_BACK
    jobdir = wrapped(ScrapysQueue(), tmp_path)
    assert jobdir.fate(2) == f"{KEPT}. Those that cannot be written there: 2"


def test_what_was_crawled_by_a_killed_process_is_seen() -> None:
    scheduler = ScrapysQueue()
    once, always = Request("http://a.example"), Request("http://b.example", dont_filter=True)
    wrapped(scheduler).mark_seen(once)
    wrapped(scheduler).mark_seen(always)
    wrapped(Queue()).mark_seen(once)  # which has no dupefilter
    assert scheduler.filter.seen == [once]


def test_what_cannot_be_read_in_a_jobdir_is_passed_over_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    request = Request("http://a.example")
    one = wrapped(ScrapysQueue([BROKEN, BROKEN, request, BROKEN, None], left=9), tmp_path)
    assert one.next_request() is request
    assert one.has_pending_requests()
    assert one.next_request() is None
    [told] = [record for record in caplog.records if record.levelname != "DEBUG"]
    assert told.getMessage() == (
        "Part of the queue in the JOBDIR cannot be read, probably because a run was killed. These"
        " requests are not crawled, the others are"
    )
    assert told.exc_info
    assert "OSError: no such file" in str(told.exc_info[1])


def test_a_queue_that_only_fails_has_nothing_more(tmp_path: Path) -> None:
    scheduler = ScrapysQueue([BROKEN] * 9, left=3)
    one = wrapped(scheduler, tmp_path)
    assert one.next_request() is None
    assert not one.has_pending_requests()
    assert len(scheduler.answers) == 5  # as often as it became shorter, and once
    scheduler.answers = [Request("http://a.example"), None]
    assert one.next_request() is not None
    assert one.has_pending_requests()


def test_what_another_scheduler_raises_is_raised() -> None:
    with pytest.raises(OSError, match="no such file"):
        wrapped(Queue([BROKEN])).next_request()
