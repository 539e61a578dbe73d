"""3.2 to 5.2: what a /robots.txt says, section by section; then what holds of any file.

Each example of the draft, and of the documents around it, is a row.
"""

from __future__ import annotations

import tracemalloc
from itertools import product
from pathlib import Path
from random import Random

import pytest
from harness import oracle
from harness import strategies as some
from harness.draft import COLUMNS, MATRIX, SECTION_4_AS_PRINTED
from harness.hostile import HOSTILE
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_koster.protocol.line import Line, is_wide, lines, narrow, whole_lines
from scrapy_koster.protocol.path import unescape, url_path
from scrapy_koster.protocol.reading import RobotsTxt
from scrapy_koster.protocol.records import Record, has_record, instructions, parse
from scrapy_koster.protocol.ruling import Heading, Ruling

EXAMPLES = settings().max_examples

SECTION_3_2 = """\
User-agent: webcrawler
User-agent: infoseek
Allow:    /tmp/ok.html
Disallow: /tmp
Disallow: /user/foo
"""


def decided(text: str | bytes, robot: str, path: str) -> str | None:
    """Return the line that decided, None where the URL is allowed by default."""
    body = text.encode() if isinstance(text, str) else text
    robots = RobotsTxt(body)
    ruling = robots.ruling(f"http://www.fict.org{path}", robot)
    assert robots.allowed(f"http://www.fict.org{path}", robot) == ruling.allowed
    assert ruling.allowed == (ruling.rule is None or ruling.rule.field == b"allow")
    if ruling.rule is None:
        return None
    return f"{ruling.rule.field.decode().title()}: {ruling.rule.value.decode()}"


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        pytest.param(SECTION_3_2, "/tmp/ok.html", "Allow: /tmp/ok.html", id="example-allow"),
        pytest.param(SECTION_3_2, "/tmp/other", "Disallow: /tmp", id="example-disallow"),
        pytest.param(SECTION_3_2, "/user/foo", "Disallow: /user/foo", id="example-last-line"),
        pytest.param(SECTION_3_2, "/user/bar", None, id="example-no-line"),
        pytest.param(
            "User-agent: webcrawler\n# why\n\t# why\nDisallow: /a # why\n",
            "/a",
            "Disallow: /a",
            id="comments-anywhere",
        ),
        pytest.param(
            "User-agent: webcrawler\nDisallow: /a#b\n",
            "/a",
            "Disallow: /a",
            id="comment-without-space",
        ),
        pytest.param(
            "User-agent: webcrawler\n#\n#\nUser-agent: x\nDisallow: /\n",
            "/a",
            "Disallow: /",
            id="comment-between-agents",
        ),
        pytest.param(
            "User-agent: webcrawler\n\n\nDisallow: /a\n\nDisallow: /b\n",
            "/b",
            "Disallow: /b",
            id="B12-blank-line-in-record",
        ),
        pytest.param(
            "User-agent: webcrawler\nDisallow: /a\nUser-agent: x\nDisallow: /b\n",
            "/b",
            None,
            id="B13-no-blank-line-between-records",
        ),
        pytest.param(
            "Disallow: /\nUser-agent: webcrawler\nDisallow: /a\n",
            "/b",
            None,
            id="B14-rule-before-agents",
        ),
        pytest.param(
            "User-agent: webcrawler\nCrawl-delay: 9\nUser-agent: *\nDisallow: /\n",
            "/b",
            None,
            id="B11-extension-is-a-rule-line",
        ),
        pytest.param(
            "User-agent: webcrawler\nDisallow: /a\n  /b\n", "/b", None, id="no-broken-lines"
        ),
        pytest.param(
            "User-agent: webcrawler\nDisallow /a\nDissallow: /b\nDisallow: /c\n",
            "/a",
            None,
            id="B6-no-colon",
        ),
        pytest.param(
            "  USER-AGENT :webcrawler\n\tdisALLOW\t: \t/a \t\n",
            "/a",
            "Disallow: /a",
            id="B7-B8-B9-space-and-case",
        ),
    ],
)
def test_3_2_file_format(text: str, path: str, line: str | None) -> None:
    assert decided(text, "webcrawler", path) == line


def test_3_2_records_have_their_lines_and_numbers() -> None:
    text = f"\n# none\n{SECTION_3_2}\nSitemap: /s # s\nthis is: garbage\nUser-agent: x\n"
    assert parse(text.encode()) == [
        Record(
            [Line(3, b"user-agent", b"webcrawler"), Line(4, b"user-agent", b"infoseek")],
            [
                Line(5, b"allow", b"/tmp/ok.html"),
                Line(6, b"disallow", b"/tmp"),
                Line(7, b"disallow", b"/user/foo"),
                Line(9, b"sitemap", b"/s"),
            ],
        )
    ]


def test_3_2_each_record_is_numbered_from_the_top_of_the_file() -> None:
    numbers = [[a.number for a in r.agents + r.rules] for r in parse(SECTION_4_AS_PRINTED.encode())]
    assert numbers == [[4, 5], [7, 8, 9], [11, 12, 13, 14, 15, 16]]


