"""What is asked of the scheduler that is wrapped, and what is made of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import RecordingSpider
from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.utils.test import get_crawler

from scrapy_koster.crawl.components.scheduler import DeferringScheduler
from scrapy_koster.crawl.context import context_of

MEMORY = "scrapy_koster.storage.memory.MemoryStorage"
BROKEN = OSError("no such file")


class Queue:
    """What a scheduler answers, one after the other: a request, None or an error."""

    persist: bool

    def __init__(self, answers: Sequence[Request | Exception | None] = (), left: int = 3) -> None:
        self.is_closed = False
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

    def close(self, reason: str) -> None:
        self.is_closed = True

    def __len__(self) -> int:
        return self.left


class ScrapysQueue(Queue, Scheduler):
    """One that counts as Scrapy's own, whose disk queues may be broken."""

    def __len__(self) -> int:
        self.left -= 1
        return max(self.left, 0)


def wrapped(scheduler: Any, jobdir: Path | None = None) -> DeferringScheduler:
    settings = {"KOSTER_STORAGE": MEMORY, "KOSTER_FALLBACK_SCHEDULER": type(scheduler)}
    crawler = get_crawler(RecordingSpider, settings | ({"JOBDIR": str(jobdir)} if jobdir else {}))
    crawler.spider = RecordingSpider()
    return DeferringScheduler(crawler, scheduler, context_of(crawler))


def test_what_cannot_be_read_in_a_jobdir_is_passed_over_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    request = Request("http://a.example")
    one = wrapped(ScrapysQueue([BROKEN, BROKEN, request, BROKEN, None], left=9), tmp_path)
    assert one._next_readable() is request
    assert one.has_pending_requests()
    assert one._next_readable() is None
    [told] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert told.getMessage() == (
        "Part of the queue in the JOBDIR cannot be read, probably because a run was killed. These"
        " requests are lost, the rest are crawled"
    )
    assert told.exc_info
    assert "OSError: no such file" in str(told.exc_info[1])
