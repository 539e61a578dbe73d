"""Both readings at once: what either forbids is forbidden, and it says which did."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.parsers import KosterRobotParser, Rfc9309RobotParser, StrictestRobotParser
from scrapy_koster.protocol.line import lines
from scrapy_koster.protocol.misspelling import corrected
from scrapy_koster.protocol.ruling import Standard

URL = "http://www.fict.org"
HEADER = "FigTree/0.1 Robot libwww-perl/5.04"
MOZILLA = "Mozilla/5.0 (compatible; X/1)"


def strictest(body: bytes) -> StrictestRobotParser:
    return StrictestRobotParser.from_crawler(None, body)


@pytest.mark.parametrize(
    ("body", "path", "robot", "said"),
    [
        pytest.param("Disallow: /a", "/b", "fig", [], id="both allow"),
        pytest.param("Disallow: /a", "/a", "fig", ["3.2.2 2", "2.2.2 2"], id="both forbid"),
        pytest.param("Disallow: /*.php", "/a.php", "fig", ["2.2.3 2"], id="C6 wildcard"),
        pytest.param("Allow: /\nDisallow: /a", "/a", "fig", ["2.2.2 3"], id="C1 Allow first"),
        pytest.param(
            "Disallow: /a\nDisallow: /ab", "/ab", "fig", ["3.2.2 2", "2.2.2 3"], id="two lines"
        ),
        pytest.param(
            "Disallow:\n\nUser-agent: FigTreeSearch\nDisallow: /", "/", "figtree", ["3.2.2 5"],
            id="A1",
        ),
        pytest.param(
            "Disallow:\n\nUser-agent: figtree\nDisallow: /", "/", HEADER, ["3.2.2 5", "2.2.2 5"],
            id="the token of a header",
        ),
        pytest.param(
            "Disallow: /a\nUser-agent: X\nDisallow: /b", "/b", MOZILLA, ["2.2.2 4"],
            id="A10 a name behind the name token",
        ),
        pytest.param("Disallow: /", "/robots.txt", "fig", [], id="/robots.txt"),
    ],
)  # fmt: skip
def test_what_either_standard_forbids_is_forbidden_by_its_line(
    body: str, path: str, robot: str, said: list[str]
) -> None:
    parser = strictest(b"User-agent: *\n" + body.encode())
    for url, name in ((URL + path, robot), ((URL + path).encode(), robot.encode())):
        for _ in range(2):  # the second is decided by what both have read
            assert parser.allowed(url, name) is (not said)
            assert parser.allowed(f"{URL}/robots.txt", name)
        ruling = parser.ruling(url, name)
        rulings = [] if ruling.allowed else [ruling, *([ruling.also] if ruling.also else [])]
        assert [f"{each.section} {each.rule.number}" for each in rulings if each.rule] == said
        standards = {"3": Standard.DRAFT, "2": Standard.RFC_9309}
        assert [each.standard for each in rulings] == [standards[each[0]] for each in said]


FRAGMENTS = st.sampled_from(
    [b"\nUser-agent: *", b"\nUser-agent: fig", b"\nDisallow: /", b"\nAllow: /", b"\nDisallow: /*a$",
     b"\nUseragent: *", b"\nUser-agent fig", b"\nDisallow /a", b"\nDisalow: /", b"\nAllowed: /a",
     b"\nCrawl-delay: 1", b"\n", b"*", b"$", b"%", b"%2f", b"#", b"\xff", b"\0", b"\r", b"a"]
)  # fmt: skip
LISTS = st.lists(FRAGMENTS, max_size=40).map(b"".join)
FILES = st.binary() | LISTS | LISTS.map(lambda rest: b"User-agent: *" + rest)


@given(FILES, st.text(max_size=10), st.sampled_from(["fig", HEADER, "", "Fig*"]))
def test_it_is_what_both_say(body: bytes, path: str, robot: str) -> None:
    url = f"{URL}/{path}"
    parser = strictest(body)
    both = all(each(body).allowed(url, robot) for each in (KosterRobotParser, Rfc9309RobotParser))
    if (right := corrected(body)) is not None:
        both = both and Rfc9309RobotParser(right).allowed(url, robot)
        assert (len(lines(right)), corrected(right)) == (len(lines(body)), None)
    for _ in range(2):
        assert parser.allowed(url, robot) is parser.ruling(url, robot).allowed is both
        parser.allowed(f"{URL}/", robot)


def test_the_record_of_a_robot_is_that_of_the_draft_or_else_of_rfc_9309() -> None:
    both = strictest(b"User-agent: figtree\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n")
    for robot, number in (("fig", 1), ("other", 4)):
        record = both.record(robot)
        assert record is not None
        assert record.agents[0].number == number
    assert strictest(b"").record("fig") is None