@pytest.mark.parametrize(
    ("agents", "robot", "obeyed"),
    [
        pytest.param(["figtree"], "FigTree/0.1 Robot libwww-perl/5.04", 0, id="example"),
        pytest.param(["figtree"], "figtree", 0, id="name-token"),
        pytest.param(["FigTreeSearch"], "figtree", 0, id="A1-token-in-value"),
        pytest.param(["fig"], "figtree", None, id="A1-value-in-token"),
        pytest.param(["figtree-news", "figtree"], "figtree", 0, id="A2-first-not-best"),
        pytest.param(["Googlebot", "*"], "bot", 0, id="A2-part-of-another-name"),
        pytest.param(["FIGTREE"], "figtree", 0, id="A3-upper-case"),
        pytest.param(["\u212a"], "k", None, id="A3-kelvin-sign-is-not-k"),
        pytest.param(["figtree", "figtree"], "figtree", 0, id="A4-two-records"),
        pytest.param(["*", "figtree"], "figtree", 1, id="A4-name-before-star"),
        pytest.param(["*", "*"], "figtree", 0, id="A5-two-stars"),
        pytest.param(["x", "y"], "figtree", None, id="A6-no-record"),
        pytest.param([], "figtree", None, id="A6-empty-file"),
        pytest.param(["x\nUser-agent: figtree"], "figtree", 0, id="A7-second-agent-line"),
        pytest.param(["FigTree/0.1"], "figtree", 0, id="A8-version"),
        pytest.param(["figtree*"], "figtree", 0, id="A8-star-behind"),
        pytest.param(["x, figtree, y"], "figtree", 0, id="A8-list"),
        pytest.param(["* all", "**"], "figtree", None, id="A8-not-exactly-a-star"),
        pytest.param([""], "figtree", None, id="A9-empty-agent"),
        pytest.param(["figtree", "*"], "", 1, id="A10-no-token"),
        pytest.param(["fig*", "*"], "*", 1, id="A10-token-is-a-star"),
        pytest.param(["mozilla"], "Mozilla/5.0 (compatible; X/1)", 0, id="A10-mozilla"),
    ],
)
def test_3_2_1_which_record(agents: list[str], robot: str, obeyed: int | None) -> None:
    text = "\n".join(f"User-agent: {agent}\nDisallow: /\n" for agent in agents)
    records = parse(text.encode())
    expected = None if obeyed is None else records[obeyed]
    robots = RobotsTxt(text.encode())
    assert robots.record(robot) == expected
    ruling = robots.ruling("http://www.fict.org/", robot)
    assert (ruling.record and ruling.record.agents) == (expected and expected.agents)
    assert ruling.section == ("3.2.2" if expected else "3.2.1")
    assert robots.allowed("http://www.fict.org/", robot) is ruling.allowed is (expected is None)


@pytest.mark.parametrize(
    ("record_path", "path", "matches"),
    [
        ("/tmp", "/tmp", True),
        ("/tmp", "/tmp.html", True),
        ("/tmp", "/tmp/a.html", True),
        ("/tmp/", "/tmp", False),
        ("/tmp/", "/tmp/", True),
        ("/tmp/", "/tmp/a.html", True),
        ("/a%3cd.html", "/a%3cd.html", True),
        ("/a%3Cd.html", "/a%3cd.html", True),
        ("/a%3cd.html", "/a%3Cd.html", True),
        ("/a%3Cd.html", "/a%3Cd.html", True),
        ("/a%2fb.html", "/a%2fb.html", True),
        ("/a%2fb.html", "/a/b.html", False),
        ("/a/b.html", "/a%2fb.html", False),
        ("/a/b.html", "/a/b.html", True),
        ("/%7ejoe/index.html", "/~joe/index.html", True),
        ("/~joe/index.html", "/%7Ejoe/index.html", True),
    ],
)
def test_3_2_2_table(record_path: str, path: str, matches: bool) -> None:
    disallow = f"Disallow: {record_path}"
    allow = f"Allow: {record_path}"
    assert decided(f"User-agent: *\n{disallow}\n", "x", path) == (disallow if matches else None)
    assert decided(f"User-agent: *\n{allow}\nDisallow: /\n", "x", path) == (
        allow if matches else "Disallow: /"
    )


