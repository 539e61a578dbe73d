"""3.1, the access method, as a table; and what follows from it for a request."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.protocol.access import (
    Answer,
    CachedRobots,
    CacheEntry,
    FetchFailure,
    NoAnswer,
    after_answer,
    conditional_headers,
    longest_deferral_secs,
    longest_life_secs,
    redirect_target,
    status_of_copy,
)
from scrapy_koster.protocol.exchange import digest_of
from scrapy_koster.protocol.policy import Html, Policy, Restricted, Unavailable
from scrapy_koster.protocol.site_status import SiteStatus
from scrapy_koster.protocol.step import (
    Ask,
    Defer,
    Obey,
    Pass,
    Refuse,
    Step,
    copy_in_force,
    given_up_at,
    next_step,
    waits,
)

NOW = 1_700_000_000.0
URL = "http://www.fict.org/robots.txt"
BODY = b"User-agent: *\nDisallow: /org/plans.html\n"
POLICY = Policy()
HOUR = 3600.0
DAY = 86_400.0
WEEK = 7 * DAY

FILE = CachedRobots(URL, 200, BODY, '"1"', "Mon, 13 Nov 2023 00:00:00 GMT", NOW - WEEK, NOW - 9)
FAILED = FetchFailure("HTTP 503", 2, since=NOW - 60, asked=NOW - 40, retry=NOW, stale=FILE)


def answer(status: int, **headers: str) -> Answer:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(URL, status, fields, BODY)


def received(
    result: Answer | NoAnswer, known: CacheEntry | None = None, **options: Any
) -> CacheEntry:
    return after_answer(result, known, **{"now": NOW, "policy": POLICY, "jitter": 0.0, **options})


def copied(result: Answer, known: CacheEntry | None = None, **options: Any) -> CachedRobots:
    copy = received(result, known, **options)
    assert isinstance(copy, CachedRobots)
    return copy


def failed(
    result: Answer | NoAnswer, known: CacheEntry | None = None, **options: Any
) -> FetchFailure:
    failure = received(result, known, **options)
    assert isinstance(failure, FetchFailure)
    return failure


def test_of_an_error_page_the_digest_is_kept() -> None:
    copy = copied(replace(answer(404), cut_bytes=9))
    assert (copy.body, copy.cut_bytes, copy.digest) == (b"", None, digest_of(BODY))


def test_life_by_the_policy() -> None:
    policy = Policy(expiry_secs=1, restricted_expiry_secs=2, expiry_min_secs=5, expiry_max_secs=6)
    short, long = {"cache_control": "max-age=1"}, {"cache_control": "max-age=9"}
    answers = (answer(200), answer(403), answer(404, **short), answer(410, **long))
    copies = [copied(each, policy=policy) for each in answers]
    assert [copy.expires - NOW for copy in copies] == [1, 2, 5, 6]


def test_a_page_in_place_of_a_file_disallows_by_the_setting() -> None:
    page = copied(replace(answer(200), body=b"<html><body>Not found"))
    assert status_of_copy(page, Policy(html=Html.DISALLOW)) is SiteStatus.HTML_DISALLOWED
    assert status_of_copy(page, POLICY) is SiteStatus.HTML
    assert status_of_copy(FILE, Policy(html=Html.DISALLOW)) is SiteStatus.OBEYED
    disallowed = copied(Answer(URL, 200, {}, page.body), policy=Policy(html=Html.DISALLOW))
    assert disallowed.body == page.body


def test_a_page_that_has_become_a_failure_is_no_old_copy() -> None:
    page = replace(FILE, body=b"<html><body>Not found")
    deferring = Policy(html=Html.DEFER, stale_if_error_secs=HOUR)
    for copy, policy, stale in [
        (page, deferring, None),
        (page, POLICY, page),
        (FILE, deferring, FILE),
    ]:
        assert failed(NoAnswer("late"), copy, policy=policy).stale == stale


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        pytest.param(answer(199), "HTTP 199", id="199"),
        pytest.param(answer(425), "HTTP 425", id="425"),
        pytest.param(answer(600), "HTTP 600", id="600"),
        pytest.param(answer(304), "HTTP 304 though nothing was asked", id="304 unasked"),
        pytest.param(NoAnswer("\x1b[2J\n"), "\\x1b[2J\\n", id="reason made printable"),
    ],
)
def test_temporary_failures(result: Answer | NoAnswer, reason: str) -> None:
    assert failed(result) == FetchFailure(reason, 1, NOW, NOW, NOW + 10, None)


RENEWED = replace(FILE, fetched=NOW, expires=NOW + WEEK)


@pytest.mark.parametrize(
    ("result", "known", "copy"),
    [
        pytest.param(answer(304), FAILED, RENEWED, id="the copy behind a failure"),
        pytest.param(
            answer(304, cache_control="max-age=600"),
            FILE,
            replace(RENEWED, expires=NOW + 600, life_stated=True),
            id="life out of the 304",
        ),
        pytest.param(
            answer(304, etag='"2"', last_modified="today"),
            FILE,
            replace(RENEWED, etag='"2"', last_modified="today"),
            id="validators out of the 304",
        ),
    ],
)
def test_304_renews(result: Answer, known: CacheEntry, copy: CachedRobots) -> None:
    assert received(result, known) == copy


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(replace(FILE, etag=None, last_modified=None), id="without validators"),
        pytest.param(replace(FILE, url="http://other.org/robots.txt"), id="from another URL"),
    ],
)
def test_304_unasked_is_a_failure(known: CachedRobots) -> None:
    assert failed(answer(304), known).stale == known


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param("x" * 1000, "x" * 1000, id="1,000 characters"),
        pytest.param("x" * 1001, None, id="1,001 characters"),
        pytest.param('"a\r\nCookie: b"', None, id="line end"),
    ],
)
def test_validators_that_are_kept(value: str, kept: str | None) -> None:
    copy = copied(answer(200, etag=value, last_modified=value))
    assert (copy.etag, copy.last_modified) == (kept, kept)


def test_validators_to_send() -> None:
    assert conditional_headers(None) == {}
    date = "Mon, 13 Nov 2023 00:00:00 GMT"
    assert conditional_headers(FILE) == {"If-None-Match": '"1"', "If-Modified-Since": date}


@pytest.mark.parametrize("status", [301, 308])
@pytest.mark.parametrize(
    ("location", "target"),
    [
        pytest.param("/r?q", "http://www.fict.org/r?q", id="path"),
        pytest.param("", None, id="empty"),
        pytest.param("https:r", None, id="https without a host"),
        pytest.param("http://other.org:99999/", None, id="port out of range"),
    ],
)
def test_a_redirect_leads_to_http_or_https_alone(
    status: int, location: str, target: str | None
) -> None:
    assert redirect_target(answer(status, location=location)) == target


DOWN = NoAnswer("timeout")


@pytest.mark.parametrize(
    ("silent_secs", "attempts"),
    [
        pytest.param(1200, 3, id="still the same series"),
        pytest.param(1201, 1, id="abandoned: a new series"),
    ],
)
def test_an_abandoned_series(silent_secs: float, attempts: int) -> None:
    failure = failed(DOWN, replace(FAILED, asked=NOW - silent_secs))
    since = FAILED.since if attempts == 3 else NOW
    assert (failure.attempts, failure.since) == (attempts, since)
    assert failure.stale == FILE


def test_how_long_an_attempt_took_does_not_end_the_series() -> None:
    began = FAILED.asked + 1200
    for lasted_secs in (0.0, 5000.0):
        now = began + lasted_secs
        failure = failed(DOWN, FAILED, now=now, began=began)
        assert (failure.attempts, failure.since, failure.asked) == (3, FAILED.since, now)


@pytest.mark.parametrize(
    ("known", "unavailable", "secs"),
    [(FILE, Unavailable.DEFER, math.inf), (FAILED, Unavailable.DEFER, FAILED.since + 300)],
)
def test_until_when_requests_wait(known: CacheEntry, unavailable: Unavailable, secs: float) -> None:
    policy = Policy(unavailable=unavailable)
    assert given_up_at(known, policy=policy) == secs
    assert longest_deferral_secs(policy) == 750
    assert longest_life_secs(FILE, policy) == WEEK
    assert longest_life_secs(replace(FILE, life_stated=True), policy) == 30 * DAY


@pytest.mark.parametrize(
    ("attempts", "jitter", "secs"),
    [(1, 0.0, 10), (3, 0.0, 40), (10**9, 0.0, 600), (2, 1.0, 25), (7, 1.0, 750)],
)
def test_a_failing_site_is_asked_less_and_less_often(
    attempts: int, jitter: float, secs: float
) -> None:
    known = replace(FAILED, attempts=attempts - 1)
    assert failed(DOWN, known, jitter=jitter).retry == NOW + secs


UP = replace(FILE, expires=NOW + 9)
LONE = FetchFailure("HTTP 503", 1, NOW - 5, NOW - 5, retry=NOW + 5, stale=None)
GIVEN_UP = replace(LONE, since=NOW - 300)
MISSED = replace(LONE, since=NOW - 350, asked=NOW - 350, retry=NOW - 340)
DEFER = Policy()
ALLOW = Policy(unavailable=Unavailable.ALLOW)
DISALLOW = Policy(unavailable=Unavailable.DISALLOW)


@pytest.mark.parametrize(
    ("known", "policy", "expected"),
    [
        pytest.param(None, DEFER, Ask(None), id="nothing known"),
        pytest.param(UP, DEFER, Obey(UP, NOW + 9), id="fresh"),
        pytest.param(FILE, DEFER, Ask(FILE), id="stale"),
        pytest.param(LONE, DEFER, Defer(LONE, NOW + 5), id="deferred"),
        pytest.param(
            replace(LONE, retry=NOW, stale=FILE), DEFER, Ask(FILE), id="retry, revalidate"
        ),
        pytest.param(GIVEN_UP, DEFER, Refuse(GIVEN_UP, NOW + 595), id="given up"),
        pytest.param(MISSED, DEFER, Ask(None), id="the machine slept through a retry"),
        pytest.param(LONE, ALLOW, Pass(LONE, NOW + 5), id="allow"),
        pytest.param(LONE, DISALLOW, Refuse(LONE, NOW + 5), id="disallow"),
    ],
)
def test_what_is_known_of_a_site_decides_what_is_done(
    known: CacheEntry | None, policy: Policy, expected: Step
) -> None:
    assert next_step(known, now=NOW, policy=policy) == expected
    assert waits(expected) is isinstance(expected, Ask | Defer)


def test_an_old_copy_that_is_a_page_is_obeyed_only_if_pages_are() -> None:
    page = replace(UP, body=b"<html>Hello</html>")
    down, deferring = replace(LONE, stale=page), Policy(html=Html.DEFER)
    assert next_step(down, now=NOW, policy=POLICY) == Obey(page, NOW + 5)
    assert not isinstance(next_step(down, now=NOW, policy=deferring), Obey)


@pytest.mark.parametrize(
    ("known", "policy", "copy"),
    [
        (None, ALLOW, None),
        (FILE, ALLOW, FILE),
        (FAILED, DEFER, FILE),
        (FAILED, ALLOW, None),
        (FAILED, replace(ALLOW, stale_if_error_secs=HOUR), FILE),
        (replace(FAILED, is_defect=True), ALLOW, FILE),
    ],
)
def test_the_last_copy_decides_again_before_sending(
    known: CacheEntry | None, policy: Policy, copy: CachedRobots | None
) -> None:
    assert copy_in_force(known, now=NOW, policy=policy) == copy


LATER = NOW + 10 * 365 * DAY
AHEAD = replace(FILE, fetched=LATER, expires=LATER + WEEK)


def test_a_host_that_does_not_exist_is_given_up_at_once() -> None:
    """And asked again after KOSTER_DEFER_MAX_SECS; one that fails otherwise then is deferred."""
    policy = Policy()
    known = failed(NoAnswer("no such name", no_such_host=True))
    again = NOW + policy.defer_max_secs
    assert next_step(known, now=NOW, policy=policy) == Refuse(known, again)
    assert next_step(known, now=again, policy=policy) == Ask(None)
    assert not failed(NoAnswer("reset"), known, now=again).no_such_host


@pytest.mark.parametrize(
    ("known", "stale"),
    [
        (AHEAD, AHEAD),
        (replace(FAILED, since=LATER, asked=LATER, retry=LATER + 10), FILE),
        (replace(FAILED, stale=AHEAD), AHEAD),
    ],
    ids=["copy", "failure", "copy behind a failure"],
)
@pytest.mark.parametrize("unavailable", Unavailable)
def test_what_a_clock_wrote_that_was_ahead(
    known: CacheEntry, stale: CachedRobots, unavailable: Unavailable
) -> None:
    """It neither holds nor defers for ten years: the site is asked."""
    policy = replace(POLICY, unavailable=unavailable)
    assert next_step(known, now=NOW, policy=policy) == Ask(stale)
    failure = failed(NoAnswer("gone"), known, policy=policy)
    assert failure.retry < NOW + policy.defer_limit_secs
    assert not isinstance(next_step(failure, now=NOW, policy=policy), Obey)
    assert isinstance(next_step(failure, now=failure.since + DAY, policy=policy), Ask)


@pytest.mark.parametrize("ahead_secs", [0.5, 60])
def test_clocks_of_several_machines_differ(ahead_secs: float) -> None:
    asked = NOW + ahead_secs
    copy = replace(FILE, fetched=asked, expires=asked + WEEK)
    assert next_step(copy, now=NOW, policy=POLICY) == Obey(copy, copy.expires)
    failure = replace(FAILED, asked=asked, retry=asked + 10)
    assert isinstance(next_step(failure, now=NOW, policy=POLICY), Defer)
    assert failed(NoAnswer("gone"), failure).attempts == FAILED.attempts + 1


TIMES = st.floats(NOW - 2000, NOW + 2000)
COPIES = st.builds(
    CachedRobots,
    st.just(URL),
    st.sampled_from([200, 403, 404]),
    st.just(b""),
    st.sampled_from([None, '"1"']),
    st.none(),
    TIMES,
    TIMES,
)
FAILURES = st.builds(
    FetchFailure,
    st.just("HTTP 503"),
    st.integers(1, 10**6),
    TIMES,
    TIMES,
    TIMES,
    st.none() | COPIES,
)
KNOWN = st.none() | COPIES | FAILURES
POLICIES = st.builds(
    Policy,
    stale_if_error_secs=st.sampled_from([0.0, 500.0]),
    unavailable=st.sampled_from(Unavailable),
    restricted=st.sampled_from(Restricted),
)
NAMES = ["cache-control", "expires", "retry-after", "location", "etag", "last-modified"]
ANSWERS = st.builds(
    Answer,
    st.one_of(st.just(URL), st.text()),
    st.one_of(st.integers(100, 599), st.integers()),
    st.dictionaries(st.sampled_from(NAMES), st.text() | st.text().map("http://{}".format)),
    st.binary(max_size=9),
)


@given(ANSWERS)
def test_any_redirect_leads_to_http_or_nowhere(result: Answer) -> None:
    target = redirect_target(result)
    assert target is None or target.startswith(("http://", "https://"))
    assert target is None or "#" not in target


@given(ANSWERS | st.builds(NoAnswer, st.text()), KNOWN, POLICIES, st.floats(0, 1))
def test_any_answer_is_a_copy_or_a_failure(
    result: Answer | NoAnswer, known: CacheEntry | None, policy: Policy, jitter: float
) -> None:
    after = received(result, known, policy=policy, jitter=jitter)
    if isinstance(after, CachedRobots):
        assert after.fetched == NOW < after.expires
        assert all(value.isprintable() for value in conditional_headers(after).values())
    else:
        assert NOW + 10 <= after.retry <= NOW + 750
        assert after.reason.isprintable()
        assert len(after.reason) <= 200


@given(KNOWN, POLICIES)
def test_a_step_that_lasts_ends_later_than_now(known: CacheEntry | None, policy: Policy) -> None:
    now_to_do = next_step(known, now=NOW, policy=policy)
    assert isinstance(now_to_do, Ask) or now_to_do.until > NOW
