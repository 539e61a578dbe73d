"""3.4, expiration."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_koster.protocol.access import Answer, CachedRobots, after_answer
from scrapy_koster.protocol.freshness import retry_after
from scrapy_koster.protocol.policy import Policy

NOW = 1_700_000_000.0
POLICY = Policy()
DEFAULT, MIN, MAX = POLICY.expiry_secs, POLICY.expiry_min_secs, POLICY.expiry_max_secs


def http_date(secs: float) -> str:
    return formatdate(NOW + secs, usegmt=True)


def life(headers: dict[str, str], policy: Policy = POLICY, now: float = NOW) -> float:
    answer = Answer("http://h/robots.txt", 200, headers)
    copy = after_answer(answer, None, now=now, policy=policy, jitter=0.0)
    assert isinstance(copy, CachedRobots)
    return copy.expires - now


def cc(field: str, **others: str) -> dict[str, str]:
    return {"cache-control": field, **others}


def expires(field: str, **others: str) -> dict[str, str]:
    return {"expires": field, **others}


HOUR = http_date(3600)


@pytest.mark.parametrize(
    ("headers", "secs"),
    [
        pytest.param(cc("max-age=3600"), 3600, id="max-age"),
        pytest.param(cc('max-age="3600"'), 3600, id="max-age quoted"),
        pytest.param(cc("max-age=900, max-age=600"), 600, id="the smallest max-age"),
        pytest.param(cc("max-age=3600", age="600"), 3000, id="max-age minus Age"),
        pytest.param(cc('x="no-cache, max-age=9", max-age=3600'), 3600, id="in quotes"),
        pytest.param(cc("max-age=3600, no-cache"), MIN, id="no-cache"),
        pytest.param(cc("max-age=2592001"), MAX, id="upper bound"),
        pytest.param(cc("max-age=" + "9" * 5000), MAX, id="huge max-age"),
        pytest.param(cc("max-age=600", expires=HOUR), 600, id="max-age before Expires"),
        pytest.param({"pragma": "no-cache"}, MIN, id="Pragma alone"),
        pytest.param(expires(HOUR, date=http_date(-400)), 4000, id="Expires minus Date"),
        pytest.param(expires(" -1, -1"), MIN, id="Expires -1, repeated"),
        pytest.param(expires("Fri, 31 Dec 9999 23:59:59 GMT"), MAX, id="year 9999"),
        pytest.param(expires("Tue Nov 14 23:13:20 2023"), 3600, id="asctime"),
        pytest.param({}, DEFAULT, id="nothing"),
        pytest.param(expires(HOUR + " " * 100 + "x"), DEFAULT, id="a date without end"),
        pytest.param(expires("Tue, 14 Nov 2023 18:13:20 +99999999999999"), DEFAULT, id="huge zone"),
    ],
)
def test_the_headers_decide_how_long_a_copy_lives(headers: dict[str, str], secs: float) -> None:
    assert life(headers) == secs


@pytest.mark.parametrize("headers", [cc("no-cache"), cc("no-store"), expires("0"), expires("-1")])
def test_a_copy_that_is_not_to_be_kept_has_no_life_of_its_own(headers: dict[str, str]) -> None:
    assert life(headers, Policy(expiry_min_secs=0)) == 0


def test_a_date_without_a_zone_is_in_UTC_wherever_the_robot_is(  # noqa: N802
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XYZ+5")
        time.tzset()
        assert life(expires("Tue Nov 14 23:13:20 2023")) == 3600
    time.tzset()


@pytest.mark.parametrize(
    ("field", "secs"),
    [
        pytest.param("120", 120, id="seconds"),
        pytest.param(HOUR, 3600, id="date"),
        pytest.param(http_date(-9), 0, id="date that is past"),
        pytest.param("120, 60", None, id="repeated"),
        pytest.param("soon\0", None, id="a word"),
    ],
)
def test_retry_after_is_seconds_or_a_date(field: str, secs: float | None) -> None:
    assert retry_after({"retry-after": field}, now=NOW) == secs


NAMES = ("cache-control", "expires", "date", "age", "pragma", "retry-after")
SIGNS = st.sampled_from('=,"\\ :-+()\0²\ud800')
NUMBERS = st.sampled_from(["1", "29", "0000", "99999", "1e9", "24:60:61"])
WORDS = SIGNS | NUMBERS | st.sampled_from(["max-age", "no-cache", "Thu", "Feb", "GMT"])
FIELDS = st.one_of(st.text(), st.lists(WORDS).map("".join), st.lists(WORDS).map(" ".join))
HEADERS = st.dictionaries(st.sampled_from(NAMES), FIELDS)


@given(HEADERS, st.floats(0, 1e11))
@example({"expires": "Thu, 01 Jan 100 00:00:00 +2359"}, 0.0)
@example({"expires": "Fri, 31 Dec 9999 23:59:59 -2359"}, 0.0)
def test_any_headers_give_the_default_or_a_life_within_bounds(
    headers: dict[str, str], now: float
) -> None:
    secs = life(headers, Policy(expiry_secs=7, expiry_max_secs=3000), now)
    assert secs == pytest.approx(7, abs=1e-3) or 299.999 <= secs <= 3000.001


@given(HEADERS, st.floats(0, 1e11))
def test_any_retry_after_is_none_or_a_wait(headers: dict[str, str], now: float) -> None:
    secs = retry_after(headers, now=now)
    assert secs is None or 0 <= secs < float("inf")
