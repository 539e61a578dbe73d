"""What the report counts: each thing that happens in a crawl, and what is written of it then."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pytest
from harness.clocks import StillClock
from scrapy import Request

from scrapy_koster.crawl.clock import Clock
from scrapy_koster.crawl.messages.counting import Counts, Uncounted
from scrapy_koster.crawl.messages.summary import Retrieval
from scrapy_koster.crawl.states import Facts, SiteState
from scrapy_koster.protocol.access import Answer, Copy, Failure, NoAnswer
from scrapy_koster.protocol.exchange import digest_of
from scrapy_koster.protocol.hazard import Cause, Hazard
from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.records import Record
from scrapy_koster.protocol.ruling import Ruling
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.standing import Access, Ground, Standing
from scrapy_koster.protocol.step import Pass
from scrapy_koster.protocol.verdict import Source, Verdict
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


def state_of(standing: Standing | None, known: Copy | Failure | None = None) -> SiteState:
    state = SiteState(SITE)
    state.standing = standing
    state.learn(Facts(known))
    return state


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
    return Counts(StillClock(NOW), lambda: None)


def test_a_site_that_is_asked_and_answers(counts: Counts) -> None:
    counts.asked(SITE)
    counts.asked(SITE)
    counts.heard(SITE, NoAnswer("timeout"))
    counts.heard(SITE, Answer(ROBOTS_URL, 503, {}))
    assert row_of(counts) == {"asked": 2, "answered": 1}
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
        counts.knows(SITE, copy_of(), how)
    assert row_of(counts) == {
        column: 2, "status": 200, "fetched": 1000, "expires": 2000, "bytes": len(RULES),
        "crc": zlib.crc32(RULES), "digest": digest_of(RULES), "redirect": "", "reason": "",
    }  # fmt: skip


def test_a_copy_that_was_redirected_to_and_never_expires(counts: Counts) -> None:
    url = f"http://b.example/\x1b{'x' * 500}"
    copy = Copy(url, 200, b"", None, None, 0.0, float("inf"))
    counts.knows(SITE, copy, Retrieval.FETCHED)
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
        counts.knows(SITE, failure(reason), Retrieval.FETCHED)
    assert row_of(counts) == {"status": status, "reason": shown}
    assert counts.tally.failures == {kind: 2}


def test_the_record_that_is_obeyed(counts: Counts) -> None:
    agents = [Line(3 + n, b"user-agent", name.encode()) for n, name in enumerate("abcd")]
    rules = [
        Line(7, b"disallow", b"/"),
        Line(8, b"crawl-delay", b"2.5"),
        Line(9, b"crawl-delay", b"9"),
    ]
    counts.parsed(NAME, Record(agents, rules))
    assert row_of(counts) == {"record_line": 3, "record": "a, b, c", "delay": "2.5"}
    counts.parsed(NAME, None)
    assert row_of(counts) == {"record_line": 0, "record": "", "delay": ""}


def test_a_record_of_long_and_hostile_names(counts: Counts) -> None:
    long = [Line(1, b"user-agent", b"\x1b" + b"x" * 100)]
    counts.parsed(NAME, Record(long, [Line(2, b"crawl-delay", b"5" * 100)]))
    assert row_of(counts) == {
        "record_line": 1, "record": "\\x1b" + "x" * 33 + "...", "delay": "5" * 17 + "..."
    }  # fmt: skip


@pytest.mark.parametrize(
    ("happens", "column"),
    [
        (lambda counts: counts.hazard_met(SITE, f"{NAME}/a", HAZARD), "looser"),
        (lambda counts: counts.cut(SITE), "cut"),
    ],
)
def test_what_is_counted_once_each(
    counts: Counts, happens: Callable[[Counts], None], column: str
) -> None:
    happens(counts)
    happens(counts)
    assert row_of(counts) == {column: 2}


def test_the_end_of_deferring(counts: Counts) -> None:
    deferred = {"deferrals": 1, "deferred": int(NOW), "resumed": 0}
    counts.deferred(SITE)
    assert row_of(counts) == deferred
    assert counts.tally.minute == {"deferred": 1}
    counts.stands(state_of(None), Standing.UNAVAILABLE)
    counts.stands(state_of(Standing.UNAVAILABLE), Standing.UNAVAILABLE)
    assert row_of(counts) == {**deferred, "outcome": Standing.UNAVAILABLE}
    counts.stands(state_of(Standing.UNAVAILABLE), Standing.OBEYED)
    assert row_of(counts) == {**deferred, "outcome": Standing.OBEYED, "resumed": int(NOW)}


def test_what_was_never_unavailable_has_not_resumed(counts: Counts) -> None:
    counts.stands(state_of(Standing.OBEYED), Standing.RESTRICTED)
    assert row_of(counts) == {"outcome": Standing.RESTRICTED}


def test_given_up(counts: Counts) -> None:
    counts.given_up(SITE)
    assert row_of(counts) == {"given_up": 1, "resumed": int(NOW)}


def test_many_sites_are_written_before_long() -> None:
    told: list[int] = []
    count = 0
    many = Counts(Clock(), lambda: told.append(count))
    for count in range(4001):
        state = state_of(None)
        site = site_of(f"http://{count}.example")
        assert site is not None
        state.site = site
        many.stands(state, Standing.OBEYED)
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
        counts.allowed(state_of(standing, copy_of()), f"{NAME}/a", "fig")
    assert row_of(counts) == {column: 2}
    assert counts.tally.minute == {"allowed": 2}
    compared = [(RULES, f"{NAME}/a", "fig", True)] * 2
    assert counts.tally.compared == (compared if standing is Standing.OBEYED else [])


def test_what_is_let_pass_before_its_site_was_announced(counts: Counts) -> None:
    state = state_of(None, failure("timeout"))
    state.step = Pass(failure("timeout"), 0.0)
    counts.allowed(state, f"{NAME}/a", "fig")
    assert row_of(counts) == {"allowed_unavailable": 1}


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
    counts.dropped(word, page)
    counts.dropped(word, NAME)
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
    state, other = state_of(Standing.OBEYED, copy_of()), state_of(Standing.HTML, copy_of())
    request = Request(f"{NAME}/private")
    compared: list[int] = []
    for n in range(1, 257):
        counts.allowed(other, NAME, "fig")
        if n % 2:
            counts.allowed(state, f"{NAME}/{n}", "fig")
        else:
            counts.refused(request, verdict(Ground.RULE, RULE))
        if len(counts.tally.compared) > len(compared):
            compared.append(n)
    assert compared == [*range(1, 101), 128, 192, 256]


def test_a_file_of_more_than_64_kibibytes_is_not_compared(counts: Counts) -> None:
    for size in (65536, 65537):
        counts.allowed(state_of(Standing.OBEYED, copy_of(b"\n" * size)), NAME, "fig")
    assert [len(body) for body, *_ in counts.tally.compared] == [65536]


def test_a_stale_copy_that_is_obeyed_is_compared(counts: Counts) -> None:
    stale = Failure("timeout", 1, 0.0, 0.0, 10.0, copy_of())
    counts.allowed(state_of(Standing.OBEYED, stale), NAME, "fig")
    counts.allowed(state_of(Standing.OBEYED, failure("timeout")), NAME, "fig")
    assert counts.tally.compared == [(RULES, NAME, "fig", True)]


def test_what_was_taken_is_gone(counts: Counts) -> None:
    counts.asked(SITE)
    taken = counts.take()
    assert taken.sites == {NAME: {"asked": 1}}
    assert (counts.tally.sites, counts.tally.minute) == ({}, {})


def test_who_counts_says_so() -> None:
    assert (Counts(Clock(), lambda: None).is_on, Uncounted().is_on) == (True, False)
