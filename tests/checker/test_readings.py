"""The standards of findings, and fixes without harm to a reader by the other standard."""

# ruff: noqa: E501  # a file is a line

from __future__ import annotations

import pytest

from scrapy_koster.checker.checks import BOTH, CHECKS, Severity
from scrapy_koster.checker.syntax import check
from scrapy_koster.protocol.reading import Reading, Rfc9309, RobotsTxt
from scrapy_koster.protocol.ruling import Standard

READERS: dict[Standard, type[Reading]] = {Standard.DRAFT: RobotsTxt, Standard.RFC_9309: Rfc9309}


def codes(body: bytes, *readings: Standard) -> set[str]:
    return {finding.check.code for finding in check(body, readings=readings or BOTH)}


ALL = b"User-agent: *\n"
FIXED: dict[str, tuple[bytes, bytes]] = {
    "K001 1:1": (b"# nobody\n", b"# nobody\nUser-agent: *\nDisallow:\n"),
    "K002 1:1": (b"<html>no</html>", ALL + b"Disallow:\n"),
    "K003 1:1": ((ALL + b"Disallow: /a\n").decode().encode("utf-16"), ALL + b"Disallow: /a\n"),
    "K004 1:1": (b"\xef\xbb\xbf" + ALL + b"Disallow: /a\n", ALL + b"Disallow: /a\n"),
    "K005 507:1": (ALL + (b"Disallow: /" + b"a" * 1000 + b"\n") * 520, ALL + b"Disallow: /a/b\n"),
    "K006 2:2084": (ALL + b"Disallow: /a" + b"b" * 2100 + b"\n", ALL + b"Disallow: /a\n"),
    "K008 2:1": (ALL + b"Disallow: /\n", ALL + b"Disallow: /a\n"),
    "K010 2:1": (ALL + b"Disallow /a\n", ALL + b"Disallow: /a\n"),
    "K011 3:1": (ALL + b"Disallow: /a\nwords\n", ALL + b"Disallow: /a\n#words\n"),
    "K012 2:1": (ALL + b"Dissallow: /a\n", ALL + b"Disallow: /a\n"),
    "K013 3:1": (ALL + b"Disallow: /a\nTwo words: x\n", ALL + b"Disallow: /a\n#Two words: x\n"),
    "K014 2:9": (ALL + b"Disallow : /a\n", ALL + b"Disallow: /a\n"),
    "K015 2:13": (ALL + b"Disallow: /a\x0b\n", ALL + b"Disallow: /a\n"),
    "K016 2:13": (ALL + b"Disallow: /a\x01\n", ALL + b"Disallow: /a%01\n"),
    "K017 2:15": (ALL + b"Disallow: /caf\xc3\xa9\n", ALL + b"Disallow: /caf%C3%A9\n"),
    "K018 2:15": (ALL + b"Disallow: /caf\xe9\n", ALL + b"Disallow: /caf%E9\n"),
    "K019 1:1": (b"<b>User-agent: *\nDisallow: /a\n", ALL + b"Disallow: /a\n"),
    "K020 1:1": (b"User-agent:\nDisallow: /a\n", b"User-agent: fig\nDisallow: /a\n"),
    "K021 1:13": (b"User-agent: fig*\nDisallow: /a\n", b"User-agent: fig\nDisallow: /a\n"),
    "K022 1:13": (b"User-agent: fig/1\nDisallow: /a\n", b"User-agent: fig\nDisallow: /a\n"),
    "K023 4:1": (b"User-agent: fig\nDisallow: /a\n\nUser-agent: fig\nAllow: /a/b\n", b"User-agent: fig\nAllow: /a/b\nDisallow: /a\n"),
    "K024 4:1": (ALL + b"Disallow: /a\n\n" + ALL + b"Disallow: /b\n", ALL + b"Disallow: /a\nDisallow: /b\n"),
    "K025 2:1": (
        b"User-agent: fig\nUser-agent: fig\nDisallow: /a\n", b"User-agent: fig\nDisallow: /a\n",
    ),
    "K026 4:1": (b"User-agent: figtree\nDisallow: /a\n\nUser-agent: fig\nDisallow: /b\n", b"User-agent: fig\nDisallow: /b\n\nUser-agent: figtree\nDisallow: /a\n"),
    "K030 1:1": (b"User-agent: fig\n", b"User-agent: fig\nDisallow:\n"),
    "K031 3:1": (ALL + b"Disallow: /a\n\nDisallow: /b\n", ALL + b"Disallow: /a\nDisallow: /b\n"),
    "K032 1:1": (
        b"Crawl-delay: 1\n\n" + ALL + b"Disallow: /a\n", ALL + b"Disallow: /a\nCrawl-delay: 1\n",
    ),
    "K033 2:1": (b"User-agent: fig\nCrawl-delay: 1\nUser-agent: x\nDisallow: /a\n", b"User-agent: fig\nUser-agent: x\nDisallow: /a\nCrawl-delay: 1\n"),
    "K034 1:1": (b"Disallow: /a\n\n", ALL + b"Disallow: /a\n\n"),
    "K035 3:1": (b"User-agent: fig\nDisallow: /a\nUser-agent: x\nDisallow: /b\n", b"User-agent: fig\nDisallow: /a\n\nUser-agent: x\nDisallow: /b\n"),
    "K040 2:11": (ALL + b"Disallow: a\n", ALL + b"Disallow: /a\n"),
    "K041 2:11": (ALL + b"Disallow: http://h/a\n", ALL + b"Disallow: /a\n"),
    "K042 2:14": (ALL + b"Disallow: /a/*.gif\n", ALL + b"Disallow: /a/*.gif\nDisallow: /a/b.gif\n"),
    "K043 2:15": (ALL + b"Disallow: /a/b$\n", ALL + b"Disallow: /a/b$\n"),
    "K044 2:15": (ALL + b"Disallow: /100%\n", ALL + b"Disallow: /100%25\n"),
    "K045 2:13": (ALL + b"Disallow: /a#b\n", ALL + b"Disallow: /a%23b\n"),
    "K046 2:11": (ALL + b"Disallow: /robots.txt\n", ALL + b"Disallow:\n"),
    "K047 3:1": (ALL + b"Disallow: /a\nAllow: /a/b\n", ALL + b"Allow: /a/b\nDisallow: /a\n"),
    "K048 3:1": (ALL + b"Disallow: /a\nDisallow: /a/b\n", ALL + b"Disallow: /a\n"),
    "K049 2:1": (ALL + b"Allow: /\nDisallow: /a\n", ALL + b"Disallow: /a\nAllow: /\n"),
    "K050 2:1": (b"User-agent: fig\nAllow:\n\n" + ALL + b"Disallow: /a\n", b"User-agent: fig\nDisallow:\n\n" + ALL + b"Disallow: /a\n"),
    "K051 2:13": (ALL + b"Disallow: /a b\n", ALL + b"Disallow: /a%20b\n"),
    "K052 2:13": (ALL + b"Disallow: /a/admin/\n", ALL + b"Disallow: /a/\n"),
    "K060 3:1": (ALL + b"Disallow: /a\nMadeup: 1\n", ALL + b"Disallow: /a\n"),
    "K060 5:1": (ALL + b"Disallow: /\n\nUser-agent: a\nMadeup: 1\n", ALL + b"Disallow: /\n\nUser-agent: a\nDisallow:\n"),
    "K061 3:1": (ALL + b"Disallow: /a\nSitemap: /s\n", ALL + b"Disallow: /a\nSitemap: http://h/s\n"),
    "K062 3:1": (ALL + b"Disallow: /a\nCrawl-delay: x\n", ALL + b"Disallow: /a\nCrawl-delay: 10\n"),
    "K070 3:16": (ALL + b"Disallow: /a\nContent-Usage: X\n", ALL + b"Disallow: /a\nContent-Usage: x=n\n"),
    "K071 3:16": (ALL + b"Disallow: /a\nContent-Usage: search=no\n", ALL + b"Disallow: /a\nContent-Usage: search=n\n"),
    "K072 3:16": (ALL + b"Disallow: /a\nContent-Usage: a/ search=n\n", ALL + b"Disallow: /a\nContent-Usage: /a search=n\n"),
    "K073 1:1": (b"Content-Usage: search=n\n\n" + ALL + b"Disallow: /a\n", ALL + b"Content-Usage: search=n\n\n" + ALL + b"Disallow: /a\n"),
}  # fmt: skip
"""By code and place of its first finding: a file, and the file after the fix."""