@pytest.mark.parametrize(
    ("rules", "path", "line"),
    [
        pytest.param("Allow: /\nDisallow: /a", "/a", "Allow: /", id="C1-first-match"),
        pytest.param("Disallow: /a\nAllow: /a/b", "/a/b", "Disallow: /a", id="C1-not-longest"),
        pytest.param("Allow: /a/b\nDisallow: /a", "/a/b", "Allow: /a/b", id="C1-exception-first"),
        pytest.param("Disallow: /a\nAllow: /a", "/a", "Disallow: /a", id="C1-same-path"),
        pytest.param("Disallow: /a", "/b", None, id="no-match"),
        pytest.param("Disallow:\nDisallow: /a", "/a", "Disallow: /a", id="C2-empty-disallow"),
        pytest.param("Allow:\nDisallow: /a", "/a", "Disallow: /a", id="C2-empty-allow"),
        pytest.param("Disallow: /a%2Fb", "/a%2fb", "Disallow: /a%2Fb", id="C3-slash-hex-case"),
        pytest.param("Disallow: /a%2Fb", "/a%252Fb", None, id="C3-decoded-once"),
        pytest.param("Disallow: /a%252Fb", "/a%252fb", None, id="C3-case-of-what-is-no-escape"),
        pytest.param("Disallow: /a%zz", "/a%zz", "Disallow: /a%zz", id="C3-malformed"),
        pytest.param("Disallow: /a%", "/a%25", "Disallow: /a%", id="C3-lone-percent"),
        pytest.param("Disallow: /a+b", "/a%20b", None, id="C3-plus-is-no-space"),
        pytest.param("Disallow: /a?b=1", "/a?b=12", "Disallow: /a?b=1", id="C4-query"),
        pytest.param("Disallow: /a;b", "/a;b=1", "Disallow: /a;b", id="C4-parameters"),
        pytest.param("Disallow: /a%23b", "/a#b", None, id="C4-fragment"),
        pytest.param("Disallow: /a%23b", "/a%23b", "Disallow: /a%23b", id="C4-encoded-hash"),
        pytest.param("Disallow: /", "", "Disallow: /", id="C4-empty-path"),
        pytest.param("Disallow: /?x", "?x=/a", "Disallow: /?x", id="C4-empty-path-and-query"),
        pytest.param("Disallow: a", "/a", None, id="C5-no-slash"),
        pytest.param("Disallow: http://www.fict.org/a", "/a", None, id="C5-whole-url"),
        pytest.param("Disallow: %2fa", "%2fa", None, id="C5-encoded-slash"),
        pytest.param("Disallow: /*.gif$", "/a.gif", None, id="C6-wildcards"),
        pytest.param("Disallow: /*.gif$", "/*.gif$", "Disallow: /*.gif$", id="C6-literal"),
        pytest.param("Disallow: /%0A", "/%0a", "Disallow: /%0A", id="C3-line-feed"),
        pytest.param(
            "Disallow: /%0A\nDisallow: /a", "/a", "Disallow: /a", id="C3-line-feed-beside"
        ),
        pytest.param("Disallow: /%0D%0A", "/%0D", None, id="C3-line-end"),
        pytest.param("Allow: /a/b\ndisallow: /a", "/a/b", "Allow: /a/b", id="C1-exception-case"),
        pytest.param("disallow: /a/b\nDISALLOW: /a", "/a/b", "Disallow: /a/b", id="C1-field-case"),
        pytest.param("Disallow: /A", "/a", None, id="C7-case"),
        pytest.param("Disallow: /a", "/./a", None, id="C7-dot-segment"),
        pytest.param("Disallow: /a", "//a", None, id="C7-two-slashes"),
        pytest.param("Disallow: /", "/robots.txt", None, id="C8-robots-txt"),
        pytest.param("Disallow: /robots.txt", "/robots.txt", None, id="C8-disallowed"),
        pytest.param("Disallow: /", "/%72obots.txt#x", None, id="C8-escape-and-fragment"),
        pytest.param("Disallow: /", "/robots.txt?", "Disallow: /", id="C8-query"),
        pytest.param("Disallow: /", "/Robots.txt", "Disallow: /", id="C8-case"),
        pytest.param("Disallow: /", "/robots.txt/", "Disallow: /", id="C8-more"),
        pytest.param("Disallow: /é", "/%C3%A9", "Disallow: /é", id="B4-utf-8"),
        pytest.param("Disallow: /%C3%A9", "/é", "Disallow: /%C3%A9", id="B4-raw-url"),
        pytest.param("Disallow: /%E9", "/é", None, id="B4-latin-1-is-not-utf-8"),
    ],
)
def test_3_2_2_allow_and_disallow(rules: str, path: str, line: str | None) -> None:
    assert decided(f"User-agent: *\n{rules}\n", "figtree", path) == line


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/"),
        ("http://h#/f", "/"),
        ("http://h?x=/a", "/?x=/a"),
        ("http://h/?x=http://h/", "/?x=http://h/"),
        ("http://h/a;p?q#f", "/a;p?q"),
        ("http://user:pw@h:80/a", "/a"),
        ("http://[::1]:80/a", "/a"),
        ("http://h//a//b", "//a//b"),
        ("http:///a", "/a"),
        ("x-odd+1://h/a", "/a"),
        ("HTTP://H/A", "/A"),
        ("http://h/%41%2f%2F%252f", "/A\u0100\u0100%2f"),
        ("http://h/é", "/\xc3\xa9"),
        (b"http://h/\xe9", "/\xe9"),
        ("http://h/\ud800", "/\xed\xa0\x80"),
    ],
)
def test_3_2_2_path_portion_of_a_url(url: str | bytes, path: str) -> None:
    assert url_path(url) == path


