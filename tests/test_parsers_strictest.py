"""Both readings at once: what either forbids is forbidden, and it says which did."""

from __future__ import annotations

from typing import Any

import pytest
from conformance import Case, each_case
from hypothesis import given
from hypothesis import strategies as st
from real_files import File
from scrapy.robotstxt import ProtegoRobotParser

from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.parsers.strictest import StrictestRobotParser
from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.verdict import RFC_9309, ExplainingParser

URL = "http://www.fict.org"
HEADER = "FigTree/0.1 Robot libwww-perl/5.04"


def strictest(body: bytes) -> StrictestRobotParser:
    return StrictestRobotParser.from_crawler(None, body)


@pytest.mark.parametrize(
    ("body", "path", "robot", "section", "line"),
    [
        pytest.param("Disallow: /a", "/b", "fig", None, None, id="both allow"),
        pytest.param("Disallow: /a", "/a", "fig", "3.2.2", 2, id="both forbid: the draft's line"),
        pytest.param("Disallow: /*.php", "/a.php", "fig", RFC_9309, None, id="C6 wildcard"),
        pytest.param("Disallow: /a$", "/a", "fig", RFC_9309, None, id="C6 end"),
        pytest.param("Allow: /\nDisallow: /a", "/a", "fig", RFC_9309, None, id="C1 Allow first"),
        pytest.param("Disallow: /\nAllow: /a", "/a", "fig", "3.2.2", 2, id="C1 Disallow first"),
        pytest.param("Disallow: a/", "/a/", "fig", None, None, id="C5 neither"),
        pytest.param(
            "Disallow: /a\nUser-agent: *\nDisallow: /b", "/b", "fig", RFC_9309, None, id="A5"
        ),
        pytest.param(
            "Disallow:\n\nUser-agent: FigTreeSearch\nDisallow: /", "/", "figtree", "3.2.2", 5,
            id="A1",
        ),
        pytest.param(
            "Disallow:\n\nUser-agent: tree\nDisallow: /", "/", "Fig (tree)", RFC_9309, None,
            id="the header, as Scrapy asks",
        ),
        pytest.param(
            "Disallow: /\n\nUser-agent: long-name\nDisallow:", "/", "Mozilla/5.0 (long-name)",
            "3.2.2", 2, id="a name in the header",
        ),
        pytest.param(
            "Disallow:\n\nUser-agent: figtree\nDisallow: /*\n\nUser-agent: libwww-perl\nAllow: /",
            "/", HEADER, RFC_9309, None, id="the token, as RFC 9309 asks",
        ),
        pytest.param("Disallow: /", "/robots.txt", "fig", None, None, id="/robots.txt"),
    ],
)  # fmt: skip
def test_rulings(body: str, path: str, robot: str, section: str | None, line: int | None) -> None:
    parser = strictest(b"User-agent: *\n" + body.encode())
    allowed = parser.allowed(URL + path, robot)
    assert allowed is (section is None)
    for url, name in ((URL + path, robot), ((URL + path).encode(), robot.encode())):
        ruling = parser.ruling(url, name)
        assert ruling.allowed is parser.allowed(url, name) is allowed
        if not allowed:
            assert ruling.section == section
            assert (ruling.rule.number if ruling.rule else None) == line


def test_the_line_of_what_is_allowed_is_the_draft_s() -> None:
    ruling = strictest(b"User-agent: *\nAllow: /a\nDisallow: /\n").ruling(f"{URL}/a", "fig")
    assert ruling.rule == Line(2, b"allow", b"/a")


@pytest.mark.parametrize(
    "url", ["http://[/robots.txt", "http://[::1/a?b", f"{URL}/\ud800", "http://[/\u2028"]
)
def test_a_url_that_protego_cannot_read_is_refused(url: str) -> None:
    parser = strictest(b"User-agent: *\nDisallow: /b\n")
    assert KosterRobotParser(b"User-agent: *\nDisallow: /b\n").allowed(url, "fig")
    assert not parser.allowed(url, "fig")
    assert parser.ruling(url, "fig").section == RFC_9309


@pytest.mark.parametrize("robot", ["Caf\xe9Bot/1.0", b"Caf\xe9Bot/1.0", "\ud800", "", b"", "*"])
@pytest.mark.parametrize("url", [f"{URL}/caf\xe9", f"{URL}/caf\xe9".encode(), b"http://a/\xe9"])
def test_octets_of_any_kind(robot: str | bytes, url: str | bytes) -> None:
    assert strictest(b"User-agent: *\nDisallow: /b").allowed(url, robot)
    assert not strictest(b"User-agent: *\nDisallow: /caf%C3%A9\nDisallow: /%E9").allowed(url, robot)


