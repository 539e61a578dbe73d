"""KosterRobotParser, as Scrapy's own middleware uses a RobotParser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.robotstxt import RobotParser
from scrapy.utils.misc import load_object
from scrapy.utils.test import get_crawler

from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.protocol.verdict import ExplainingParser

BODY = b"""\
User-agent: figtree
Disallow: /tmp
Crawl-delay: 2.5

User-agent: *
Disallow: /
"""


@pytest.fixture
def parser() -> KosterRobotParser:
    return KosterRobotParser.from_crawler(get_crawler(), BODY)


def test_is_a_robot_parser(parser: KosterRobotParser) -> None:
    assert isinstance(parser, RobotParser)
    assert isinstance(parser, ExplainingParser)


def test_can_be_named_in_the_settings() -> None:
    name = "scrapy_koster.parsers.koster.KosterRobotParser"
    crawler = get_crawler(settings_dict={"ROBOTSTXT_PARSER": name})
    # What Scrapy's middleware does when it starts, to see that the parser works.
    load_object(crawler.settings["ROBOTSTXT_PARSER"]).from_crawler(crawler, b"")


def test_an_empty_file_allows_everything() -> None:
    parser = KosterRobotParser.from_crawler(None, b"")
    assert parser.allowed("http://h/", "figtree")
    assert parser.crawl_delay("figtree") is None


@pytest.mark.parametrize("robot", ["figtree", b"figtree", "FigTree/0.1 Robot", b"FigTree/0.1"])
@pytest.mark.parametrize("url", ["http://h/tmp/a", b"http://h/tmp/a", "http://h/%74mp"])
def test_takes_text_and_octets(
    parser: KosterRobotParser, url: str | bytes, robot: str | bytes
) -> None:
    assert parser.allowed(url, robot) is False
    assert parser.ruling(url, robot).allowed is False
    assert parser.allowed(b"http://h/a", robot) is True
    assert parser.crawl_delay(robot) == 2.5


def test_says_which_line_decided(parser: KosterRobotParser) -> None:
    rule = parser.ruling("http://h/tmp", "figtree").rule
    assert rule is not None
    assert (rule.number, rule.field, rule.value) == (2, b"disallow", b"/tmp")


def test_crawl_delay_is_that_of_the_robots_record(parser: KosterRobotParser) -> None:
    assert parser.crawl_delay("figtree") == 2.5
    assert parser.crawl_delay("other") is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"2", 2.0),
        (b"0", 0.0),
        (b".5", 0.5),
        (b"10 # slowly", 10.0),
        (b"", None),
        (b"-1", None),
        (b"soon", None),
        (b"2s", None),
        (b"nan", None),
        (b"inf", None),
        (b"1e999", None),
        (b"1,5", None),
        (b"\xb2", None),
    ],
)
def test_crawl_delay(value: bytes, seconds: float | None) -> None:
    body = b"User-agent: *\nDisallow:\nCRAWL-delay : " + value + b"\n"
    parser = KosterRobotParser.from_crawler(None, body)
    assert parser.crawl_delay("figtree") == seconds


@given(body=st.binary(), url=st.text(), robot=st.one_of(st.text(), st.binary()))
def test_never_raises(body: bytes, url: str, robot: str | bytes) -> None:
    parser = KosterRobotParser.from_crawler(None, b"User-agent: *\nCrawl-delay: " + body)
    assert isinstance(parser.allowed(url, robot), bool)
    delay = parser.crawl_delay(robot)
    assert delay is None or delay >= 0
