"""The counts of a report, by event of a crawl."""

from __future__ import annotations

import pytest
from scrapy.http import Response

from scrapy_koster.crawl.messages.summary import Retrieval
from scrapy_koster.protocol.access import FetchFailure
from scrapy_koster.protocol.site import Site
from scrapy_koster.report.counts import Counts
from scrapy_koster.report.tally import Tally

NAME = "http://a.example"
NOW = 1_800_000_000.75
SITE = Site("http", "a.example", 80)


def failure(reason: str) -> FetchFailure:
    return FetchFailure(reason, 1, 0.0, 0.0, 10.0, None)


@pytest.fixture
def counts() -> Counts:
    return Counts(lambda: NOW)


PROXY = ", through the proxy proxy-17.example:3128"


@pytest.mark.parametrize(
    ("reason", "status", "shown", "kind"),
    [
        ("HTTP 429: later", 429, "HTTP 429: later", "HTTP 429"),
        (f"HTTP 503{PROXY}", 503, f"HTTP 503{PROXY}", "HTTP 503"),
        ("timeout: 30 s\n" + "x" * 200, 0, "timeout: 30 s\\n" + "x" * 182 + "...", "timeout"),
    ],
)
def test_a_failure(counts: Counts, reason: str, status: int, shown: str, kind: str) -> None:
    """The status is 0 without an answer. The kind of a failure ends at the colon or the proxy."""
    for _ in range(2):
        counts.retrieved(SITE, failure(reason), Retrieval.FETCHED, None)
    assert counts.tally.rows["site"] == {(NAME,): {"status": status, "reason": shown}}
    assert counts.tally.rows["failure"] == {(kind,): {"attempts": 2}}


def test_what_is_dropped_from_a_page_counts_for_its_site(counts: Counts) -> None:
    for url in ("http://A.example:80/x", "http://a.example?q=1", "file:///x"):
        counts.dropped(Response(url), "noindex")
    assert counts.tally.rows["site"] == {("http://a.example",): {"noindex": 2}}


def test_what_there_is_too_much_of_is_counted_as_lost() -> None:
    tally = Tally()
    for n in range(10_002):
        tally.add("site", f"http://{n}.example", asked=1)
        tally.add("rule", f"http://{n}.example", 1, "Disallow: /", "rule", refused=1)
    assert [len(tally.rows[name]) for name in ("site", "rule")] == [10_000, 10_000]
    assert tally.lost == 4
