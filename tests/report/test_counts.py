"""What the report counts: each thing that happens in a crawl, and what is written of it then."""

from __future__ import annotations

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
from scrapy_koster.report.tally import ALLOWED, Tally

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
    assert list(counts.tally.rows["site"]) == [(NAME,)]
    return counts.tally.rows["site"][NAME,]


def sampled(counts: Counts) -> dict[tuple[str, int], list[str]]:
    """Sample URLs of the only site, by kind and line."""
    found: dict[tuple[str, int], list[str]] = {}
    for (_, kind, line, _), row in counts.tally.rows["sample"].items():
        found.setdefault((kind, line), []).append(row["url"])
    return found


@pytest.fixture
def counts() -> Counts:
    return Counts(lambda: NOW)


def test_a_site_that_is_asked_and_answers(counts: Counts) -> None:
    counts.requested(SITE)
    counts.requested(SITE)
    retrieve(counts, failure("timeout"), result=NoAnswer("timeout"))
    retrieve(counts, failure("HTTP 503"), result=Answer(ROBOTS_URL, 503, {}))
    row = row_of(counts)
    assert (row["asked"], row["answered"]) == (2, 1)
    assert counts.tally.rows["minute"] == {(int(NOW // 60),): {"asked": 2, "answered": 1}}


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
        "digest": digest_of(RULES), "redirect": "", "reason": "",
    }  # fmt: skip


def test_a_copy_that_was_redirected_to_and_never_expires(counts: Counts) -> None:
    url = f"http://b.example/\x1b{'x' * 500}"
    retrieve(counts, Copy(url, 200, b"", None, None, 0.0, float("inf")))
    row = row_of(counts)
    assert row["expires"] == 2**62  # an integer of SQLite has 64 bits
    assert row["redirect"].startswith("http://b.example/\\x1bxxx")
    assert len(row["redirect"]) == 300


@pytest.mark.parametrize(
    ("reason", "status", "shown", "kind"),
    [
        ("HTTP 429: later", 429, "HTTP 429: later", "HTTP 429"),
        ("HTTP x", 0, "HTTP x", "HTTP x"),
        ("404", 0, "404", "404"),
        ("timeout: 30 s\n" + "x" * 100, 0, "timeout: 30 s\\n" + "x" * 82 + "...", "timeout"),
    ],
)
def test_a_failure(counts: Counts, reason: str, status: int, shown: str, kind: str) -> None:
    """The status is that of the answer, 0 where there was none; a kind ends at the colon."""
    for _ in range(2):
        retrieve(counts, failure(reason))
    assert row_of(counts) == {"status": status, "reason": shown}
    assert counts.tally.rows["failure"] == {(kind,): {"attempts": 2}}


def test_the_record_that_is_obeyed(counts: Counts) -> None:
    names = (b"\x1b" + b"x" * 100, b"b", b"c", b"d")
    agents = [Line(3 + n, b"user-agent", name) for n, name in enumerate(names)]
    rules = [Line(7, b"disallow", b"/"), Line(8, b"crawl-delay", b"2.5")]
    counts.read(SITE, replace(copy_of(), cut_bytes=9), Record(agents, rules), ())
    shown = "\\x1b" + "x" * 33 + "..., b, c"
    assert row_of(counts) == {"record_line": 3, "record": shown, "delay": "2.5", "cut": 1}
    counts.read(SITE, copy_of(), None, ())
    assert row_of(counts) == {"record_line": 0, "record": "", "delay": "", "cut": 1}


def test_conflicts(counts: Counts) -> None:
    for _ in range(2):
        counts.conflict(Request(f"{NAME}/a"), SITE, HAZARD)
    assert row_of(counts) == {"looser": 2}


def test_the_end_of_deferring(counts: Counts) -> None:
    deferred = {"deferrals": 1, "deferred": int(NOW), "resumed": 0}
    counts.deferred(SITE)
    counts.status_changed(SITE, Standing.UNAVAILABLE, None)
    counts.status_changed(SITE, Standing.UNAVAILABLE, Standing.UNAVAILABLE)
    assert row_of(counts) == {**deferred, "outcome": Standing.UNAVAILABLE}
    counts.status_changed(SITE, Standing.OBEYED, Standing.UNAVAILABLE)
    assert row_of(counts) == {**deferred, "outcome": Standing.OBEYED, "resumed": int(NOW)}


def test_given_up(counts: Counts) -> None:
    counts.given_up(SITE)
    assert row_of(counts) == {"given_up": 1, "resumed": int(NOW)}


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
    assert compared(counts) == ({"agree": 2} if standing is Standing.OBEYED else {})


def test_refused_by_a_rule(counts: Counts) -> None:
    request = Request(f"{NAME}/private?q=1", meta={"is_start_request": True})
    for _ in range(2):
        counts.refused(request, verdict(Ground.RULE, RULE))
    assert row_of(counts) == {"refused_rule": 2, "start_refused": 2}
    rules = {(NAME, 2, "Disallow: /private", "rule"): {"refused": 2}}
    assert counts.tally.rows["rule"] == rules
    assert sampled(counts) == {("start", 0): [request.url] * 2, ("rule", 2): [request.url] * 2}
    assert compared(counts) == {"agree": 2}


def test_refused_by_a_parser_that_names_no_line(counts: Counts) -> None:
    told = verdict(Ground.RULE, section="ProtegoRobotParser", is_explained=False)
    counts.refused(Request(f"{NAME}/private"), told)
    assert list(counts.tally.rows["rule"]) == [(NAME, 0, "ProtegoRobotParser", "rule")]


def test_what_is_long_is_cut(counts: Counts) -> None:
    rule = Line(2, b"disallow", b"/\x1b" + b"x" * 500)
    url = f"{NAME}/{'x' * 500}"
    counts.refused(Request(url), verdict(Ground.RULE, rule))
    [(_, _, text, _)] = counts.tally.rows["rule"]
    assert text.startswith("Disallow: /\\x1bxxx")
    assert len(text) == 200
    assert sampled(counts) == {("rule", 2): [url[:297] + "..."]}


@pytest.mark.parametrize("ground", [Ground.RESTRICTED, Ground.UNAVAILABLE])
def test_refused_without_a_rule(counts: Counts, ground: Ground) -> None:
    counts.refused(Request(f"{NAME}/a"), verdict(ground))
    assert row_of(counts) == {f"refused_{ground.value}": 1}
    assert sampled(counts) == {(ground.value, 0): [f"{NAME}/a"]}
    assert list(counts.tally.rows["rule"]) == [(NAME, 0, "", ground.value)]


@pytest.mark.parametrize("word", ["nofollow", "noindex"])
def test_what_a_page_asks_for(counts: Counts, word: str) -> None:
    counts.dropped(Response(f"{NAME}/a/b"), word)
    counts.dropped(Response(NAME), word)
    assert row_of(counts) == {word: 2}
    assert sampled(counts) == {(word, 0): [f"{NAME}/a/b", NAME]}


def compared(counts: Counts) -> dict[str, int]:
    """How many decisions were compared with RFC 9309, by the result."""
    return {result: row["decisions"] for (result,), row in counts.tally.rows["compared"].items()}


def test_the_first_hundred_are_compared_then_one_of_64(counts: Counts) -> None:
    stale = replace(failure("timeout"), stale=copy_of())
    for _ in range(100 + 64 * 2):
        allow(counts, Standing.OBEYED, f"{NAME}/private", stale)
    assert compared(counts) == {"looser": 102}
    allow(counts, Standing.OBEYED, f"{NAME}/a", copy_of(b"#" * 65537))
    assert compared(counts) == {"looser": 102}


def test_samples_are_chosen_by_chance(counts: Counts) -> None:
    """As many of the first half as of the second, five of a kind, 10,000 in total."""
    urls: list[int] = []
    for number in range(2001):
        for n in range(12):
            counts.refused(Request(f"http://a.example/{n}"), verdict(Ground.RULE, replaced(number)))
    for found in sampled(counts).values():
        assert len(found) == 5
        urls += [int(url.rpartition("/")[2]) for url in found]
    assert len(urls) == 10_000
    assert 4500 < sum(n < 6 for n in urls) < 5500


def replaced(number: int) -> Line:
    return Line(number + 1, b"disallow", b"/")


def test_what_there_is_too_much_of_is_counted_as_lost() -> None:
    tally = Tally()
    for n in range(10_002):
        tally.add("site", f"http://{n}.example", asked=1)
        tally.add("rule", f"http://{n}.example", 1, "Disallow: /", "rule", refused=1)
    assert [len(tally.rows[name]) for name in ("site", "rule")] == [10_000, 10_000]
    assert tally.lost == 4
