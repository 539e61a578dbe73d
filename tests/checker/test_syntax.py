"""3.2, 3.3: the findings of the syntax checker with places, and files without findings."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.conformance import CASES
from harness.draft import SECTION_4, SECTION_4_AS_PRINTED
from harness.real_files import File
from harness.sizes import so_many
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.checker.checks import BOTH, CHECKS
from scrapy_koster.checker.syntax import MAX_BYTES, check
from scrapy_koster.protocol.reading import Rfc9309, RobotsTxt
from scrapy_koster.protocol.records import parse

ROOT = Path(__file__).parents[2]

SECTION_3_2 = """\
User-agent: webcrawler
User-agent: infoseek
Allow:    /tmp/ok.html
Disallow: /tmp
Disallow: /user/foo
"""
EACH_BUT_THE_EXCLUSIVE = b"""\xef\xbb\xbf<!-- robots -->
Sitemap: http://www.fict.org/sitemap.xml
Content-Usage: search=n
Disallow: /early

User-agent: figtree
Content-Usage: Train-AI=n
Content-Usage: train-ai=yes
Content-Usage: ai-ok/ train-ai=n
Disallow : /space-before-the-colon
Dissallow: /misspelt
Disallow /no-colon
<pre>Disallow: /markup
Disallow: /a\x0b
Disallow: /b\x00
Disallow: /caf\xc3\xa9
Disallow: /d\xe9j\xe0
Disallow: no-slash
Disallow: http://www.fict.org/url
Disallow: /wild*
Disallow: /end$
Disallow: /100%%
Disallow: /fragment#here
Disallow: /robots.txt
Allow: /wide
Disallow: /wide/deep
Allow: /wide/same
Allow:
Disallow: /one two
Disallow: /%s

Disallow: /behind-a-blank-line

User-agent:
Disallow: /

User-agent: *bot
Disallow: /

User-agent: rover/1.0
Disallow: /

User-agent: FigTree
Disallow: /

User-agent: fig
Disallow: /

User-agent: *
Disallow: /star

User-agent: *
Disallow: /again

User-agent: twice
User-agent: twice
Disallow: /
User-agent: glued
Disallow: /

User-agent: free
Crawl-delay: 1

User-agent: opened
Allow: /
Disallow: /

User-agent: telling
Disallow: /admin/
Madeup: field
Sitemap: /sitemap.xml
Crawl-delay: soon

