"""How a site is asked: what is decided without a loop."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.clocks import sleep
from harness.crawling import Crawl

from scrapy_koster.crawl.clock import Clock, LateError
from scrapy_koster.crawl.fetching.retriever import _decisive, _met
from scrapy_koster.protocol.access import Copy, Failure, Known
from scrapy_koster.protocol.policy import Policy

NOW = 1e9
COPY = Copy("http://h/robots.txt", 200, b"", None, None, NOW - 9, NOW + 9)
FAILURE = Failure("HTTP 503", 1, since=NOW - 20, asked=NOW - 10, retry=NOW - 5, stale=None)


@pytest.mark.parametrize(
    ("stored", "known", "met"),
    [
        pytest.param(COPY, FAILURE, COPY, id="a copy after a failure"),
        pytest.param(FAILURE, COPY, replace(FAILURE, since=NOW), id="a failure after a copy"),
        pytest.param(
            FAILURE,
            replace(FAILURE, since=NOW - 3),
            replace(FAILURE, since=NOW - 3),
            id="a failure of a site that is waited for",
        ),
    ],
)
def test_requests_wait_since_this_crawl_met_the_failure(
    stored: Known, known: Known | None, met: Known
) -> None:
    assert _met(stored, known, now=NOW) == met


@pytest.mark.parametrize(
    ("known", "decisive"),
    [
        pytest.param(
            replace(COPY, expires=NOW), replace(COPY, expires=NOW + 1), id="one that is not"
        ),
        pytest.param(FAILURE, FAILURE, id="a failure that is waited out"),
        pytest.param(
            replace(FAILURE, since=NOW - 300),
            replace(FAILURE, since=NOW - 300, retry=NOW + 1),
            id="one that is given up",
        ),
    ],
)
def test_what_is_known_decides_for_those_who_waited_for_it(known: Known, decisive: Known) -> None:
    assert _decisive(known, now=NOW, policy=Policy()) == decisive


async def test_whether_it_ends_in_time(crawl: Crawl) -> None:
    ended = []

    async def last(secs: float) -> None:
        await sleep(secs)
        ended.append(secs)

    await Clock().within(60.0, last(0.0))
    with pytest.raises(LateError):
        await Clock().within(0.01, last(60.0))
    assert ended == [0.0]
