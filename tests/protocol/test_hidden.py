"""Lines behind markup, or with other space around: only the strictest reading obeys them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.parsers import KosterRobotParser, Rfc9309RobotParser, StrictestRobotParser
from scrapy_koster.protocol.hazard import Cause, watch_of
from scrapy_koster.protocol.misspelling import has_only_other_lines, unhidden
from scrapy_koster.protocol.wording import because_of

URL = "http://www.fict.org"
SPACES = {
    "no-break space": "\xa0",
    "byte order mark": "\ufeff",
    "vertical tab": "\v",
    "line separator": "\u2028",
    "several": " \xa0\t\u3000 ",
}
SPACED = {
    "before a path": "User-agent: *\nDisallow:{0}/a",
    "behind a path": "User-agent: *\nDisallow: /a{0}",
    "before the colon": "User-agent: *\nDisallow{0}: /a",
    "before a field": "User-agent: *\n{0}Disallow: /a",
    "before the first field": "\n{0}User-agent: *\nDisallow: /a",
    "everywhere": "{0}User-agent{0}:{0}*{0}\n{0}Disallow:{0}/a{0}# x",
}
MARKED = {
    "end of a comment": ("--><!-- x -->User-agent: *\nDisallow: /a", 2),
    "a comment around": ("<!--User-agent: *\nDisallow: /a-->", 2),
    "pre": ("<pre>User-agent: *\nDisallow: /a</pre>\nx", 2),
    "line breaks": ("<p>User-agent: *<br>Disallow: /b<br/>Disallow: /a<br>\n</p>", 1),
    "a list": ("<ul><li>User-agent: *</li><li><b>Disallow:</b> /a</li></ul>", 1),
    "attributes": ("<p style='color:#fff'>User-agent: *\n<a href=\"#x\">Disallow: /a</a>", 2),
}  # fmt: skip


def assert_only_the_strictest(robots: bytes, number: int) -> None:
    url = f"{URL}/a/b?c"
    parser = StrictestRobotParser(robots)
    for _ in range(2):
        assert not parser.allowed(url, "fig")
        assert parser.allowed(f"{URL}/x", "fig")
    ruling = parser.ruling(url, "fig")
    assert ruling.is_misspelt
    assert because_of(ruling, "fig").startswith(f"line {number} 'Disallow: /a' in the group for ")
    for kind in (KosterRobotParser, Rfc9309RobotParser):
        reading = kind(robots)
        assert reading.allowed(url, "fig")
        watch = watch_of(robots, reading)
        assert watch is not None
        assert watch.hazard(f"{URL}/x", "fig") is None
        hazard = watch.hazard(url, "fig")
        assert hazard is not None
        assert hazard.cause is Cause.HIDDEN
        assert hazard.draft == reading.ruling(url, "fig")
        assert hazard.rfc9309 == ruling
        assert f"line {number} 'Disallow" in hazard.because("fig")
        assert hazard.because("fig").endswith("which neither standard reads")
    assert not has_only_other_lines(robots)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("form", SPACED.values(), ids=SPACED)
def test_lines_with_other_space_are_for_the_strictest(form: str, space: str) -> None:
    robots = form.format(space)
    assert_only_the_strictest(robots.encode(), 1 + robots.count("\n"))


@pytest.mark.parametrize(("robots", "number"), MARKED.values(), ids=MARKED)
def test_lines_behind_markup_are_for_the_strictest(robots: str, number: int) -> None:
    assert_only_the_strictest(robots.encode(), number)


@pytest.mark.parametrize(
    "robots",
    [
        "", "User-agent: *\nDisallow: /a", "# <b>Disallow: /a", "# x > Disallow: /a", "<p>No</p>",
        "# \xa0 Disallow: /a", "Disallow: /*<price", "Disallow: /<name>", "Disallow: /<n>/x > y",
        "Disallow: /a>b", "Disallow: /\u65e5\u672c\xa0\u8a9e", "\u3000", "<Disallow: /a", "\v", ">",
        "x\xa0Disallow: /a", "Crawl-delay:\xa03", "\xa0# Disallow: /a", "<p>Disallow us</p>",
        "Allow\xa0x: /a",
    ],
)  # fmt: skip
def test_what_hides_nothing(robots: str) -> None:
    assert unhidden(robots.encode()) is None
    assert watch_of(robots.encode(), Rfc9309RobotParser(robots.encode())) is None


def test_its_other_lines_keep_their_numbers() -> None:
    first = "<p>User-agent: *<br>Disallow: /b<br>Disallow: /c"
    robots = f"{first}\n\nCrawl-delay: 7\nContent-Usage: train-ai=n"
    parser = StrictestRobotParser(robots.encode())
    assert parser.crawl_delay("fig") == 7
    assert [line.number for line in parser.lines("fig", b"crawl-delay")] == [3]
    [lines] = [each for each in parser.lines_apart("fig", b"content-usage") if each]
    assert [line.number for line in lines] == [4]


LINES = st.lists(
    st.sampled_from(
        ["User-agent: *", "User-agent: fig", "Disallow: /a", "Allow: /a/b", "\n", "\n", "<b>",
         "</b>", "<", ">", "-->", "\xa0", "\u2028", "\v", "#", ":", "x", "\r", "\xe9", "Disalow: /",
         "<p class=a>"]
    ),
    max_size=20,
).map("".join)  # fmt: skip


@given(LINES, st.sampled_from(["utf-8", "latin-1"]))
def test_it_keeps_its_lines_and_finds_nothing_twice(robots: str, encoding: str) -> None:
    body = robots.encode(encoding, "replace")
    seen = unhidden(body)
    if seen is not None:
        assert seen.count(b"\n") == body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
        assert unhidden(seen) is None