User-agent: last
""" % (b"x" * 2083)
EACH_BUT_THE_EXCLUSIVE += b"#" * 99 + b"\n"
EACH_BUT_THE_EXCLUSIVE += (b"#" * 99 + b"\n") * 5120


def found(body: bytes) -> list[tuple[str, int, int]]:
    return [(f.check.code, f.line, f.column) for f in check(body, None)]


def codes(body: bytes) -> list[str]:
    return [code for code, _, _ in found(body)]


def in_record(*rules: bytes) -> bytes:
    return b"\n".join((b"User-agent: *", *rules, b""))


AGENT = b"User-agent: "
FREE = b"\nDisallow:\n\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b"", [("K001", 1, 1)], id="K001 empty"),
        pytest.param(b"<html>a: b\n", [("K002", 1, 1)], id="K002 tag"),
        pytest.param(
            b"<p>User-agent: *<br>Disallow: /a\n",
            [("K002", 1, 1), ("K012", 1, 1), ("K019", 1, 1)],
            id="K019 a page",
        ),
        pytest.param(
            b"<br />\n<b>Notice</b>: x\nUser-agent: *\nDisallow: /a\n",
            [("K002", 1, 1), ("K011", 1, 1), ("K013", 2, 1)],
            id="K002 above a record",
        ),
        pytest.param(
            b"\xff\xfe" + in_record(b"Disallow: a").decode().encode("utf-16-le"),
            [("K003", 1, 1), ("K040", 2, 11)],
            id="K003 with a mark, and what is in it",
        ),
        pytest.param("\ufeffno line".encode("utf-16-be"), [("K003", 1, 1)], id="K003 mark"),
        pytest.param(
            b"\xff\xfe\n" + in_record(b"Disallow: /x"),
            [("K011", 1, 1), ("K018", 1, 1)],
            id="K003 not, records can be read",
        ),
        pytest.param(
            b"\xef\xbb\xbf" + in_record(b"Disallow: a"),
            [("K004", 1, 1), ("K040", 2, 11)],
            id="K004",
        ),
        pytest.param(
            in_record(b"Disallow: /x", b"#" * MAX_BYTES, b"Disallow: b"),
            [("K005", 3, 1)],
            id="K005 cut at a line end",
        ),
        pytest.param(
            in_record(b"Disallow: /" + b"x" * 2072, b"Disallow: /" + b"y" * 2073),
            [("K006", 3, 2084)],
            id="K006",
        ),
        pytest.param(in_record(b"Disallow:", b" Disallow /x"), [("K010", 3, 2)], id="K010"),
        pytest.param(
            in_record(b"Disallow:", b"Disallow /a:b"), [("K010", 3, 1)], id="K010 colon in the path"
        ),
        pytest.param(in_record(b"Disallow:", b"Slow down"), [("K011", 3, 1)], id="K011"),
        pytest.param(in_record(b"Disallow:", b"dis-alow: /"), [("K012", 3, 1)], id="K012"),
        pytest.param(
            in_record(b"Disallow:", b": /", b"Two words: b"),
            [("K013", 3, 1), ("K013", 4, 1)],
            id="K013",
        ),
        pytest.param(in_record(b"Disallow \t: /x"), [("K014", 2, 10)], id="K014"),
        pytest.param(in_record(b"Disallow: /a\x0c"), [("K015", 2, 13)], id="K015 FF"),
        pytest.param(in_record(b"Disallow: # \xe2\x80\xa8"), [("K015", 2, 13)], id="K015 LS"),
        pytest.param(in_record(b"Disallow: #\0"), [("K016", 2, 12)], id="K016 NUL"),
        pytest.param(
            in_record("Disallow: /ü # ü".encode(), b"Disallow: /a # \xfc"),
            [("K017", 2, 12)],
            id="K017 and not in a comment",
        ),
        pytest.param(in_record(b"Disallow: /\xfc"), [("K018", 2, 12)], id="K018"),
        pytest.param(AGENT + FREE, [("K020", 1, 1)], id="K020"),
        pytest.param(AGENT + b"**" + FREE, [("K021", 1, 13)], id="K021"),
        pytest.param(AGENT + b"a, b" + FREE, [("K022", 1, 13)], id="K022 list"),
        pytest.param(
            AGENT + b"Fig" + FREE + AGENT + b"fIG" + FREE,
            [("K023", 4, 1)],
            id="K023",
        ),
        pytest.param((AGENT + b"*" + FREE) * 2, [("K024", 4, 1)], id="K024"),
        pytest.param(AGENT + b"*\n" + AGENT + b"*" + FREE, [("K025", 2, 1)], id="K025"),
        pytest.param(
            AGENT + b"a\n" + AGENT + b"FigTree" + FREE + AGENT + b"fig" + FREE,
            [("K026", 5, 1)],
            id="K026",
        ),
        pytest.param(
            AGENT + b"fig" + FREE + AGENT + b"figtree" + FREE, [], id="K026 not, shorter first"
        ),
        pytest.param(AGENT + b"a\n" + AGENT + b"b\n", [("K030", 1, 1)], id="K030"),
        pytest.param(
            AGENT + b"a\n\n \n" + AGENT + b"b\n#\n\t\nDisallow: /\n\nAllow: /a\n",
            [("K031", 2, 1), ("K031", 6, 1), ("K031", 8, 1), ("K047", 9, 1)],
            id="K031",
        ),
        pytest.param(
            b"Sitemap: http://h/\n\n" + in_record(b"Disallow: /x", b"", b"Host: a", b"Host: b"),
            [("K032", 1, 1), ("K032", 6, 1)],
            id="K032",
        ),
        pytest.param(
            AGENT + b"a\nSitemap: http://h/\n" + AGENT + b"b\nDisallow: /\n",
            [("K033", 2, 1)],
            id="K033",
        ),
        pytest.param(b" Allow: /\n" + AGENT + b"a" + FREE, [("K034", 1, 2)], id="K034"),
        pytest.param(
            AGENT + b"a\nDisallow: /\n#\n" + AGENT + b"b" + FREE,
            [("K035", 4, 1)],
            id="K035",
        ),
        pytest.param(in_record(b"Disallow:  a"), [("K040", 2, 12)], id="K040"),
        pytest.param(in_record(b"Disallow: $"), [("K040", 2, 11), ("K043", 2, 11)], id="K040 $"),
        pytest.param(in_record(b"Disallow: HTTPS://a/"), [("K041", 2, 11)], id="K041"),
        pytest.param(in_record(b"Disallow: *.php"), [("K042", 2, 11)], id="K042 first"),
        pytest.param(in_record(b"Disallow: /a$"), [("K043", 2, 13)], id="K043"),
        pytest.param(in_record(b"Disallow: /%a%2"), [("K044", 2, 12)], id="K044"),
        pytest.param(in_record(b"Disallow: /a#b"), [("K045", 2, 13)], id="K045"),
        pytest.param(
            in_record(b"Disallow: /a #b", b"Disallow: /b\t#", b"Disallow:#c"),
            [],
            id="K045 not, a comment",
        ),
        pytest.param(
            in_record(b"Disallow: /%72obots.txt", b"Disallow: /robots.tx"),
            [("K046", 2, 11)],
            id="K046",
        ),
        pytest.param(
            in_record(b"Allow: /a", b"Disallow: /a%62c", b"Disallow: /b"),
            [("K047", 3, 1)],
            id="K047",
        ),
        pytest.param(
            in_record(b"Disallow: /a", b"Disallow: /a", b"Disallow: /ab"),
            [("K048", 3, 1), ("K048", 4, 1)],
            id="K048",
        ),
        pytest.param(
            in_record(b"Disallow: /b", b"Allow: /", b"Allow: /a", b"Disallow: /a"),
            [("K049", 3, 1)],
            id="K049",
        ),
        pytest.param(in_record(b"Allow: /", b"Disallow:"), [], id="K049 not"),
        pytest.param(in_record(b"Allow: # /"), [("K050", 2, 1)], id="K050"),
        pytest.param(in_record(b"Disallow: /a /b"), [("K051", 2, 13)], id="K051"),
    ],
)
def test_found(body: bytes, expected: list[tuple[str, int, int]]) -> None:
    assert found(body) == expected


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SECTION_3_2, id="section 3.2"),
        pytest.param(SECTION_4, id="section 4"),
        pytest.param(SECTION_4_AS_PRINTED, id="B8"),
        pytest.param("\n".join("      " + line for line in SECTION_4.splitlines()), id="B8 all"),
        pytest.param("uSER-AGENT:a\nDISALLOW:/ #\n#\nCrawl-delay: 1\n", id="B9, B10, B11"),
        pytest.param(
            "\n\nUser-agent: a\nDisallow:\n#\n\n#\n\n#\nUser-agent: b\nDisallow: /?a=b;c",
            id="B10, C4",
        ),
        pytest.param("User-agent: *\nNoindex: /*\nDisallow: /a%2Fb//../C", id="C3, C7"),
    ],
)  # fmt: skip
def test_clean(text: str, line_end: str) -> None:
    assert check(text.replace("\n", line_end).encode()) == []


@pytest.mark.parametrize(
    ("content_type", "said"),
    [
        (None, None),
        ("text/plain", None),
        ("Text/Plain ; charset=utf-8", None),
        ("", "the answer has no Content-Type"),
        ("text/html; charset=utf-8", "the Content-Type is 'text/html; charset=utf-8'"),
        ("\x1b[2J\ud800" + "x" * 10_000, "the Content-Type is '\\x1b[2J\\ud800xxx"),
    ],
)
def test_the_content_type(content_type: str | None, said: str | None) -> None:
    findings = check(b"User-agent: *\nDisallow:\n", content_type=content_type)
    assert [f.check.code for f in findings] == ["K007"] * (said is not None)
    assert said is None or findings[0].message.startswith(said)
    assert all(len(f.message) < 100 for f in findings)


@pytest.mark.parametrize(
    ("path", "column"),
    [
        *((path, 11) for path in (
            b"/admin", b"/Admin/", b"/administrator/", b"/phpmyadmin/", b"/admin.php", b"/backup",
            b"/backups/", b"/backup.zip", b"/private/", b"/secret?x", b"/internal;x", b"/.git/",
            b"/.env", b"/passwords.txt", b"/dumps/", b"/intranet$", b"/hidden*",
        )),
        (b"/a/b/admin/c", 15),
        (b"/*/admin", 13),
        *((path, None) for path in (
            b"/", b"/administration-of-estates", b"/wp-admin/", b"/badmin", b"/backups2024",
            b"/admin%20x", b"/secretary", b"/privateer", b"/x?y=admin", b"/environment",
            b"/.github/",
        )),
    ],
)  # fmt: skip
def test_a_path_that_tells(path: bytes, column: int | None) -> None:
    told = [place for place in found(in_record(b"Disallow: " + path)) if place[0] == "K052"]
    assert told == ([] if column is None else [("K052", 2, column)])
    assert "K052" not in codes(in_record(b"Allow: " + path))


def test_a_file_with_one_instance_of_each() -> None:
    assert sorted(codes(EACH_BUT_THE_EXCLUSIVE)) == [
        code for code in CHECKS if code not in ("K001", "K003", "K007", "K008", "K048")
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"Content-Usage: train-ai=n", []),
        (b"Content-Usage: /a train-ai=n, search=y;x, new=maybe", []),
        (b"Content-Usage: /a", []),
        (b"Content-Usage: train-ai=yes", [("K071", 2, 16)]),
        (b"Content-Usage: /a train-ai, search=1", [("K071", 2, 16)] * 2),
        (b"Content-Usage: Train-AI=n", [("K070", 2, 16)]),
        (b"Content-Usage: train-ai=y, x=" + b"y" * 131_072, [("K070", 2, 16)]),
        (b"Content-Usage: a/ train-ai=n", [("K072", 2, 16)]),
        (b"Content-Usage: train-ai=n search=n", [("K070", 2, 16)]),
        (b"Content-Signal: search=yes, ai-train=no, use=reference", []),
        (b"Content-Signal: ai-train=never", [("K071", 2, 17)]),
        (b"Content-Signal: /a ai-train=no", [("K070", 2, 17)]),
    ],
)
def test_preferences(line: bytes, told: list[tuple[str, int, int]]) -> None:
    assert [place for place in found(in_record(line)) if place[0] > "K069"] == told


def test_preferences_outside_of_a_record() -> None:
    rest = b"User-agent: *\nDisallow: /a\n"
    assert codes(b"Content-Usage: train-ai=n\n" + rest) == ["K073"]
    assert codes(b"Content-Signal: ai-train=no\n" + rest) == []


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (b"Dissallow", "Disallow"),
        (b"Disalow", "Disallow"),
        (b"Dis allow", "Disallow"),
        (b"\xef\xbb\xbfDisallow", "Disallow"),
        (b"Alow", "Allow"),
        (b"User agent", "User-agent"),
        (b"Useragent", "User-agent"),
        (b"User-agnet", "User-agent"),
    ],
)
def test_misspelt(line: bytes, meant: str) -> None:
    [finding] = [f for f in check(in_record(b"Disallow:", line + b": /")) if f.check.code == "K012"]
    assert finding.message.endswith(f" is not '{meant}'")


@pytest.mark.parametrize(
    "field",
    ["Sitemap", "Crawl-delay", "Host", "Noindex", "Request-rate", "Visit-time",
     "Clean-param", "Content-Signals", "Robot-version", "Agent", "X" * 3000],
)  # fmt: skip
def test_extensions_are_not_misspelt(field: str) -> None:
    assert set(codes(in_record(b"Disallow:", field.encode() + b": 1"))) <= {
        "K006", "K060", "K061",
    }  # fmt: skip


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


def test_names_are_compared_up_to_a_bound() -> None:
    records = b"".join(AGENT + b"bot%d" % n + FREE for n in range(2200))
    assert codes(records[: records.index(b"bot1999")] + b"bot" + FREE) == ["K026"]
    assert codes(records + AGENT + b"bot" + FREE) == []


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


@given(FILES)
def test_lines_that_are_ignored_are_those_that_have_no_part_in_a_record(
    body: bytes,
) -> None:
    findings = check(body, None)
    if {"K002", "K003"} & {f.check.code for f in findings}:
        return
    obeyed = {line.number for record in parse(body) for line in (*record.agents, *record.rules)}
    ignored = {f.line for f in findings if f.check.code in ("K010", "K011", "K013", "K034")} - {
        f.line for f in findings if f.check.code == "K012"
    }
    assert not obeyed & ignored
    told = {
        f.line for f in findings if f.check.code in ("K010", "K011", "K012", "K013", "K032", "K034")
    }
    without = min((f.line for f in findings if f.check.code == "K030"), default=10**9)
    text = body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for number, line in enumerate(text.split(b"\n"), 1):
        if line.partition(b"#")[0].strip(b" \t"):
            assert number in obeyed | told or number >= without


HOSTILE = {
    "colons": b":\n" * 256_000,
    "lines": b"\n" * MAX_BYTES,
    "octets": b"\xff\n" * 256_000,
    "one line": b"User-agent:" + b"a" * 511_000,
    "nested": b"User-agent:*\n" + b"".join(b"Allow:/" + b"a" * n + b"\n" for n in range(1000)),
    "same path": b"User-agent:*\n" + b"Allow:/a\nDisallow:/a\n" * 25_000,
    "opened": b"User-agent:*\n" + b"Allow:/\nDisallow:/a\n" * 25_000,
    "names": b"".join(b"User-agent:" + b"a" * (n % 500) + b"b\na:\n" for n in range(1900)),
    "records": b"".join(b"User-agent:%d\na:\n" % n for n in range(24_000)),
    "percents": b"User-agent:*\nAllow:/" + b"%" * 511_000,
    "spaces": b" " * 255_000 + b"x" + b" " * 255_000 + b":",
    "noise": random.Random(1996).randbytes(MAX_BYTES),
}


@pytest.mark.slow
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_have_bounded_findings(body: bytes) -> None:
    assert len(check(body[: so_many(128, 512) * 1024])) <= 20 * len(CHECKS)


@pytest.mark.slow
def test_real_files(corpus: list[File]) -> None:
    rule = re.compile(rb"(?im)^[ \t]*(?:dis)?allow[ \t]*:[^#\r\n]*?([*$])")
    assert len(corpus) == 1000
    for body, _ in corpus:
        told = set(codes(body))
        signs = set(rule.findall(body))
        assert bool(signs) == bool(told & {"K042", "K043"})


def rows() -> Iterator[list[str]]:
    text = (ROOT / "docs" / "check-codes.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("| K"):
            yield [cell.strip().replace("\\|", "|") for cell in line.split("|")[1:-1]]


@pytest.mark.promise("docs/check-codes.md", "the codes, with severity, reading, section and fix")
def test_the_documented_codes_are_those_of_the_code() -> None:
    assert list(rows()) == [
        [
            c.code,
            c.severity.value if c.readings == BOTH else f"{c.severity.value}, draft",
            c.title,
        ]
        for c in CHECKS.values()
    ]


HAZARDS = ["A4", "A5", "A8", "B3", "B6", "B9", "B11", "B14", "B16", "C1", "C5", "C6"]


# docs/semantics.md

SEMANTICS = (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")
POINT = re.compile(r"\b[ABC]\d{1,2}\b")


def table(columns: int) -> Iterator[list[str]]:
    for line in SEMANTICS.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == columns and cells[0][:3] not in {"---", "poi", "the"}:
            yield cells


DECISIONS = {row[0]: row for row in table(5) if POINT.fullmatch(row[0])}
EXAMPLES = [row for row in table(5) if row[0].startswith("`")]


def test_every_point_of_the_cases_is_a_decision() -> None:
    assert {case.point for case in CASES if POINT.fullmatch(case.point)} == set(DECISIONS)


def test_every_decision_names_its_codes() -> None:
    for point, row in DECISIONS.items():
        codes = [c.code for c in CHECKS.values() if point in c.points.split(", ")]
        assert ", ".join(codes) == row[4], point


def test_every_hazard_is_reported_as_a_warning_at_least() -> None:
    hazards = {point for point, row in DECISIONS.items() if row[3]}
    assert hazards == {*HAZARDS, "A10"}


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
        ("K024", "User-agent: *\nDisallow: /x\n\nUser-agent: *\nDisallow:", None),
        ("K026", "User-agent: ab\nDisallow: /x\n\nUser-agent: c\nUser-agent: b\nAllow: /y",
         "6 for '/y'"),
        ("K033", "User-agent: a\nX: y\n\nUser-agent: b\nDisallow: /x", "5 for '/x'"),
        ("K042", "User-agent: *\nDisallow: /*.gif$", "2 for '/x.gif'"),
        ("K042", "User-agent: *\nDisallow: *.gif", "2 for '/x.gif'"),
        ("K042", "User-agent: *\nDisallow: /*b\nAllow: /xbc\nAllow: /x*b", "4 for '/xxb'"),
        ("K042", "Disallow: /*.gif", None),
        ("K042", "User-agent: a b\nDisallow: /*.gif", None),
        ("K043", "User-agent: *\nDisallow: /a$", "2 for '/a'"),
        ("K047", "User-agent: *\nAllow: /a\nDisallow: /a/b", "3 for '/a/b'"),
        ("K047", "User-agent: *\nDisallow: /a\nAllow: /a", "3 for '/a'"),
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


def test_no_more_hazards_are_looked_at_than_are_listed_by_default() -> None:
    file = "User-agent: *\n" + "Disallow: /*\n" * 30
    found = [each.message for each in check(file.encode(), None) if each.check.code == "K042"]
    assert ["RFC 9309" in message for message in found] == [True] * 20 + [False] * 10