def test_3_2_2_a_file_decides_for_any_origin_and_kind_of_url() -> None:
    robots = RobotsTxt(b"User-agent: *\nDisallow: /a\n")
    answers: list[tuple[str | bytes, bool]] = [
        ("http://h/a", False),
        ("http://h/b", True),
        ("http://other/a", False),
        ("http://h?x", True),
        (b"http://h/a", False),
        ("http://h/b#/a", True),
        ("http://h/b/a", True),
        ("http://h/%61", False),
        ("http://h/a\u0100", False),
        ("http://h2/b", True),
        ("http://h", True),
        ("http:/a", False),
        ("http://h/a", False),
        ("/", True),
        ("//h/a", False),
    ]
    for url, may in answers:
        assert robots.allowed(url, "x") is may, url
        assert robots.allowed(url, b"x/1.0") is may, url


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(b"User-agent:*\nDisallow:/a", "Disallow: /a", id="no-space-no-line-end"),
        pytest.param(b"User-agent: *\nDisallow: /a\x0b", None, id="B2-vertical-tab-is-no-space"),
        pytest.param(b"User-agent: *\n\xa0Disallow: /a\n", None, id="B2-nbsp-is-no-space"),
        pytest.param(b"User-agent: *\x0cDisallow: /a\n", None, id="B2-form-feed-ends-no-line"),
        pytest.param(b"User-agent: *\n\xc2\x85Disallow: /a\n", None, id="B2-nel-ends-no-line"),
        pytest.param(b"User-agent: *\nDisallow: /a\0\n", None, id="B5-nul"),
        pytest.param(b"User-agent: *\nDis(allow: /a\n", None, id="B11-no-token"),
        pytest.param(b"User-agent: *\n: /a\n", None, id="B11-no-field"),
        pytest.param(b"User-agent: *\n\xc5\xbf: x\nDisallow: /a\n", "Disallow: /a", id="B11-kept"),
        pytest.param(b"User-agent: *\nUser-agent: x\n", None, id="B15-agents-without-rules"),
        pytest.param(
            b"User-agent: *\nDisallow: /a\nUser-agent: x\n", "Disallow: /a", id="B15-not-a-record"
        ),
        pytest.param(
            b"User-agent: *\nDisal#low: /\nDisallow: /a\n", "Disallow: /a", id="B10-hash-in-field"
        ),
        pytest.param(
            b"User-agent: *\n" + b"Disallow: /x\n" * 9 + b"Disallow: /a" + b"b" * 9**5,
            None,
            id="B16-a-long-line",
        ),
    ],
)
def test_3_3_syntax(text: bytes, line: str | None) -> None:
    assert decided(text, "x", "/a") == line


HEADERS = {"unhipbot": "UnhipBot/0.1", "webcrawler": "WebCrawler/3.0", "excite": "Excite/1.0"}


@pytest.mark.parametrize(("url", "robot"), [*product(MATRIX, COLUMNS)])
def test_4_matrix(url: str, robot: str) -> None:
    robots = RobotsTxt(SECTION_4_AS_PRINTED.encode())
    may = MATRIX[url][COLUMNS[robot]] == "Yes"
    assert robots.allowed(url, robot) is may
    assert robots.allowed(url, HEADERS.get(robot, "Other/1.0 (x)")) is may
    assert robots.ruling(url, robot).allowed is may


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"User-agent: *\nDisallow: /a\n", id="LF"),
        pytest.param(b"User-agent: *\rDisallow: /a\r", id="CR"),
        pytest.param(b"User-agent: *\r\nDisallow: /a\r\n", id="CRLF"),
        pytest.param(b"User-agent: *\n\rDisallow: /a\r\r\n", id="mixed"),
        pytest.param(b"\xef\xbb\xbfUser-agent: *\nDisallow: /a\n", id="B3-byte-order-mark"),
        pytest.param(b"<html>User-agent: *\n</html>\nUser-agent: *\nDisallow: /a", id="B17-html"),
    ],
)
def test_5_2_liberal_in_accepting(text: bytes) -> None:
    assert decided(text, "x", "/a") == "Disallow: /a"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"<html><body>What are you looking for?</body></html>", id="html"),
        pytest.param(b"\0" * 99, id="NUL"),
        pytest.param(b"\xef\xbb\xbf" * 2 + b"User-agent: *\nDisallow: /", id="two-marks"),
        pytest.param(b"User-agent: *" * 40_000, id="one-line-of-512-kB"),
    ],
)
def test_5_2_what_is_no_file_restricts_nothing(text: bytes) -> None:
    assert decided(text, "x", "/a") is None


WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
TEXT = "# \u0a0d\u0d0a \u010a\r\nUser-agent: *\rDisallow: /\u00e9\nDisallow: /b\nCrawl-delay: 5\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_b3_a_wide_file_without_a_mark_is_known_by_its_zeros(encoding: str) -> None:
    body = "User-agent: *\nDisallow: /\n".encode(encoding)
    assert is_wide(body)
    assert decided(body, "x", "/a") == "Disallow: /"
    assert whole_lines(body, len(body) - 1) == "\ufeffUser-agent: *\n".encode(encoding)


@pytest.mark.parametrize(
    "start", [b"\x00a\x00b", b"a\x00b\x00", b"\x00\x00\x00a", b"\x00", b"\x00a\x00"]
)
def test_b3_some_zeros_make_no_file_wide(start: bytes) -> None:
    """Or they would open a site whose other lines are read as they are."""
    body = start + b"\nUser-agent: *\nDisallow: /\n"
    assert not is_wide(body)
    assert decided(body, "x", "/a") == "Disallow: /"


@pytest.mark.parametrize("encoding", WIDE)
def test_b3_a_wide_file_with_a_mark_is_decoded(encoding: str) -> None:
    body = f"\ufeff{TEXT}".encode(encoding)
    assert is_wide(body)
    assert lines(body) == lines(TEXT.encode())
    assert parse(body) == parse(TEXT.encode())
    ruling = RobotsTxt(body).ruling("http://a/b/c", "x")
    assert ruling.rule is not None
    assert (ruling.allowed, ruling.rule.number) == (False, 4)
    assert not RobotsTxt(body).allowed("http://a/%C3%A9", "x")
    assert RobotsTxt(body).allowed("http://a/c", "x")
    assert [line.value for line in RobotsTxt(body).lines("x", b"crawl-delay")] == [b"5"]
    assert has_record(body)


