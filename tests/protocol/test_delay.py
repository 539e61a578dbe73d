"""Crawl-delay and Request-rate: which line of a file asks for how long a delay."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.protocol.defect import ParserDefectError
from scrapy_koster.protocol.delay import (
    CrawlDelay,
    Delay,
    Pace,
    delay_of,
    delay_or_limit,
    longest_delay,
    names_delay,
)
from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.reading import Reading, Rfc9309, RobotsTxt, Strictest

DELAY, RATE = b"crawl-delay", b"request-rate"
NUMBERS = {
    b"2": 2.0,
    b".5": 0.5,
    b"1e3": 1000.0,
    b"0" * 500_000 + b"1": 1.0,
    b"": None,
    b"soon": None,
    b"0.0005": None,
    b"nan": None,
    b"9" * 500_000: None,
    b"1_0": None,
    "\N{ARABIC-INDIC DIGIT FIVE}".encode(): None,
}
RATES = {
    b"1/10": 10.0,
    b"30/1m": 2.0,
    b"1/1h": 3600.0,
    b"1/5m 0600-0845": 300.0,
    b"1/0": None,
    b"1/" + b"9" * 500_000: None,
    b"1/10d": None,
    b"": None,
    "\N{ARABIC-INDIC DIGIT FIVE}/\N{ARABIC-INDIC DIGIT FIVE}".encode(): None,
}


def read(field: bytes, value: bytes) -> float | None:
    line = Line(1, field, value)
    found = longest_delay([line])
    assert found is None or found.line is line
    return found.secs if found else None


def short(value: object) -> str:
    return repr(value)[:20]


@pytest.mark.parametrize("value", NUMBERS, ids=short)
def test_crawl_delay(value: bytes) -> None:
    assert read(DELAY, value) == NUMBERS[value]


@pytest.mark.parametrize("value", RATES, ids=short)
def test_request_rate(value: bytes) -> None:
    assert read(RATE, value) == RATES[value]


@given(st.sampled_from([DELAY, RATE]), st.one_of(st.binary(), st.from_regex(rb"[0-9/ smhe.+-]*")))
def test_it_is_a_number_of_seconds_or_none(field: bytes, value: bytes) -> None:
    secs = read(field, value)
    assert secs is None or (math.isfinite(secs) and secs >= 0)


# A file.

FILE = b"""User-agent: fig
Crawl-delay: 5
CRAWL-DELAY : 7 # slowly
Request-rate: 2/4
Disallow: /a

User-agent: *
Request-rate: 1/10
Visit-time: 0600-0845
Disallow: /b

User-agent: fig
Crawl-delay: 60
Disallow: /c

User-agent: fast
Disallow: /
"""
BY_DRAFT = {"fig": (7.0, 3), "Fig/1.0": (7.0, 3), "other": (10.0, 8), "fast": None, "": (10.0, 8)}
BY_RFC_9309 = BY_DRAFT | {"fig": (60.0, 13), "Fig/1.0": (60.0, 13)}


def found(delay: Delay | None) -> tuple[float, int] | None:
    if delay is None:
        return None
    assert delay.line is not None
    return delay.secs, delay.line.number


@pytest.mark.parametrize("robot", BY_DRAFT)
def test_the_delay_of_a_file_is_that_of_the_record_that_is_obeyed(robot: str) -> None:
    assert found(delay_of(RobotsTxt(FILE), robot)) == BY_DRAFT[robot]
    assert found(delay_of(Rfc9309(FILE), robot)) == BY_RFC_9309[robot]
    assert found(delay_of(Strictest(FILE), robot)) == BY_RFC_9309[robot]
    assert found(delay_of(RobotsTxt(FILE), robot.encode())) == BY_DRAFT[robot]
    assert delay_of(RobotsTxt(b"User-agent: *\nDisallow: /a"), robot) is None
    assert names_delay(FILE)


AHREFS = "User-agent: AhrefsBot\nCrawl-delay: 2000\n"


@pytest.mark.parametrize(
    ("body", "delays"),
    [
        (AHREFS + "\nUser-agent: *\nDisallow: /x", {"ahrefsbot": 2000, "fig": None}),
        (AHREFS + "User-agent: *\nCrawl-delay: 5\nDisallow: /", {"ahrefsbot": 2000, "fig": 5}),
        ("User-agent: b\nRequest-rate: 1/99\nUser-agent: *\nAllow: /", {"b": 99, "fig": None}),
        # An own record with 0 before "*" with 60.
        (
            "User-agent: fig\nCrawl-delay: 0\n\nUser-agent: *\nCrawl-delay: 60\nDisallow: /x",
            {"fig": None, "b": 60},
        ),
        ("User-agent: b\nUser-agent: fig\nCrawl-delay: 7\nUser-agent: c", {"b": 7, "fig": 7}),
        ("User-agent: b\nContent-Signal: search=no\nUser-agent: fig\nCrawl-delay: 7", {"fig": 7}),
        # A delay below the rules belongs to the group of the rules.
        (AHREFS + "User-agent: fig\nDisallow: /x\nCrawl-delay: 3", {"ahrefsbot": 2000, "fig": 3}),
    ],
)
@pytest.mark.parametrize("kind", [RobotsTxt, Rfc9309, Strictest])
def test_the_delay_of_another_robot(
    kind: type[Reading], body: str, delays: dict[str, float | None]
) -> None:
    """A delay belongs to the User-agent lines directly above it, also in a record."""
    reading = kind(body.encode())
    for robot, secs in delays.items():
        delay = delay_of(reading, robot)
        assert (delay and delay.secs) == secs
        record = reading.record(robot)
        assert record is not None
        listed = longest_delay(record.rules)
        assert (listed and listed.secs) == secs


# What a crawl makes of it.


def test_a_delay_of_a_day_is_refused_or_cut_to_the_limit() -> None:
    pace = Pace(choice=CrawlDelay.REFUSE, max_secs=60.0)
    day = Delay(86400.0, None)
    assert pace.obeys
    assert pace.too_long(day) is day
    assert (pace.too_long(Delay(60.0, None)), pace.too_long(None)) == (None, None)
    assert (pace.kept(86400.0), pace.kept(0.5)) == (60.0, 0.5)


class Raises:
    """A parser that fails."""

    def lines(self, _robot: str | bytes, /, *_fields: bytes) -> list[Line]:
        raise ZeroDivisionError

    def crawl_delay(self, _robot: str | bytes) -> float:
        raise ZeroDivisionError


@pytest.mark.parametrize("choice", CrawlDelay)
def test_the_delay_of_a_parser_that_raises_is_the_limit(choice: CrawlDelay) -> None:
    pace, errors = Pace(choice=choice, max_secs=60.0), list[Exception]()
    delay = delay_or_limit(Raises(), "fig", pace=pace, failed=errors.append)
    assert delay == Delay(60.0, None)
    assert [type(error) for error in errors] == [ParserDefectError]
    assert pace.too_long(delay) is None
    found = delay_or_limit(RobotsTxt(FILE), "fig", pace=pace, failed=errors.append)
    assert len(errors) == 1
    assert found == delay_of(RobotsTxt(FILE), "fig")