NOT_FIXED = {"K042", "K043"}
"""Codes without a fix by the draft, which has no such lines. The finding stays."""

PROBES = [
    f"http://h{path}"
    for path in (
        "/", "/a", "/a/", "/a/b", "/a/b/c", "/a/bc", "/a/b.gif", "/a/x.gif", "/a/b$", "/b", "/c",
        "/a/*.gif", "/caf%C3%A9", "/caf%E9", "/a%01", "/robots.txt", "/a?x=1", "/b/a", "/ab", "/x",
    )
]  # fmt: skip
ROBOTS = ("fig", "figtree", "x", "other")


def allowed(body: bytes, reading: Standard) -> list[bool]:
    read = READERS[reading](body)
    return [read.allowed(url, robot) for url in PROBES for robot in ROBOTS]


def test_every_fix_is_tried() -> None:
    of_a_header = "K007"
    assert {*(name[:4] for name in FIXED), of_a_header} == set(CHECKS)


@pytest.mark.parametrize("name", FIXED)
def test_a_fix_changes_nothing_for_the_other_reading(name: str) -> None:
    before, after = FIXED[name]
    code, _, place = name.partition(" ")
    found = [f for f in check(before) if f.check.code == code]
    assert f"{found[0].line}:{found[0].column}" == place
    assert (code in codes(after)) == (code in NOT_FIXED)
    for reading in Standard:
        if reading not in CHECKS[code].readings:
            assert allowed(after, reading) == allowed(before, reading)
            assert code not in codes(before, reading)


