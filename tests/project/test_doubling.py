"""Section 6: twice the text takes about twice the time, whatever it says and whoever reads it."""

from __future__ import annotations

import os
import re
from random import Random

import pytest
from harness.doubling import COUNTER, MOST, Pattern, Reader, growth, patterns
from harness.hostile import HOSTILE
from harness.readers import READERS

pytestmark = pytest.mark.timed

PATTERNS = int(os.environ.get("FUZZ_PATTERNS", "500"))
"""How many are made up in all. More of them: FUZZ_PATTERNS=100000, 10 minutes or so."""
META = "<meta name=robots content=none>"
SEED = os.environ.get("FUZZ_SEED", "1996")


@pytest.mark.promise("docs/reliability.md", "at double length at most 2.3 times the time")
@pytest.mark.parametrize("name", READERS)
def test_of_patterns_made_up(name: str) -> None:
    reader = READERS[name]
    made_up = patterns(reader.pieces, Random(f"{SEED} {name}"))
    slow = {}
    for _, pattern in zip(range(PATTERNS // len(READERS)), made_up, strict=False):
        times = growth(reader, pattern.text)
        if times > MOST:
            slow[pattern] = times
    assert not slow


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        *(
            pytest.param(
                "RFC 9309", Pattern(f"User-agent: *\n{rule}", pump, end), id=f"{pump} {end}"
            )
            for rule, pump, end in (
                ("Disallow: /", "*a", "*b$"),
                ("Disallow: ", "*", ""),
                ("Disallow: /*", "%2Fa*", "$"),
                ("", "Disallow: /*a*a*a\n", ""),
                ("", f"Disallow: /*aaaa*b{COUNTER}\n", ""),
                ("", f"Allow: /a*{COUNTER}$\n", ""),
                ("", "User-agent: *\nDisallow: /*a\n", ""),
            )
        ),
        pytest.param("HTML", Pattern("<meta a='&' b='", 'name="', "'>"), id="a name spelt out"),
        pytest.param("HTML", Pattern("", "<meta a='<meta a=\"", ""), id="tags in quotes"),
        pytest.param("HTML", Pattern("", "<meta ", ""), id="tags without end"),
        pytest.param("HTML", Pattern("<meta", " a", f">{META}"), id="attributes"),
        pytest.param("HTML", Pattern("", "<svg>", f"</math>{META}"), id="elements without end"),
        pytest.param("HTML", Pattern("", "<template>", META), id="templates without end"),
        pytest.param("HTML", Pattern("", "<!--", META), id="comments"),
        pytest.param("HTML", Pattern(f"{META[:-1]} a='", "&", "'>"), id="references"),
        pytest.param("HTML", Pattern("<svg>", "<![CDATA[", ""), id="CDATA without end"),
        pytest.param("HTML", Pattern("<script>", "<!--<script>", ""), id="scripts in scripts"),
        pytest.param("delay", Pattern("", "9", ""), id="a long delay"),
        pytest.param("delay", Pattern("1", " ", "x"), id="spaces in a rate"),
        pytest.param(
            "delay", Pattern("", "User-agent: *\nRequest-rate: 1/1\n", ""), id="groups with a rate"
        ),
        *(
            pytest.param("usage lines", Pattern(start, pump, ""), id=f"usage {start}{pump!r}")
            for start, pump in (
                ("", "Content-Usage: x=n\n"),
                ("", f"Content-Usage: k{COUNTER}=n\n"),
                ("", f"Content-Usage: /a{COUNTER} x=n\n"),
                ("", f"Content-Usage: /*a{COUNTER}*a x=n\n"),
                ("Content-Usage: /", "*a"),
                ("Content-Usage: ", "a=n,"),
                ("", "User-agent: *\nContent-Usage: x=n\n"),
            )
        ),
        *(
            pytest.param("usage dictionary", Pattern(start, pump, end), id=f"dictionary {pump}")
            for start, pump, end in (
                ("", "a=n,", "a"),
                ("", f"k{COUNTER}=n,", "a"),
                ("a=(", "y ", ")"),
                ('a="', '\\"', '"'),
                ('a=%"', "%c3%a9", '%ff"'),
                ("a=:", "QUJD", ":"),
                ("a=", "9", ""),
                ("a=n", " ", ","),
            )
        ),
        pytest.param("X-Robots-Tag", Pattern("", "a:", ""), id="addressees"),
        pytest.param("fields", Pattern("", '"\\', ""), id="quoted pairs"),
        pytest.param("fields", Pattern('"', '\\"', ""), id="a quotation without end"),
        pytest.param("fields", Pattern("max-age=", "9", ""), id="a long number"),
        pytest.param("fields", Pattern("Sun, 06 Nov ", "1", " 00:00:00 GMT"), id="a long year"),
        pytest.param("Location", Pattern("/", "a/", "../" * 9), id="segments"),
        pytest.param("URL", Pattern("/", "%", ""), id="broken escapes"),
        pytest.param(
            "check", Pattern("", f"User-agent:{'a' * 400}\N{NUMERO SIGN}\na:\n", ""), id="names"
        ),
        pytest.param(
            "check", Pattern("User-agent:*\n", "Allow:/a\nDisallow:/a\n", ""), id="the same path"
        ),
        pytest.param("Content-Encoding", Pattern("", "\0\x01\x02", ""), id="small gzips"),
        pytest.param("stored value", Pattern("", "[", ""), id="lists in lists"),
        pytest.param("stored value", Pattern('{"url":"', "\\u0000", '"}'), id="escapes"),
        pytest.param("log and terminal", Pattern("", "\x1b", ""), id="escapes"),
        pytest.param("log and terminal", Pattern("", "%(value)s", ""), id="formats"),
    ],
)
def test_of_attacks(name: str, pattern: Pattern) -> None:
    assert growth(READERS[name], pattern.text) <= MOST


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("name", ["decision", "RFC 9309", "records", "check"])
def test_of_hostile_files(name: str, kind: str) -> None:
    def text(chars: int) -> str:
        return HOSTILE[kind](chars).decode("latin-1")

    assert growth(READERS[name], text) <= MOST


def test_what_is_quadratic_is_found() -> None:
    """By the pattern that once looked for names with character references."""
    once = re.compile(r"""name\s*=\s*(?:"[^"&]*|'[^'&]*|[^\s>&]*)&""")
    assert (
        growth(Reader(once.search, (), chars=400, most_chars=6_400), Pattern("", 'name="', "").text)
        > MOST
    )
