"""What the report counts: each thing that happens in a crawl, and what is written of it then."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from scrapy_koster.crawl.messages.summary import Retrieval
from scrapy_koster.protocol.access import Answer, Copy, Failure, NoAnswer
from scrapy_koster.protocol.exchange import digest_of
from scrapy_koster.protocol.hazard import Cause, Hazard
from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.records import Record
from scrapy_koster.protocol.ruling import Ruling
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.standing import Access, Ground, Standing
from scrapy_koster.protocol.verdict import Source, Verdict
from scrapy_koster.report.counts import Counts
from scrapy_koster.report.numbers import ALLOWED_BECAUSE, OUTCOME_NAMES
from scrapy_koster.report.tally import ALLOWED, START

NAME = "http://a.example"
HAZARD = Hazard(
    Cause.ORDER,
    Ruling(True, "3.2.2", None, None),
    Ruling(False, "2.2.2", None, Line(3, b"disallow", b"/a")),
)
ROBOTS_URL = f"{NAME}/robots.txt"
RULES = b"User-agent: *\nDisallow: /private\n"
RULE = Line(2, b"disallow", b"/private")
NOW = 1_800_000_000.75


def made_site() -> Site:
    site = site_of(NAME)
    assert site is not None
    return site


SITE = made_site()


def copy_of(body: bytes = RULES, *, status: int = 200, url: str = ROBOTS_URL) -> Copy:
    return Copy(url, status, body, None, None, 1000.5, 2000.5)


def failure(reason: str) -> Failure:
    return Failure(reason, 1, 0.0, 0.0, 10.0, None)


def allow(
    counts: Counts, status: Standing | None, url: str, known: Copy | Failure | None = None
) -> None:
    request = Request(url)
    counts.allowed(request, SITE, status=status, known=known, robot="fig", verdict=None)


def retrieve(
    counts: Counts,
    known: Copy | Failure,
    how: Retrieval = Retrieval.FETCHED,
    result: Answer | NoAnswer | None = None,
) -> None:
    counts.retrieved(SITE, known, how, result)


def verdict(
    ground: Ground, rule: Line | None = None, section: str = "3.2.2", **given: Any
) -> Verdict:
    return Verdict(
        url=f"{NAME}/private",
        site=SITE,
        robot="fig",
        ground=ground,
        ruling=Ruling(allowed=False, section=section, record=None, rule=rule),
        known=copy_of() if ground is not Ground.UNAVAILABLE else failure("HTTP 503"),
        source=Source.FETCHED,
        **given,
    )


def test_every_outcome_has_its_places() -> None:
    assert set(OUTCOME_NAMES) == set(Standing)
    assert {Standing.OBEYED, *ALLOWED_BECAUSE} == set(ALLOWED)
    assert set(ALLOWED) == {each for each in Standing if each.access is not Access.RESTRICTED}


def row_of(counts: Counts) -> dict[str, Any]:
    """What is counted of the only site."""
    assert list(counts.tally.sites) == [NAME]
    return counts.tally.sites[NAME]


@pytest.fixture
def counts() -> Counts:
    return Counts(lambda: NOW, lambda: None)


def test_a_site_that_is_asked_and_answers(counts: Counts) -> None:
    counts.requested(SITE)
    counts.requested(SITE)
    retrieve(counts, failure("timeout"), result=NoAnswer("timeout"))
    retrieve(counts, failure("HTTP 503"), result=Answer(ROBOTS_URL, 503, {}))
    row = row_of(counts)
    assert (row["asked"], row["answered"]) == (2, 1)
    assert counts.tally.minute == {"asked": 2, "answered": 1}


@pytest.mark.parametrize(
    ("how", "column"),
    [
        (Retrieval.FETCHED, "fetches"),
        (Retrieval.FROM_STORAGE, "from_storage"),
        (Retrieval.REVALIDATED, "renewed"),
    ],
)
def test_a_copy(counts: Counts, how: Retrieval, column: str) -> None:
    for _ in range(2):
        retrieve(counts, copy_of(), how)
    assert row_of(counts) == {
        column: 2, "status": 200, "fetched": 1000, "expires": 2000, "bytes": len(RULES),
        "crc": zlib.crc32(RULES), "digest": digest_of(RULES), "redirect": "", "reason": "",
    }  # fmt: skip


def test_a_copy_that_was_redirected_to_and_never_expires(counts: Counts) -> None:
    url = f"http://b.example/\x1b{'x' * 500}"
    copy = Copy(url, 200, b"", None, None, 0.0, float("inf"))
    retrieve(counts, copy)
    row = row_of(counts)
    assert row["expires"] == 2**62  # an integer of SQLite has 64 bits
    assert row["redirect"].startswith("http://b.example/\\x1bxxx")
    assert len(row["redirect"]) == 300


@pytest.mark.parametrize(
    ("reason", "status", "shown", "kind"),
    [
        ("HTTP 503", 503, "HTTP 503", "HTTP 503"),
        ("HTTP 429: later", 429, "HTTP 429: later", "HTTP 429"),
        ("HTTP x", 0, "HTTP x", "HTTP x"),
        ("404", 0, "404", "404"),
        ("timeout: 30 s\n" + "x" * 100, 0, "timeout: 30 s\\n" + "x" * 82 + "...", "timeout"),
        ("y" * 100, 0, "y" * 100, "y" * 57 + "..."),
    ],
)
def test_a_failure(counts: Counts, reason: str, status: int, shown: str, kind: str) -> None:
    """The status is that of the answer, 0 where there was none; a kind ends at the colon."""
    for _ in range(2):
        retrieve(counts, failure(reason))
    assert row_of(counts) == {"status": status, "reason": shown}
    assert counts.tally.failures == {kind: 2}


def test_the_record_that_is_obeyed(counts: Counts) -> None:
    agents = [Line(3 + n, b"user-agent", name.encode()) for n, name in enumerate("abcd")]
    rules = [
        Line(7, b"disallow", b"/"),
        Line(8, b"crawl-delay", b"2.5"),
        Line(9, b"crawl-delay", b"9"),
    ]
    counts.read(SITE, copy_of(), Record(agents, rules), ())
    assert row_of(counts) == {"record_line": 3, "record": "a, b, c", "delay": "2.5"}
    counts.read(SITE, copy_of(), None, ())
    assert row_of(counts) == {"record_line": 0, "record": "", "delay": ""}


def test_a_record_of_long_and_hostile_names(counts: Counts) -> None:
    long = [Line(1, b"user-agent", b"\x1b" + b"x" * 100)]
    counts.read(SITE, copy_of(), Record(long, [Line(2, b"crawl-delay", b"5" * 100)]), ())
    assert row_of(counts) == {
        "record_line": 1, "record": "\\x1b" + "x" * 33 + "...", "delay": "5" * 17 + "..."
    }  # fmt: skip


def test_conflicts(counts: Counts) -> None:
    for _ in range(2):
        counts.conflict(Request(f"{NAME}/a"), SITE, HAZARD)
    assert row_of(counts) == {"looser": 2}


def test_a_file_that_is_cut(counts: Counts) -> None:
    counts.read(SITE, replace(copy_of(), cut_bytes=9), None, ())
    assert row_of(counts)["cut"] == 1


def test_the_end_of_deferring(counts: Counts) -> None:
    deferred = {"deferrals": 1, "deferred": int(NOW), "resumed": 0}
    counts.deferred(SITE)
    assert row_of(counts) == deferred
    assert counts.tally.minute == {"deferred": 1}
    counts.status_changed(SITE, Standing.UNAVAILABLE, None)
    counts.status_changed(SITE, Standing.UNAVAILABLE, Standing.UNAVAILABLE)
    assert row_of(counts) == {**deferred, "outcome": Standing.UNAVAILABLE}
    counts.status_changed(SITE, Standing.OBEYED, Standing.UNAVAILABLE)
    assert row_of(counts) == {**deferred, "outcome": Standing.OBEYED, "resumed": int(NOW)}


def test_what_was_never_unavailable_has_not_resumed(counts: Counts) -> None:
    counts.status_changed(SITE, Standing.RESTRICTED, Standing.OBEYED)
    assert row_of(counts) == {"outcome": Standing.RESTRICTED}


def test_given_up(counts: Counts) -> None:
    counts.given_up(SITE)
    assert row_of(counts) == {"given_up": 1, "resumed": int(NOW)}


def test_many_sites_are_written_before_long() -> None:
    told: list[int] = []
    count = 0
    many = Counts(lambda: NOW, lambda: told.append(count))
    for count in range(4001):
        site = site_of(f"http://{count}.example")
        assert site is not None
        many.status_changed(site, Standing.OBEYED, None)
    assert told == [4000]


@pytest.mark.parametrize(
    ("standing", "column"),
    [
        (Standing.OBEYED, "allowed_rule"),
        (Standing.HTML, "allowed_html"),
        (Standing.WITHOUT_ROBOTS_TXT, "allowed_none"),
        (Standing.LET_THROUGH, "allowed_unavailable"),
        (None, "allowed_rule"),
    ],
)
def test_what_is_let_pass(counts: Counts, standing: Standing | None, column: str) -> None:
    for _ in range(2):
        allow(counts, standing, f"{NAME}/a", copy_of())
    assert row_of(counts) == {column: 2}
    assert counts.tally.minute == {"allowed": 2}
    compared = [(RULES, f"{NAME}/a", "fig", True)] * 2
    assert counts.tally.compared == (compared if standing is Standing.OBEYED else [])


def test_refused_by_a_rule(counts: Counts) -> None:
    request = Request(f"{NAME}/private?q=1")
    for _ in range(2):
        counts.refused(request, verdict(Ground.RULE, RULE))
    assert row_of(counts) == {"refused_rule": 2}
    assert counts.tally.minute == {"refused": 2}
    assert counts.tally.rules == {(NAME, 2, "Disallow: /private"): 2}
    assert sampled(counts) == {(NAME, "rule", 2): [request.url] * 2}
    assert counts.tally.compared == [(RULES, request.url, "fig", False)] * 2


def test_refused_by_a_parser_that_names_no_line(counts: Counts) -> None:
    told = verdict(Ground.RULE, section="ProtegoRobotParser", is_explained=False)
    counts.refused(Request(f"{NAME}/private"), told)
    assert counts.tally.rules == {(NAME, 0, "ProtegoRobotParser"): 1}
    assert sampled(counts) == {(NAME, "rule", 0): [f"{NAME}/private"]}


def test_a_long_rule_is_cut(counts: Counts) -> None:
    rule = Line(2, b"disallow", b"/\x1b" + b"x" * 500)
    counts.refused(Request(f"{NAME}/"), verdict(Ground.RULE, rule))
    [(_, _, text)] = counts.tally.rules
    assert text.startswith("Disallow: /\\x1bxxx")
    assert len(text) == 200


@pytest.mark.parametrize("ground", [Ground.RESTRICTED, Ground.UNAVAILABLE])
def test_refused_without_a_rule(counts: Counts, ground: Ground) -> None:
    counts.refused(Request(f"{NAME}/a"), verdict(ground))
    assert row_of(counts) == {f"refused_{ground.value}": 1}
    assert sampled(counts) == {(NAME, ground.value, 0): [f"{NAME}/a"]}
    assert (counts.tally.rules, counts.tally.compared) == ({}, [])


def test_refused_at_the_start(counts: Counts) -> None:
    for start in (True, True, False):
        request = Request(f"{NAME}/a", meta={"is_start_request": start})
        counts.refused(request, verdict(Ground.RESTRICTED))
    assert row_of(counts) == {"refused_restricted": 3, "start_refused": 2}
    assert sampled(counts)[NAME, START, 0] == [f"{NAME}/a"] * 2


@pytest.mark.parametrize("word", ["nofollow", "noindex"])
def test_what_a_page_asks_for(counts: Counts, word: str) -> None:
    page = f"{NAME}/a/b/{'x' * 500}"
    counts.dropped(Response(page), word)
    counts.dropped(Response(NAME), word)
    assert row_of(counts) == {word: 2}
    shown = [NAME, page[:297] + "..."]
    assert sampled(counts) == {(NAME, word, 0): shown}


def test_a_long_url_is_cut(counts: Counts) -> None:
    url = f"{NAME}/{'x' * 500}"
    counts.refused(Request(url, meta={"is_start_request": True}), verdict(Ground.RESTRICTED))
    assert {tuple(urls) for urls in sampled(counts).values()} == {(url[:297] + "...",)}


def sampled(counts: Counts) -> dict[tuple[str, str, int], list[str]]:
    return {key: sorted(url for _, url in urls) for key, urls in counts.tally.samples.items()}


def test_the_first_hundred_are_compared_then_one_of_64(counts: Counts) -> None:
    """Of the decisions by rules; others are not counted."""
    request = Request(f"{NAME}/private")
    compared: list[int] = []
    for n in range(1, 257):
        allow(counts, Standing.HTML, NAME, copy_of())
        if n % 2:
            allow(counts, Standing.OBEYED, f"{NAME}/{n}", copy_of())
        else:
            counts.refused(request, verdict(Ground.RULE, RULE))
        if len(counts.tally.compared) > len(compared):
            compared.append(n)
    assert compared == [*range(1, 101), 128, 192, 256]


def test_a_file_of_more_than_64_kibibytes_is_not_compared(counts: Counts) -> None:
    for size in (65536, 65537):
        allow(counts, Standing.OBEYED, NAME, copy_of(b"\n" * size))
    assert [len(body) for body, *_ in counts.tally.compared] == [65536]


def test_a_stale_copy_that_is_obeyed_is_compared(counts: Counts) -> None:
    stale = Failure("timeout", 1, 0.0, 0.0, 10.0, copy_of())
    allow(counts, Standing.OBEYED, NAME, stale)
    allow(counts, Standing.OBEYED, NAME, failure("timeout"))
    assert counts.tally.compared == [(RULES, NAME, "fig", True)]


def test_what_was_taken_is_gone(counts: Counts) -> None:
    counts.requested(SITE)
    taken = counts.take()
    assert taken.sites == {NAME: {"asked": 1}}
    assert (counts.tally.sites, counts.tally.minute) == ({}, {})
