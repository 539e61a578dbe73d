"""Preferences in a robots.txt: attach, sentence by sentence."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_koster.parsers import KosterRobotParser, Rfc9309RobotParser, StrictestRobotParser
from scrapy_koster.protocol.usage import Usage
from scrapy_koster.protocol.usage_statements import usage_lines

SITE = "http://a.example"
PARSERS: dict[str, Any] = {
    "draft": KosterRobotParser,
    "rfc9309": Rfc9309RobotParser,
    "both": StrictestRobotParser,
}


def said(body: str | bytes, path: str, robot: str = "figtree", standard: str = "draft") -> str:
    """The preferences about a page, in one line; "" if they are all unknown."""
    octets = body if isinstance(body, bytes) else body.encode()
    found = usage_lines(octets, PARSERS[standard](octets))
    return str(Usage(found.statements(f"{SITE}{path}", robot))) if found else ""


EXAMPLE_3_4 = """\
User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: ExampleBot
Allow: /
Content-Usage: train-ai=y
"""


@pytest.mark.parametrize("standard", ["rfc9309", "both"])
@pytest.mark.parametrize(
    ("path", "crawl", "usage"),
    [
        ("/test", True, "train-ai=n"),
        ("/never/test", False, "N/A"),
        ("/ai-ok/test", True, "train-ai=y"),
    ],
)
def test_3_4_the_table(path: str, crawl: bool, usage: str, standard: str) -> None:
    """Preferences are asked for only about a page that may be crawled: of others there are none."""
    assert PARSERS[standard](EXAMPLE_3_4.encode()).allowed(f"{SITE}{path}", "figtree") is crawl
    if crawl:
        assert said(EXAMPLE_3_4, path, standard=standard) == usage


def record(*lines: str) -> str:
    return "\n".join(["User-agent: *", "Disallow: /private", *lines])


@pytest.mark.parametrize("standard", PARSERS)
@pytest.mark.parametrize(
    ("lines", "path", "expected"),
    [
        # 3: content-usage = *WS "content-usage" *WS ":" *WS [ path-pattern 1*WS ] usage-pref EOL
        pytest.param(["Content-Usage: /a \t train-ai=n"], "/a", "train-ai=n", id="3-1*WS"),
        # 3.1: "using the rule that has the longest matching path prefix".
        pytest.param(
            ["Content-Usage: train-ai=n", "Content-Usage: /a/ search=y"],
            "/a/b", "search=y", id="3.1-whole-rules-not-labels",
        ),
        pytest.param(
            ["Content-Usage: / train-ai=y", "Content-Usage: train-ai=n"],
            "/b", "train-ai=y", id="3.1-a-slash-beats-an-absent-path",
        ),
        # "counting the number of bytes in the encoded path".
        pytest.param(
            ["Content-Usage: /%C3%A9 train-ai=n", "Content-Usage: /é* train-ai=y"],
            "/%C3%A9a", "train-ai=y", id="3.1-encoded-bytes",
        ),
        # RFC 9309, 2.2.3: wildcards, whichever parser is in use.
        pytest.param(["Content-Usage: /*.pdf$ train-ai=n"], "/x/a.pdf", "train-ai=n", id="3.1-*$"),
        # 3.2: "up to either the first CR, LF, or octothorpe".
        pytest.param(["Content-Usage: train-ai=n # x"], "/", "train-ai=n", id="3.2-a-comment"),
        # "a rule value that starts with any other character indicates that the path is absent".
        pytest.param(["Content-Usage: a/ train-ai=n"], "/a/", "", id="3.2-no-slash"),
        # Content-Signal is for all paths.
        pytest.param(
            ["Content-Signal: search=yes, ai-train=no", "Content-Usage: /a train-ai=y"],
            "/a", "search=y, train-ai=n", id="signal",
        ),
    ],
)  # fmt: skip
def test_attach(lines: list[str], path: str, expected: str, standard: str) -> None:
    assert said(record(*lines), path, standard=standard) == expected


RECORDS = """\
Content-Signal: ai-input=no
Content-Usage: tdm=n

User-agent: a
Content-Usage: train-ai=n

User-agent: *
Disallow: /x
Content-Usage: train-ai=y
Content-Signal: search=no

User-agent: a
Content-Usage: / search=n

License: https://a.example/license.xml
"""


@pytest.mark.parametrize(
    ("robot", "standard", "expected"),
    [
        # The draft: the first record that names the robot.
        ("a", "draft", "ai-input=n, ai-use=n, train-ai=n"),
        # RFC 9309, 2.2.1: all groups that name it, as one.
        ("a", "rfc9309", "ai-input=n, ai-use=n, search=n"),
        # Both, each by itself: any "disallow" wins.
        ("a", "both", "ai-input=n, ai-use=n, search=n, train-ai=n"),
        ("b", "both", "ai-input=n, ai-use=n, search=n, train-ai=y"),
    ],
)
def test_the_record_is_that_of_the_parser_in_use(robot: str, standard: str, expected: str) -> None:
    assert said(RECORDS, "/", robot, standard) == expected


def test_the_groups_of_another_name_in_the_header_only_add() -> None:
    body = "User-agent: *\nContent-Usage: train-ai=n\n\nUser-agent: bot\nContent-Usage: / search=n"
    header = "Mozilla/5.0 (compatible; Bot/1.0)"
    assert said(body, "/", header, "rfc9309") == "search=n, train-ai=n"
    assert said(body, "/", "bot", "rfc9309") == "search=n"


def test_a_class_of_others_gets_the_groups_of_rfc_9309() -> None:
    found = usage_lines(RECORDS.encode(), object())
    assert found is not None
    assert str(Usage(found.statements(f"{SITE}/", "a"))) == "ai-input=n, ai-use=n, search=n"


def test_a_record_of_preferences_alone_ends_the_agents_before_it() -> None:
    """Attach, 3: "rule =/ content-usage". Allow and Disallow are grouped as RFC 9309 has it."""
    body = "User-agent: a\nContent-Usage: train-ai=n\nUser-agent: b\nDisallow: /"
    assert [said(body, "/", robot, "rfc9309") for robot in "ab"] == ["train-ai=n", ""]
    parser = Rfc9309RobotParser(body.encode())
    assert [parser.allowed(f"{SITE}/x", robot) for robot in "ab"] == [False, False]


def test_a_content_signal_is_for_the_agents_directly_above_it() -> None:
    """RFC 9309, 2.2.4: other records "MUST NOT interfere with" groups."""
    body = "User-agent: a\nContent-Signal: search=yes\nUser-agent: b\nContent-Usage: train-ai=n"
    for reading in ("rfc9309", "both"):
        assert said(body, "/", "a", reading) == "search=y, train-ai=n"
        assert said(body, "/", "b", reading) == "train-ai=n"


def test_a_file_without_such_lines() -> None:
    assert usage_lines(b"User-agent: *\nDisallow: /", KosterRobotParser(b"")) is None


def test_of_many_lines_all_count_and_a_hundred_are_listed() -> None:
    lines = ["Content-Usage: search=y"] * 5000
    body = record(*lines, "Content-Usage: search=n", *["License: x"] * 50).encode()
    found = usage_lines(body, KosterRobotParser(body))
    assert found is not None
    statements = found.statements(f"{SITE}/", "a")
    assert str(Usage(statements)) == "search=n"
    assert len(statements) == 101
    assert found.statements(f"{SITE}/b", "a")[0] is statements[0]  # no line is parsed twice
    assert len(found.listed("a")) == 100