@pytest.mark.parametrize(
    ("body", "delay"),
    [
        pytest.param("", None, id="none"),
        pytest.param("Crawl-delay: x", None, id="no number"),
        pytest.param("Crawl-delay: 2", 2.0, id="both"),
        pytest.param("Crawl-delay: 3\nCrawl-delay: 5", 5.0, id="the last, which Protego takes"),
        pytest.param("Crawl-delay: 5\nCrawl-delay: 3", 5.0, id="the first, which the draft takes"),
        pytest.param("Allow: /\nUser-agent: *\nCrawl-delay: 7", 7.0, id="Protego alone"),
        pytest.param("Allow: /\nUser-agent: FigTrees\nCrawl-delay: 4", 4.0, id="the draft alone"),
        pytest.param("Crawl-delay: 0", 0.0, id="zero"),
    ],
)
@pytest.mark.parametrize("robot", ["figtree", HEADER, HEADER.encode()])
def test_the_larger_crawl_delay(body: str, delay: float | None, robot: str | bytes) -> None:
    assert strictest(b"User-agent: *\n" + body.encode()).crawl_delay(robot) == delay


def test_it_explains_itself() -> None:
    assert isinstance(strictest(b""), ExplainingParser)


FRAGMENTS = st.sampled_from(
    [b"User-agent: *", b"User-agent: fig", b"Disallow: /", b"Allow: /", b"Disallow: /*a$",
     b"Crawl-delay: 1", b"\n", b"\n", b"*", b"$", b"%", b"%2f", b"#", b"\xff", b"\0", b"\r", b"a"]
)  # fmt: skip
FILES = st.one_of(st.binary(), st.lists(FRAGMENTS, max_size=40).map(b"".join))


@given(FILES, st.text(max_size=10), st.sampled_from(["fig", HEADER, "", "Fig*"]))
def test_it_is_never_less_strict_than_either(body: bytes, path: str, robot: str) -> None:
    url = f"{URL}/{path}"
    allowed = strictest(body).allowed(url, robot)
    assert strictest(body).ruling(url, robot).allowed is allowed
    if not allowed:
        return
    assert KosterRobotParser(body).allowed(url, robot)
    assert ProtegoRobotParser(body, None).allowed(url, robot)


@pytest.mark.parametrize(
    "between", ["", "Sitemap: http://a/\n", "x\n", "x: y\n", "\n", "#\n", "Disalow:\n"]
)
def test_a_file_that_would_take_minutes_is_refused(between: str) -> None:
    agents = "".join(f"User agent figtree{n}\n{between}" for n in range(20_000))
    rules = "".join(f"Disallow: /{n}\n" for n in range(20_000))
    parser = strictest(f"{agents}{rules}User-agent: *\nDisallow: /a\n".encode())
    assert parser.ruling(f"{URL}/b", "figtree").section == RFC_9309
    assert not parser.allowed(f"{URL}/b", "figtree")
    assert parser.crawl_delay("figtree") is None


def test_a_file_of_many_records_is_not() -> None:
    records = "".join(f"User-agent: a{n}\nDisallow: /\nCrawl-delay: 1\n" for n in range(20_000))
    assert strictest(records.encode()).allowed(f"{URL}/b", "figtree")


@given(FILES, st.one_of(st.text(), st.binary()), st.one_of(st.text(), st.binary()))
def test_nothing_raises(body: bytes, url: str | bytes, robot: str | bytes) -> None:
    parser = strictest(body)
    assert parser.allowed(url, robot) is parser.ruling(url, robot).allowed
    parser.crawl_delay(robot)


@each_case
def test_conformance_cases(case: Case) -> None:
    allowed = strictest(case.body).allowed(case.url, case.agent)
    assert case.allowed or not allowed
    assert not allowed or ProtegoRobotParser(case.body, None).allowed(case.url, case.agent)


def test_real_files(corpus: list[File]) -> None:
    counts: dict[tuple[Any, ...], int] = {}
    for body, urls in corpus:
        both, draft = strictest(body), KosterRobotParser(body)
        protego = ProtegoRobotParser(body, None)
        for robot in ("figtree", "Googlebot/2.1 (+http://www.google.com/bot.html)"):
            for url in urls:
                answers = (
                    both.allowed(url, robot), draft.allowed(url, robot), protego.allowed(url, robot)
                )  # fmt: skip
                counts[answers] = counts.get(answers, 0) + 1
    assert {answers for answers in counts if answers[0]} == {(True, True, True)}
    assert counts[False, True, False] > 0
    assert counts[False, False, True] > 0
