"""3.2 to 5.2: what a /robots.txt says, section by section; then what holds of any file.

Each example of the draft, and of the documents around it, is a row.
"""

from __future__ import annotations

import pytest
from harness import oracle
from harness import strategies as some
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_koster.protocol.line import Line, is_wide, lines, narrow, whole_lines
from scrapy_koster.protocol.path import url_path
from scrapy_koster.protocol.reading import RobotsTxt
from scrapy_koster.protocol.records import has_record, parse
from scrapy_koster.protocol.ruling import Heading, Ruling

EXAMPLES = settings().max_examples


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h?x=/a", "/?x=/a"),
        ("http://h/a;p?q#f", "/a;p?q"),
        ("http://[::1]:80/a", "/a"),
        ("http://h/%41%2f%2F%252f", "/A\u0100\u0100%2f"),
        ("http://h/é", "/\xc3\xa9"),
        (b"http://h/\xe9", "/\xe9"),
        ("/a#b", "/a"),
    ],
)
def test_3_2_2_path_portion_of_a_url(url: str | bytes, path: str) -> None:
    assert url_path(url) == path


WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
TEXT = "# \u0a0d\u0d0a \u010a\r\nUser-agent: *\rDisallow: /\u00e9\nDisallow: /b\nCrawl-delay: 5\n"


@pytest.mark.parametrize("encoding", WIDE)
def test_b3_a_wide_file_without_a_mark_is_known_by_its_zeros(encoding: str) -> None:
    body = "User-agent: *\nDisallow: /\n".encode(encoding)
    assert is_wide(body)
    assert not RobotsTxt(body).allowed("http://h/a", "x")
    assert narrow(whole_lines(body, len(body) - 4)) == b"User-agent: *\n"


@pytest.mark.parametrize(
    "start", [b"\x00a\x00b", b"a\x00b\x00", b"\x00\x00\x00a", b"\x00", b"\x00a\x00"]
)
def test_b3_some_zeros_make_no_file_wide(start: bytes) -> None:
    """Or they would open a site whose other lines are read as they are."""
    body = start + b"\nUser-agent: *\nDisallow: /\n"
    assert not is_wide(body)
    assert not RobotsTxt(body).allowed("http://h/a", "x")


@pytest.mark.parametrize("encoding", WIDE)
def test_b3_a_wide_file_with_a_mark_is_decoded(encoding: str) -> None:
    body = f"\ufeff{TEXT}".encode(encoding)
    assert is_wide(body)
    assert lines(body) == lines(TEXT.encode())
    assert parse(body) == parse(TEXT.encode())
    assert not RobotsTxt(body).allowed("http://a/%C3%A9", "x")
    assert [line.value for line in RobotsTxt(body).lines("x", b"crawl-delay")] == [b"5"]
    assert has_record(body)


@pytest.mark.parametrize("encoding", WIDE)
def test_b3_a_wide_file_is_cut_where_a_line_ends(encoding: str) -> None:
    body = f"\ufeff{TEXT}".encode(encoding)
    seen = {narrow(whole_lines(body, size)) for size in range(len(body) + 1)}
    ends = [end for end in range(len(TEXT) + 1) if TEXT[:end].endswith(("\n", "\r"))]
    assert seen == {b"", *(TEXT[:end].encode() for end in ends)}


@pytest.mark.parametrize(
    ("max_bytes", "kept"), [(9, b"ab\rcd\r\ne"), (6, b"ab\rcd\r"), (2, b""), (0, b"")]
)
def test_a_file_is_cut_where_a_line_ends(max_bytes: int, kept: bytes) -> None:
    assert whole_lines(b"ab\rcd\r\ne", max_bytes) == kept  # B16
    assert whole_lines(b"ab\ncd\n\ne", max_bytes) == kept.replace(b"\r", b"\n")


def test_a_ruling_on_the_robots_txt_itself() -> None:
    heading = Heading([Line(2, b"user-agent", b"*")])
    ruling = RobotsTxt(b"\nUser-agent: *\nDisallow: /").ruling("http://h/robots.txt", "x")
    assert ruling == Ruling(allowed=True, section="3.2.2", record=heading, rule=None)


def test_a_ruling_where_no_record_is_for_the_robot() -> None:
    ruling = RobotsTxt(b"User-agent: y\nDisallow: /").ruling("http://h/", "x")
    assert ruling == Ruling(allowed=True, section="3.2.1", record=None, rule=None)


def test_of_several_names_the_first_that_has_a_record_finds_it() -> None:
    robots = RobotsTxt(b"User-agent: figtree\nDisallow: /\nUser-agent: *\nDisallow: /x\n")
    assert robots.name_of("fig-images, figtree") == "figtree"
    assert robots.name_of("fig-images, fig-news") == "fig-images"
    assert robots.name_of("Figtree/0.1") == "figtree"


class TestAnyFile:
    @pytest.mark.slow
    @given(
        body=some.bodies(), urls=st.lists(some.urls(), min_size=1, max_size=6), robot=some.ROBOTS
    )
    @settings(max_examples=2 * EXAMPLES)
    @example(b"User-agent: *\nAllow: /a/b\nDisallow: /a\n", ["http://h/a/b", "http://h/a/c"], "x")
    def test_is_decided_as_the_oracle_does(self, body: bytes, urls: list[str], robot: str) -> None:
        robots = RobotsTxt(body)
        for url in urls:
            ruling = robots.ruling(url, robot)
            line = ruling.rule.number if ruling.rule else None
            assert (ruling.allowed, line) == oracle.decide(body, url, robot)
            assert robots.allowed(url, robot) is ruling.allowed
            octets = url.encode("utf-8", "surrogatepass")
            assert robots.allowed(octets, robot) is ruling.allowed
            assert robots.ruling(octets, robot) == ruling

    @given(body=st.binary(), url=st.one_of(st.text(), st.binary()), robot=st.text())
    def test_never_raises(self, body: bytes, url: str | bytes, robot: str) -> None:
        for text in (body, b"User-agent: *\n" + body, b"User-agent: *\nDisallow: /" + body):
            robots = RobotsTxt(text)
            assert robots.allowed(url, robot) is robots.ruling(url, robot).allowed
            assert has_record(text) is bool(parse(text))


def test_many_robots_cost_no_more_than_a_few() -> None:
    robots = RobotsTxt(b"User-agent: *\nDisallow: /a\n")
    for n in range(100):
        assert not robots.allowed("http://h/a", f"robot{n}")
        assert not robots.ruling("http://h/a", f"robot{n}").allowed
    assert len(robots._rules) <= 8


def test_a_ruling_names_no_more_agents_than_tell_records_apart() -> None:
    body = b"User-agent: %d\n" * 1000 % tuple(range(1000)) + b"User-agent: *\nDisallow: /a\n"
    record = RobotsTxt(body).ruling("http://h/a", "x").record
    assert record is not None
    assert [agent.number for agent in record.agents] == list(range(1, 101))
