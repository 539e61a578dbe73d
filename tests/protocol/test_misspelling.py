"""Misspelt lines, as Google's parser reads them: StrictestRobotParser obeys them."""

from __future__ import annotations

import pytest

from scrapy_koster.parsers import KosterRobotParser, Rfc9309RobotParser, StrictestRobotParser
from scrapy_koster.protocol.misspelling import corrected, has_other_record
from scrapy_koster.protocol.wording import because_of

URL = "http://www.fict.org"
DISALLOW = ("Dissallow", "Dissalow", "Disalow", "Diasllow", "Disallaw")
AGENT = ("Useragent", "User agent")


@pytest.mark.parametrize(
    ("robots", "written"),
    [
        *((f"User-agent: *\n{field}: /a", f"line 2 '{field}: /a'") for field in DISALLOW),
        *((f"{field}: *\nDisallow: /a", "line 2 'Disallow: /a'") for field in AGENT),
        ("User-agent: *\n dISALOW : /a # here", "line 2 'Disalow: /a'"),
        ("User-agent: *\nDisallow /a", "line 2 'Disallow: /a'"),
        ("User-agent *\nDisallow: /a", "line 2 'Disallow: /a'"),
        ("User-agent: *\nDisallowed: /a", "line 2 'Disallowed: /a'"),
    ],
)
@pytest.mark.parametrize("path", ["/a", "/a/b?c=%2F"])
def test_each_misspelling(robots: str, written: str, path: str) -> None:
    """Only the strictest reading forbids it, and it names the line as it is written."""
    body, url = robots.encode(), URL + path
    assert KosterRobotParser(body).allowed(url, "fig")
    assert Rfc9309RobotParser(body).allowed(url, "fig")
    parser = StrictestRobotParser(body)
    for _ in range(2):  # the second is decided by what all have read
        assert not parser.allowed(url, "fig")
        assert parser.allowed(f"{URL}/b", "fig")
        assert parser.allowed(f"{URL}/robots.txt", "fig")
    ruling = parser.ruling(url, "fig")
    assert not ruling.allowed
    assert ruling.is_misspelt
    assert because_of(ruling, "fig").startswith(f"{written} in the group for ")
    assert because_of(ruling, "fig").endswith("; RFC 9309 2.2.2, misspellings corrected")
    assert parser.ruling(f"{URL}/b", "fig").allowed


@pytest.mark.parametrize(
    "line",
    [
        "Disallow /a /b", "Disallow", "User agent fig", "Dis allow: /a", "Sitemap /a",
        "# Disallow /", "Noindex: /a", "Host example.com", "Crawl-delay 5", ": Disallow /a",
        "Disallow #/a", "", "\t",
    ],
)  # fmt: skip
def test_what_is_no_misspelling(line: str) -> None:
    robots = f"User-agent: *\n{line}\nDisallow : /b\n user-agent\t:x\nAllow: /"
    assert corrected(robots.encode()) is None
    assert corrected(line.encode()) is None


def test_an_allow_line_opens_nothing_that_another_reading_forbids() -> None:
    parser = StrictestRobotParser(b"User-agent: *\nAllowed: /a/b\nDisallow: /a\nDisalow: /c")
    assert not parser.allowed(f"{URL}/a/b", "fig")
    assert not parser.allowed(f"{URL}/c", "fig")
    ruling = parser.ruling(f"{URL}/a/b", "fig")
    assert not ruling.is_misspelt
    assert ruling.also


@pytest.mark.parametrize(
    ("robots", "has"),
    [
        (b"-->User-agent: *\nDisallow: /x\n", True),
        (b"Useragent: *\nDisallow: /x\n", True),
        (b"-->User-agent: *\n", False),
        (b"User-agent: *\nDisallow: /x\n", False),
    ],
)
def test_a_record_of_other_lines(robots: bytes, *, has: bool) -> None:
    assert has_other_record(robots) == has
