"""A queue of Scrapy's in a JOBDIR, part of which cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from harness.crawling import RecordingSpider
from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.utils.test import get_crawler

from scrapy_koster.crawl.components.scheduler import DeferringScheduler
from scrapy_koster.crawl.context import context_of


class BrokenQueue(Scheduler):
    """Scrapy's scheduler, whose disk queues give a request, None or an error, one by one."""

    def __init__(self, answers: Sequence[Request | OSError | None]) -> None:
        self._answers = list(answers)

    def has_pending_requests(self) -> bool:
        return bool(self._answers)

    def next_request(self) -> Request | None:
        answer = self._answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    def __len__(self) -> int:
        return len(self._answers)


def test_what_cannot_be_read_in_a_jobdir_is_passed_over_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    request, broken = Request("http://a.example"), OSError("no such file")
    crawler = get_crawler(
        RecordingSpider,
        {
            "KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage",
            "KOSTER_FALLBACK_SCHEDULER": BrokenQueue,
            "JOBDIR": str(tmp_path),
        },
    )
    crawler.spider = RecordingSpider()
    queue = BrokenQueue([broken, broken, request, broken, None])
    scheduler = DeferringScheduler(crawler, queue, context_of(crawler))
    assert scheduler._next_readable() is request
    assert scheduler.has_pending_requests()
    assert scheduler._next_readable() is None
    [told] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert told.getMessage().startswith("Part of the queue in the JOBDIR cannot be read")
    assert told.exc_info
    assert "OSError: no such file" in str(told.exc_info[1])