@pytest.mark.parametrize("encoding", WIDE)
def test_b3_a_wide_file_is_cut_where_a_line_ends(encoding: str) -> None:
    body = f"\ufeff{TEXT}".encode(encoding)
    seen = set()
    for size in range(len(body) + 1):
        whole = whole_lines(body, size)
        assert len(whole) <= max(size, 4)
        seen.add(narrow(whole) if is_wide(whole) else b"")
    ends = [end for end in range(len(TEXT) + 1) if TEXT[:end].endswith(("\n", "\r"))]
    assert seen == {b"", *(TEXT[:end].encode() for end in ends)}


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize(
    "tail", [b"\n", b"\0", b"\xd8", b"\xd8\x00\xd8\x00", b"\x00\xdc\x00\xdc", b"\xff" * 7]
)
def test_b3_what_cannot_be_decoded_does_no_harm(encoding: str, tail: bytes) -> None:
    body = f"\ufeff{TEXT}".encode(encoding) + tail
    assert decided(body, "x", "/b") == "Disallow: /b"
    assert narrow(body).decode()
    assert whole_lines(body, len(body) - 1)


def test_b3_a_mark_before_ascii_hides_no_record() -> None:
    for mark in (b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\n"):
        body = mark + b"\nUser-agent: *\nDisallow: /b\n"
        assert not is_wide(body)
        assert decided(body, "x", "/b") == "Disallow: /b"


def test_lines_are_without_their_ends() -> None:
    assert lines(b"\xef\xbb\xbfa\rb\r\n\nc\n\rd") == [b"a", b"b", b"", b"c", b"", b"d"]


EXAMPLES_1994 = {
    "first": """\
# robots.txt for http://www.example.com/

User-agent: *
Disallow: /cyberworld/map/ # This is an infinite virtual URL space
Disallow: /tmp/ # these will soon disappear
Disallow: /foo.html
""",
    "second": """\
# robots.txt for http://www.example.com/

User-agent: *
Disallow: /cyberworld/map/ # This is an infinite virtual URL space

# Cybermapper knows where to go.
User-agent: cybermapper
Disallow:
""",
    "third": """\
# go away
User-agent: *
Disallow: /
""",
    "help": "User-agent: *\nDisallow: /help\n",
    "help/": "User-agent: *\nDisallow: /help/\n",
    # The Russian retelling has no blank line before cybermapper, and says User-Agent.
    "retold first": """\
# robots.txt for http://www.site.com
User-Agent: *
Disallow: /cyberworld/map/ # this is an infinite virtual URL space
Disallow: /tmp/ # these will soon disappear
""",
    "retold second": """\
# robots.txt for http://www.site.com
User-Agent: *
Disallow: /cyberworld/map/ # this is an infinite virtual URL space
# Cybermapper knows where to go
User-Agent: cybermapper
Disallow:
""",
    "retold third": "# robots.txt for http://www.site.com\nUser-Agent: *\nDisallow: /\n",
    # Of the page "Spiders and Robots Exclusion".
    "spiders sample": """\
# Tells Scanning Robots Where They Are And Are Not Welcome
# User-agent: can also specify by name; "*" is for everyone
# Disallow: if this matches first part of requested path,
# forget it
User-agent: * # applies to all robots
Disallow: / # disallow indexing of all pages
""",
    "spiders tmp": """\
User-agent: webcrawler
User-agent: infoseek
Allow: /tmp/ok.html
Disallow: /tmp
""",
    "spiders cgi": "User-agent: *\nDisallow: /cgi-bin/\nDisallow: /Ads/banner.cgi\n",
}


@pytest.mark.parametrize(
    ("text", "robot", "path", "line"),
    [
        ("first", "x", "/cyberworld/map/1", "Disallow: /cyberworld/map/"),
        ("first", "x", "/tmp/", "Disallow: /tmp/"),
        ("first", "x", "/foo.html", "Disallow: /foo.html"),
        ("first", "x", "/cyberworld/", None),
        ("second", "x", "/cyberworld/map/", "Disallow: /cyberworld/map/"),
        ("second", "cybermapper", "/cyberworld/map/", None),
        ("third", "x", "/", "Disallow: /"),
        ("help", "x", "/help.html", "Disallow: /help"),
        ("help", "x", "/help/index.html", "Disallow: /help"),
        ("help/", "x", "/help.html", None),
        ("help/", "x", "/help/index.html", "Disallow: /help/"),
        ("retold first", "x", "/cyberworld/map/", "Disallow: /cyberworld/map/"),
        ("retold first", "x", "/tmp/a", "Disallow: /tmp/"),
        ("retold first", "x", "/foo.html", None),
        ("retold second", "x", "/cyberworld/map/", "Disallow: /cyberworld/map/"),
        ("retold second", "cybermapper", "/cyberworld/map/", None),
        ("retold third", "x", "/a", "Disallow: /"),
        ("spiders sample", "x", "/a", "Disallow: /"),
        ("spiders tmp", "infoseek", "/tmp/ok.html", "Allow: /tmp/ok.html"),
        ("spiders tmp", "webcrawler", "/tmp/a", "Disallow: /tmp"),
        ("spiders tmp", "x", "/tmp/a", None),
        ("spiders cgi", "x", "/cgi-bin/a", "Disallow: /cgi-bin/"),
        ("spiders cgi", "x", "/Ads/banner.cgi?1", "Disallow: /Ads/banner.cgi"),
        ("spiders cgi", "x", "/Ads/", None),
    ],
)
def test_1994_examples(text: str, robot: str, path: str, line: str | None) -> None:
    assert decided(EXAMPLES_1994[text], robot, path) == line


COLLECTION = {
    name: text
    for name, _, text in (
        part.partition("\n")
        for part in (Path(__file__).parents[1] / "data" / "collection.txt")
        .read_text(encoding="utf-8")
        .split("== ")[1:]
    )
}


@pytest.mark.parametrize(
    ("site", "robot", "path", "line"),
    [
        ("Problogger.net", "rosie", "/", None),
        ("Marketing Pilgrim", "rosie", "/", None),
        ("Search Engine Journal", "rosie", "/", None),
        ("Matt Cutts", "rosie", "/files/", None),  # A5: only the first record for all
        ("Pronet Advertising", "rosie", "/mt-tb.cgi", "Disallow: /mt"),
        ("Pronet Advertising", "rosie", "/a.cgi", None),
        ("TechCrunch", "rosie", "/2007/feed/", None),
        ("TechCrunch", "rosie", "/*/feed/", "Disallow: /*/feed/"),
        ("Online Marketing Blog", "googlebot", "/a/feed/", None),
        ("Online Marketing Blog", "googlebot", "/stats/", None),
        ("Online Marketing Blog", "rosie", "/stats/", "Disallow: /stats/"),
        ("Shoemoney", "googlebot", "/gallery2/a", "Disallow: /gallery2"),
        ("Shoemoney", "googlebot", "/feedback", "Disallow: /feed"),
        ("Shoemoney", "rosie", "/feed/", None),
        ("Scoreboard Media", "rosie", "/cgi-bin/a", "Disallow: /cgi-bin/"),
        ("Scoreboard Media", "googlebot", "/cgi-bin/a", None),
        ("Scoreboard Media", "googlebot", "/wp-admin", None),
        ("Scoreboard Media", "googlebot", "/wp-*", "Disallow: /wp-*"),
        ("SEOMoz.org", "rosie", "/blog?page=2", "Disallow: /blog?page"),
        ("SEOMoz.org", "rosie", "/blog", None),
        ("SEOMoz.org", "rosie", "/blogdetail.php?ID=5370", "Disallow: /blogdetail.php?ID=537"),
        ("Wolf-Howl", "rosie", "/terms-of-service/", "Disallow: /terms-of-service/"),
        ("Wolf-Howl", "rosie", "/a?b", None),
        ("Wolf-Howl", "rosie", "/iframes/a", "Disallow: /iframes/"),
        ("John Chow", "googlebot", "/feed/", None),  # A1: in "Googlebot-Image"
        ("John Chow", "duggmirror", "/", "Disallow: /"),
        ("John Chow", "rosie", "/feed/", "Disallow: /feed/"),
        ("John Chow", "mediapartners-google", "/feed/", "Allow: /"),
        ("Smashing Magazine", "slurp", "/tag/", None),
        ("Smashing Magazine", "psbot", "/", "Disallow: /"),
        ("Smashing Magazine", "mediapartners-google", "/tag/", None),
        ("Smashing Magazine", "rosie", "/tag/a", "Disallow: /tag/"),
        ("Gizmodo", "googlebot", "/index.xml", None),
        ("Gizmodo", "googlebot", "/index.xml$", "Disallow: /index.xml$"),
        ("Gizmodo", "rosie", "/index.xml$", None),
        ("Lifehacker", "googlebot", "/sitemap.xml$", "Allow: /sitemap.xml$"),
        ("Lifehacker", "rosie", "/excerpts.xml$", None),
        ("Wall Street Journal", "rosie", "/article_print/SB1", "Disallow: /article_print/"),
        ("Wall Street Journal", "rosie", "/article/", None),
        ("ZDNet", "rosie", "/i/a.gif", None),
        ("ZDNet", "rosie", "/mac-admin", "Disallow: /mac-ad"),
        ("ZDNet", "rosie", "/1317-1.html", "Disallow: /1317-"),
        ("NY Times", "rosie", "/pages/college/a", "Disallow: /pages/college/"),
        ("NY Times", "rosie", "/pages/a", "Allow: /pages/"),
        ("NY Times", "mediapartners-google", "/college/", None),
        ("YouTube", "rosie", "/watch_ajax?v=1", "Disallow: /watch_ajax"),
        ("YouTube", "rosie", "/watch?v=1", None),
        ("Google", "rosie", "/searchhistory/", "Allow: /searchhistory/"),
        ("Google", "rosie", "/search?q=a", "Disallow: /search"),
        ("Google", "rosie", "/news?output=xhtml&a", "Disallow: /news?output=xhtml&"),
        ("Google", "rosie", "/news?output=xhtml", "Allow: /news?output=xhtml"),
        ("Google", "rosie", "/news", "Disallow: /news"),
        ("Google", "rosie", "/?q", "Disallow: /?"),
        ("Google", "rosie", "/", None),
        ("Google", "rosie", "/pda/search?q", "Disallow: /pda/search?"),
    ],
)
def test_collection(site: str, robot: str, path: str, line: str | None) -> None:
    assert decided(COLLECTION[site], robot, path) == line


def test_the_collection_is_here() -> None:
    assert len(COLLECTION) == 20


@pytest.mark.parametrize(
    ("max_bytes", "kept"),
    [
        (9, b"ab\rcd\r\ne"),
        (8, b"ab\rcd\r\ne"),
        (7, b"ab\rcd\r\n"),
        (6, b"ab\rcd\r"),
        (5, b"ab\r"),
        (3, b"ab\r"),
        (2, b""),
        (0, b""),
    ],
)
def test_a_file_is_cut_where_a_line_ends(max_bytes: int, kept: bytes) -> None:
    assert whole_lines(b"ab\rcd\r\ne", max_bytes) == kept  # B16
    assert whole_lines(b"ab\ncd\n\ne", max_bytes) == kept.replace(b"\r", b"\n")


def test_the_lines_of_a_file() -> None:
    assert lines(b"\xef\xbb\xbfa\rb\r\n\nc") == [b"a", b"b", b"", b"c"]


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


def test_only_space_is_no_part_of_a_path() -> None:
    robots = RobotsTxt(b"User-agent: *\nDisallow: /aX \t# X\n")
    assert robots.ruling("http://h/ab", "x").rule is None
    assert robots.ruling("http://h/aXb", "x").rule == Line(2, b"disallow", b"/aX")


def test_a_fragment_is_compared_with_nothing() -> None:
    robots = RobotsTxt(b"User-agent: *\nDisallow: /a%23b\n")
    for url, allowed in [("/", True), ("/a#b", True), ("/a%23b", False), ("/#a#b", True)]:
        assert robots.allowed(f"http://h{url}", "x") is allowed


def test_a_name_is_looked_for_in_each_agent_line_by_itself() -> None:
    body = b"User-agent: ax\nUser-agent: xb\nDisallow: /\n"
    robots = RobotsTxt(body)
    for robot in ("axx", "xxb", "xx", "axxb"):
        assert robots.allowed("http://h/", robot)
        assert robots.record(robot) is None


class TestAnyFile:
    @pytest.mark.slow
    @given(
        body=some.bodies(), urls=st.lists(some.urls(), min_size=1, max_size=6), robot=some.ROBOTS
    )
    @settings(max_examples=4 * EXAMPLES)
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

    @pytest.mark.slow
    @given(chance=st.randoms(use_true_random=False), rules=st.integers(40, 200))
    @settings(max_examples=EXAMPLES // 2)
    def test_of_many_rules_too(self, chance: Random, rules: int) -> None:
        def path() -> str:
            return "/" + "".join(chance.choices(some.PIECES, k=chance.randint(0, 4)))

        fields = ["Disallow", "Disallow", chance.choice(["Allow", "Disallow"])]
        lines = ["User-agent: *", *(f"{chance.choice(fields)}: {path()}" for _ in range(rules))]
        body = "\n".join(lines).encode()
        robots = RobotsTxt(body)
        for url in [f"http://h{path()}" for _ in range(20)]:
            assert robots.allowed(url, "x") is oracle.decide(body, url, "x").allowed

    @given(rules=st.lists(some.octet_rules(), max_size=8), path=some.octet_paths)
    def test_of_any_octets_in_a_path(self, rules: list[str], path: str) -> None:
        body = "\n".join(["User-agent: *", *rules]).encode("latin-1")
        robots, url = RobotsTxt(body), b"http://h/" + path.encode("latin-1")
        ruling = robots.ruling(url, "x")
        line = ruling.rule.number if ruling.rule else None
        assert (ruling.allowed, line) == oracle.decide(body, url, "x")
        assert robots.allowed(url, "x") is ruling.allowed

    @given(body=st.binary(), url=st.one_of(st.text(), st.binary()), robot=st.text())
    def test_never_raises(self, body: bytes, url: str | bytes, robot: str) -> None:
        for text in (body, b"User-agent: *\n" + body, b"User-agent: *\nDisallow: /" + body):
            robots = RobotsTxt(text)
            assert robots.allowed(url, robot) is robots.ruling(url, robot).allowed
            assert has_record(text) is bool(parse(text))

    @given(body=some.bodies(), url=some.urls(), robot=some.ROBOTS)
    def test_has_one_record_however_it_is_found(self, body: bytes, url: str, robot: str) -> None:
        records = parse(body)
        assert [
            ([agent.value for agent in record.agents], [tuple(rule) for rule in record.rules])
            for record in records
        ] == oracle.records(body)
        assert has_record(body) is bool(records)
        assert RobotsTxt(body).record(robot) in [None, *records]

    @given(body=some.bodies(), url=some.urls(), robot=some.ROBOTS, more=some.rule_lines())
    def test_a_rule_behind_the_one_that_decided_changes_nothing(
        self, body: bytes, url: str, robot: str, more: str
    ) -> None:
        ruling = RobotsTxt(body).ruling(url, robot)
        if ruling.rule is None:
            return
        text = lines(body)
        for at in range(ruling.rule.number, len(text) + 1):
            if any(b"user-agent" in line.lower() for line in text[ruling.rule.number : at]):
                break
            longer = b"\n".join([*text[:at], more.encode(), *text[at:]])
            assert RobotsTxt(longer).allowed(url, robot) is ruling.allowed
            assert RobotsTxt(longer).ruling(url, robot).rule == ruling.rule

    @given(body=some.bodies(), url=some.urls(), robot=some.ROBOTS)
    def test_means_the_same_with_any_line_end(self, body: bytes, url: str, robot: str) -> None:
        text = lines(body)
        rulings = [RobotsTxt(end.join(text)).ruling(url, robot) for end in (b"\n", b"\r", b"\r\n")]
        assert rulings[0] == rulings[1] == rulings[2]

    @given(body=some.bodies(), path=some.rooted_paths, robot=some.ROBOTS, which=st.data())
    def test_means_the_same_with_unreserved_characters_encoded(
        self, body: bytes, path: str, robot: str, which: st.DataObject
    ) -> None:
        # Not in an escape, and not what an escape that is none would become.
        encoded = "".join(
            f"%{ord(c):02x}"
            if ((c.isascii() and c.isalnum()) or c in "-._~")
            and "%" not in path[max(0, at - 2) : at]
            and which.draw(st.booleans())
            else c
            for at, c in enumerate(path)
        )
        robots = RobotsTxt(body)
        assert robots.ruling(f"http://h{encoded}", robot) == robots.ruling(f"http://h{path}", robot)
        assert robots.allowed(f"http://h{encoded}", robot) is robots.allowed(
            f"http://h{path}", robot
        )


@given(path=some.paths)
def test_an_escape_is_decoded_once(path: str) -> None:
    octets = path.encode()
    expected = ["\u0100" if octet < 0 else chr(octet) for octet in oracle.octets(octets)]
    assert list(unescape(octets.decode("latin-1"))) == expected


def test_instructions_are_the_lines_that_can_match() -> None:
    body = b"User-agent: *\nDisallow:\nAllow: /%41\nCrawl-delay: 1\nDisallow: b\n"
    (record,) = parse(body)
    assert [(path, line.number) for path, line in instructions(record)] == [("/A", 3), ("b", 5)]


@pytest.mark.parametrize("nested", [b"", b"Allow: /7/open\n"])
@pytest.mark.parametrize("paths", [3, 64, 65, 200])
def test_many_paths_are_decided_on_as_few_are(paths: int, nested: bytes) -> None:
    rules = b"".join(b"Disallow: /%d/\n" % n for n in range(5, 5 + paths))
    robots = RobotsTxt(b"User-agent: *\n" + nested + rules)
    for n in (0, 4, 5, 7, 4 + paths, 5 + paths, 1000):
        assert robots.allowed(f"http://h/{n}/x", "figtree") is (n not in range(5, 5 + paths))
    assert robots.allowed("http://h/7/open", "figtree") is bool(nested)


def test_many_robots_cost_no_more_than_a_few() -> None:
    robots = RobotsTxt(b"User-agent: *\nDisallow: /a\n")
    for n in range(100):
        assert not robots.allowed("http://h/a", f"robot{n}")
        assert not robots.ruling("http://h/a", f"robot{n}").allowed
    assert len(robots._obeyed) <= 8


def test_a_ruling_names_no_more_agents_than_tell_records_apart() -> None:
    body = b"User-agent: %d\n" * 1000 % tuple(range(1000)) + b"User-agent: *\nDisallow: /a\n"
    record = RobotsTxt(body).ruling("http://h/a", "x").record
    assert record is not None
    assert [agent.number for agent in record.agents] == list(range(1, 101))


@pytest.mark.parametrize("kind", HOSTILE)
class TestHostileFile:
    """6: "robots are encouraged to place limits on the resources spent"."""

    def test_takes_a_memory_that_is_bounded(self, kind: str) -> None:
        body = HOSTILE[kind](512_000)
        tracemalloc.start()
        try:
            robots = RobotsTxt(body)
            robots.allowed("http://h/aaaaaaaa/b", "figtree")
            kept, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 40 * len(body)
        assert kept < 15 * len(body)

    @pytest.mark.slow
    def test_is_decided_as_the_oracle_does(self, kind: str) -> None:
        body = HOSTILE[kind](4_000)
        robots = RobotsTxt(body)
        for path in ("", "/", "/x", "/a", "/aaaa", "/" + "a" * 60, "/1f", "/" + "A" * 999, "/%41/"):
            url = f"http://h{path}"
            ruling = robots.ruling(url, "figtree")
            line = ruling.rule.number if ruling.rule else None
            assert (ruling.allowed, line) == oracle.decide(body, url, "figtree")
            assert robots.allowed(url, "figtree") is ruling.allowed

    def test_is_not_read_again_for_each_explanation(self, kind: str) -> None:
        """However many such files take turns: each is made a text, but not a list of records."""
        body = HOSTILE[kind](128_000)
        url = "http://h/" + "a" * 2_000
        files = [RobotsTxt(body + b"\n# %d" % n) for n in range(6)]
        rulings = [robots.ruling(url, "figtree") for robots in files]
        tracemalloc.start()
        try:
            assert files[0].ruling(url, "figtree") == rulings[0]
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 5 * len(body)

    def test_is_explained_in_a_memory_that_is_bounded(self, kind: str) -> None:
        body = HOSTILE[kind](128_000)
        robots = RobotsTxt(body)
        robots.allowed("http://h/aaaaaaaa/b", "figtree")
        robots.ruling("http://h/aaaaaaaa/b", "another")
        tracemalloc.start()
        try:
            robots.ruling("http://h/aaaaaaaa/b", "figtree")
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert kept < 2 * len(body)
