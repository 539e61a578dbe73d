"""Any class may be a parser: what it returns is looked at."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from scrapy.robotstxt import RobotParser

from scrapy_koster.parsers import KosterRobotParser, Rfc9309RobotParser, StrictestRobotParser
from scrapy_koster.protocol.defect import ParserDefectError, bools_of, checked_parser
from scrapy_koster.protocol.delay import Delay, delay_of


class Answers:
    """A parser that answers everything with one value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def allowed(self, _url: str, _robot: str | bytes) -> Any:
        return self.value

    def crawl_delay(self, _robot: str | bytes) -> Any:
        return self.value


class Lines(Answers):
    def lines(self, _robot: str | bytes, /, *_fields: bytes) -> Any:
        return self.value


async def soon() -> bool:
    return True


def is_closed(coroutine: Any) -> bool:
    return coroutine.cr_frame is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("parser", [Answers, Lines])
def test_a_coroutine_is_closed(parser: type[Answers]) -> None:
    answers = soon()
    with pytest.raises(ParserDefectError, match="coroutine"):
        bools_of(parser(answers))("http://a/", "fig")
    assert is_closed(answers)
    later = soon()
    with pytest.raises(ParserDefectError, match="coroutine"):
        delay_of(parser(later), "fig")
    assert is_closed(later)


def test_a_number_is_a_delay() -> None:
    assert delay_of(Answers(Decimal(2)), "fig") == Delay(2.0, None)
    for secs in (None, 0, float("nan"), float("inf")):
        assert delay_of(Answers(secs), "fig") is None


@pytest.mark.parametrize("secs", ["2", True, [2]])
def test_no_number_is_a_defect(secs: Any) -> None:
    with pytest.raises(ParserDefectError, match="crawl_delay"):
        delay_of(Answers(secs), "fig")


def test_lines_are_to_be_lines() -> None:
    def none() -> Iterator[Any]:
        yield from ()

    assert delay_of(Lines(none()), "fig") is None
    with pytest.raises(ParserDefectError, match="lines"):
        delay_of(Lines(5), "fig")


class Raises(Answers):
    def allowed(self, _url: str, _robot: str | bytes) -> Any:
        raise self.value


@pytest.mark.parametrize(
    "error", [ValueError("x"), StopIteration("x"), CancelledError("x"), SystemExit("x")], ids=repr
)
def test_an_error_is_a_defect_that_names_the_method(error: BaseException) -> None:
    says = rf"allowed\(\) of the parser .*Raises raised {type(error).__name__}: x"
    with pytest.raises(ParserDefectError, match=says) as raised:
        bools_of(Raises(error))("http://a/", "fig")
    assert raised.value.__cause__ is error


def test_who_ends_the_process_is_let_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        bools_of(Raises(KeyboardInterrupt()))("http://a/", "fig")


def test_from_crawler_that_returns_no_parser() -> None:
    assert checked_parser(KosterRobotParser, parser := Answers(None)) is parser
    with pytest.raises(ParserDefectError, match="returned a value of type NoneType, not a parser"):
        checked_parser(KosterRobotParser, None)


@pytest.mark.parametrize("kind", [KosterRobotParser, Rfc9309RobotParser, StrictestRobotParser])
def test_the_methods_by_keyword(kind: type[RobotParser]) -> None:
    body = b"User-agent: fig\nCrawl-delay: 3\nDisallow: /a"
    parser = kind.from_crawler(crawler=None, robotstxt_body=body)  # type: ignore[arg-type]
    assert not parser.allowed(url="http://h/a", user_agent="fig")
    assert parser.crawl_delay(user_agent=b"fig") == 3.0
