"""3.2, 3.3: the findings of the syntax checker with places, and files without findings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.conformance import CASES
from harness.draft import SECTION_4, SECTION_4_AS_PRINTED
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.checker.checks import BOTH, CHECKS
from scrapy_koster.checker.syntax import MAX_BYTES, check
from scrapy_koster.protocol.reading import Rfc9309, RobotsTxt

ROOT = Path(__file__).parents[2]


def found(body: bytes) -> list[tuple[str, int, int]]:
    return [(f.check.code, f.line, f.column) for f in check(body, None)]


def codes(body: bytes) -> list[str]:
    return [code for code, _, _ in found(body)]


def in_record(*rules: bytes) -> bytes:
    return b"\n".join((b"User-agent: *", *rules, b""))


AGENT = b"User-agent: "
FREE = b"\nDisallow:\n\n"


@pytest.mark.parametrize(
    ("expected", "body"),
    [
        ("K002 1:1, K012 1:1, K019 1:1", b"<p>User-agent: *<br>Disallow: /a\n"),
        (
            "K002 1:1, K011 1:1, K013 2:1",
            b"<br />\n<b>Notice</b>: x\nUser-agent: *\nDisallow: /a\n",
        ),
        (
            "K003 1:1, K040 2:11",
            b"\xff\xfe" + in_record(b"Disallow: a").decode().encode("utf-16-le"),
        ),
        ("K003 1:1", "\ufeffno line".encode("utf-16-be")),
        ("K011 1:1, K018 1:1", b"\xff\xfe\n" + in_record(b"Disallow: /x")),
        ("K005 3:1", in_record(b"Disallow: /x", b"#" * MAX_BYTES, b"Disallow: b")),
        ("K006 3:2084", in_record(b"Disallow: /" + b"x" * 2072, b"Disallow: /" + b"y" * 2073)),
        ("K010 3:2", in_record(b"Disallow:", b" Disallow /x")),
        ("K010 3:1", in_record(b"Disallow:", b"Disallow /x:y")),
        ("K012 3:1", in_record(b"Disallow: /a", b"Disallowed: /")),
        ("K013 3:1, K013 4:1", in_record(b"Disallow:", b": /", b"Two words: b")),
        ("K015 2:13", in_record(b"Disallow: # \xe2\x80\xa8")),
        ("K017 2:12", in_record("Disallow: /ü # ü".encode(), b"Disallow: /a # \xfc")),
        ("K026 5:1", AGENT + b"a\n" + AGENT + b"FigTree" + FREE + AGENT + b"fig" + FREE),
        ("", AGENT + b"fig" + FREE + AGENT + b"figtree" + FREE),
        (
            "K031 2:1, K031 6:1, K031 8:1, K047 9:1",
            AGENT + b"a\n\n \n" + AGENT + b"b\n#\n\t\nDisallow: /\n\nAllow: /a\n",
        ),
        (
            "K032 1:1, K032 6:1",
            b"Sitemap: http://h/\n\n" + in_record(b"Disallow: /x", b"", b"Host: a", b"Host: b"),
        ),
        ("K040 2:11, K043 2:11", in_record(b"Disallow: $")),
        ("", in_record(b"Disallow: /a #b", b"Disallow: /b\t#", b"Disallow:#c")),
        ("K046 2:11", in_record(b"Disallow: /%72obots.txt", b"Disallow: /robots.tx")),
        ("K047 3:1", in_record(b"Allow: /a", b"Disallow: /a%62c", b"Disallow: /b")),
        ("K048 3:1, K048 4:1", in_record(b"Disallow: /a", b"Disallow: /a", b"Disallow: /ab")),
        ("K049 3:1", in_record(b"Disallow: /b", b"Allow: /", b"Allow: /a", b"Disallow: /a")),
        ("", in_record(b"Allow: /", b"Disallow:")),
    ],
)
def test_findings_and_their_places(expected: str, body: bytes) -> None:
    """A file for each code alone is in test_readings.py."""
    assert ", ".join(f"{code} {line}:{column}" for code, line, column in found(body)) == expected


def test_a_misspelt_extension_is_named_with_the_field_that_may_be_meant() -> None:
    [finding] = check(in_record(b"Disallow: /a", b"Sitmap: 1"))
    assert finding.message == "an unknown field: 'sitmap', perhaps 'sitemap'"


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_right_file_has_no_finding(line_end: str) -> None:
    for text in (
        *(case.body.decode() for case in CASES if case.id == "A7-001"),  # 3.2
        SECTION_4,
        SECTION_4_AS_PRINTED,
        "uSER-AGENT:a\nDISALLOW:/ #\n#\nCrawl-delay: 0\n",
        "\n\nUser-agent: a\nDisallow:\n#\n\n#\n\n#\nUser-agent: b\nDisallow: /?a=b;c",
        "User-agent: *\nNoindex: /*\nDisallow: /a%2Fb//../C",
    ):
        assert check(text.replace("\n", line_end).encode()) == []


@pytest.mark.parametrize(
    ("content_type", "said"),
    [
        ("Text/Plain ; charset=utf-8", None),
        ("", "the answer has no Content-Type"),
        ("\x1b[2J\ud800" + "x" * 10_000, "the Content-Type is '\\x1b[2J\\ud800xxx"),
    ],
)
def test_the_content_type(content_type: str, said: str | None) -> None:
    findings = check(b"User-agent: *\nDisallow:\n", content_type=content_type)
    assert [f.check.code for f in findings] == ["K007"] * (said is not None)
    assert said is None or findings[0].message.startswith(said)
    assert all(len(f.message) < 100 for f in findings)


TELLING = "admin/ administrator/ admin.php backup.zip secret?x internal;x .git/ .env hidden*"
NOT_TELLING = "- wp-admin/ badmin admin%20x secretary backups2024 x?y=admin environment .github/"


def test_a_path_that_tells() -> None:
    for folder in (b"/", b"/a/b/", b"/*/"):
        for path in TELLING.encode().split():
            told = found(in_record(b"Disallow: " + folder + path))
            assert ("K052", 2, 10 + len(folder)) in told
            assert "K052" not in codes(in_record(b"Allow: " + folder + path))
    for path in NOT_TELLING.encode().split():
        assert "K052" not in codes(in_record(b"Disallow: /" + path))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"Content-Usage: train-ai=n", []),
        (b"Content-Usage: /a train-ai=n, search=y;x, new=maybe", []),
        (b"Content-Usage: /a train-ai, search=1", [("K071", 2, 16)] * 2),
        (b"Content-Usage: train-ai=y, x=" + b"y" * 131_072, [("K070", 2, 16)]),
        (b"Content-Usage: train-ai=n search=n", [("K070", 2, 16)]),
        (b"Content-Signal: search=yes, ai-train=no, use=reference", []),
        (b"Content-Signal: ai-train=never", [("K071", 2, 17)]),
    ],
)
def test_preferences(line: bytes, told: list[tuple[str, int, int]]) -> None:
    assert [place for place in found(in_record(line)) if place[0] > "K069"] == told

    rest = b"User-agent: *\nDisallow: /a\n"
    assert codes(b"Content-Usage: train-ai=n\n" + rest) == ["K073"]
    assert codes(b"Content-Signal: ai-train=no\n" + rest) == []


def test_a_misspelt_field_is_named_with_the_field_that_is_meant() -> None:
    body = in_record(b"Disallow:", b"\xef\xbb\xbfDisallow: /", b"Useragent: a")
    messages = [f.message for f in check(body) if f.check.code == "K012"]
    assert [message.rpartition(" ")[2] for message in messages] == ["'Disallow'", "'User-agent'"]


@pytest.mark.parametrize("field", ["Sitemap", "Host", "Content-Signals", "Agent", "X" * 3000])
def test_extensions_are_not_misspelt(field: str) -> None:
    found = set(codes(in_record(b"Disallow:", field.encode() + b": 1")))
    assert found <= {"K006", "K060", "K061"}


def test_findings_of_one_code_are_bounded_and_counted() -> None:
    body = in_record(*(b"Disallow: /%d*" % n for n in range(30)), b"Allow /")
    listed = check(body, 3)
    assert [(f.check.code, f.line, f.more) for f in listed] == [
        ("K042", 2, 0),
        ("K042", 3, 0),
        ("K042", 4, 27),
        ("K010", 32, 0),
    ]
    assert len(check(body)) == 21
    assert len(check(body, None)) == 31


def test_text_of_the_file_is_harmless_and_cut() -> None:
    body = in_record(b"Disallow: \x1b[2J\0*" + b"x" * 100_000, "Disallow: ü*".encode())
    messages = [finding.message for finding in check(body)]
    assert "no slash before the path 'ü*'" in messages
    assert any("\\x1b[2J\\x00*xxx" in message for message in messages)
    assert all(message.isprintable() and len(message) < 200 for message in messages)


FRAGMENTS = st.sampled_from(
    [b"User-agent", b"Disallow", b"Allow", b"Sitemap", b": ", b":", b"*", b"/", b"a", b"b",
     b"#", b" ", b"\n", b"\n", b"\r", b"\n\n", b"$", b"%61", b"%", b"\xff", b"\0", b"\x0b"]
)  # fmt: skip
FILES = st.one_of(st.binary(), st.lists(FRAGMENTS, max_size=60).map(b"".join))


@given(FILES)
def test_findings_are_sorted_harmless_and_inside_the_file(body: bytes) -> None:
    findings = check(body, None)
    assert findings == sorted(findings, key=lambda f: (f.line, f.column, f.check.code))
    lines = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for finding in findings:
        assert finding.message.isprintable()
        assert 1 <= finding.line <= len(lines)
        assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1
    assert [f.check for f in check(body)] == [f.check for f in findings][:20] or len(findings) > 20


def table(page: str, columns: int) -> Iterator[list[str]]:
    """The rows of the tables of a page that have so many columns."""
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == columns:
            yield cells


def test_the_documented_codes_are_those_of_the_code() -> None:
    rows = [row for row in table("check-codes.md", 3) if row[0].startswith("K")]
    assert rows == [
        [
            c.code,
            c.severity.value if c.readings == BOTH else f"{c.severity.value}, draft",
            c.title,
        ]
        for c in CHECKS.values()
    ]


# docs/semantics.md

POINT = re.compile(r"\b[ABC]\d{1,2}\b")


DECISIONS = {row[0]: row for row in table("semantics.md", 5) if POINT.fullmatch(row[0])}
EXAMPLES = [row for row in table("semantics.md", 5) if row[0].startswith("`")]


def test_every_point_of_the_cases_is_a_decision() -> None:
    assert {case.point for case in CASES if POINT.fullmatch(case.point)} == set(DECISIONS)


def test_every_decision_names_its_codes() -> None:
    for point, row in DECISIONS.items():
        codes = [c.code for c in CHECKS.values() if point in c.points.split(", ")]
        assert ", ".join(codes) == row[4], point


@pytest.mark.parametrize("row", EXAMPLES, ids=lambda row: row[0])
def test_the_examples_of_where_the_readings_part(row: list[str]) -> None:
    body = "\n".join(re.findall("`(.*?)`", row[0])).encode()
    url = "http://www.fict.org" + row[1].strip("`")
    said = {True: "allowed", False: "forbidden"}
    assert said[RobotsTxt(body).allowed(url, "fig")] == row[2]
    assert said[Rfc9309(body).allowed(url, "fig")] == row[3]
    draft, rfc9309 = RobotsTxt(body).ruling(url, "fig"), Rfc9309(body).ruling(url, "fig")
    assert draft.rule != rfc9309.rule
    assert not row[4] or row[4] in codes(body)


@pytest.mark.parametrize(
    ("code", "file", "decides"),
    [
        ("K023", "User-agent: a\nDisallow: /x\n\nUser-agent: A\nDisallow: /y", "5 for '/y'"),
        ("K024", "User-agent: *\nDisallow: /x\n\nUser-agent: *\nDisallow: /y", "5 for '/y'"),
        ("K026", "User-agent: ab\nDisallow: /x\n\nUser-agent: c\nUser-agent: b\nAllow: /y",
         "6 for '/y'"),
        ("K033", "User-agent: a\nX: y\n\nUser-agent: b\nDisallow: /x", "5 for '/x'"),
        ("K042", "User-agent: *\nDisallow: /*.gif$", "2 for '/x.gif'"),
        ("K042", "User-agent: *\nDisallow: /*b\nAllow: /xbc\nAllow: /x*b", "4 for '/xxb'"),
        ("K042", "Disallow: /*.gif", None),
        ("K043", "User-agent: *\nDisallow: /a$", "2 for '/a'"),
        ("K047", "User-agent: *\nAllow: /a\nDisallow: /a/b", "3 for '/a/b'"),
        ("K049", "User-agent: *\nAllow: /\nDisallow: /a", "3 for '/a'"),
    ],
)  # fmt: skip
def test_a_hazard_names_the_line_that_rfc_9309_goes_by(
    code: str, file: str, decides: str | None
) -> None:
    found = [finding for finding in check(file.encode()) if finding.check.code == code]
    said = "; RFC 9309 uses line "
    message = found[-1].message
    assert (said in message) is (decides is not None)
    assert decides is None or message.endswith(said + decides)
