"""KosterRobotParser, as Scrapy's own middleware uses a RobotParser."""

from __future__ import annotations

import pytest
from scrapy.robotstxt import RobotParser
from scrapy.utils.test import get_crawler

from scrapy_koster.parsers.koster import KosterRobotParser

BODY = b"""\
User-agent: figtree
Disallow: /tmp
Crawl-delay: 2.5

User-agent: *
Disallow: /
"""


@pytest.mark.parametrize("robot", ["figtree", b"figtree", "FigTree/0.1 Robot", b"FigTree/0.1"])
@pytest.mark.parametrize("url", ["http://h/tmp/a", b"http://h/tmp/a", "http://h/%74mp"])
def test_takes_text_and_octets(url: str | bytes, robot: str | bytes) -> None:
    parser = KosterRobotParser.from_crawler(get_crawler(), BODY)
    assert isinstance(parser, RobotParser)
    assert parser.allowed(url, robot) is False
    assert parser.ruling(url, robot).allowed is False
    assert parser.allowed(b"http://h/a", robot) is True
    assert parser.crawl_delay(robot) == 2.5