def test_a_fix_adds_no_worse_finding() -> None:
    order = list(Severity)
    for before, after in FIXED.values():
        worst = min(order.index(f.check.severity) for f in check(before))
        assert all(order.index(f.check.severity) >= worst for f in check(after))


REPEATS = ALL + b"Disallow: /a\nAllow: /a/b\nDisallow: /a/b/c\n"


def test_a_line_that_rfc_9309_needs_is_not_to_be_removed() -> None:
    """Though by the draft an earlier line says the same."""
    assert "K048" not in codes(REPEATS)
    without = REPEATS.replace(b"Disallow: /a/b/c\n", b"")
    assert allowed(without, Standard.RFC_9309) != allowed(REPEATS, Standard.RFC_9309)
    assert "K048" not in codes(ALL + b"Disallow: /a$\nDisallow: /a$b\n")
    assert "K048" not in codes(ALL + b"Disallow: /a?\nDisallow: /a%3Fb\n")
    # RFC 9309 joins the records of a robot: the Allow line of the other one would win.
    joined = ALL + b"Disallow: /a\nDisallow: /a/bc\n\n" + ALL + b"Allow: /a/b\n"
    assert "K048" not in codes(joined)


def test_a_file_that_closes_the_whole_site_by_one_reading_alone_is_told_so() -> None:
    [found] = [each for each in check(ALL + b"Disallow: /*\n") if each.check.code == "K008"]
    assert tuple(found.readings) == (Standard.RFC_9309,)
    assert "K008" not in codes(ALL + b"Disallow: /\nAllow: /a\n")
    assert "K008" not in codes(b"User-agent: named\nDisallow: /\n")
