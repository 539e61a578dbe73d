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

META = "<meta name=robots content=none>"
ATTACKS = [
    ("RFC 9309", Pattern("User-agent: *\nDisallow: /", "*a", "*b$")),
    ("RFC 9309", Pattern("User-agent: *\nDisallow: ", "*", "")),
    ("RFC 9309", Pattern("User-agent: *\nDisallow: /*", "%2Fa*", "$")),
    ("RFC 9309", Pattern("User-agent: *\n", "Disallow: /*a*a*a\n", "")),
    ("RFC 9309", Pattern("User-agent: *\n", f"Disallow: /*aaaa*b{COUNTER}\n", "")),
    ("RFC 9309", Pattern("User-agent: *\n", f"Allow: /a*{COUNTER}$\n", "")),
    ("RFC 9309", Pattern("", "User-agent: *\nDisallow: /*a\n", "")),
    ("HTML", Pattern("<meta a='&' b='", 'name="', "'>")),
    ("HTML", Pattern("", "<meta a='<meta a=\"", "")),
    ("HTML", Pattern("", "<meta ", "")),
    ("HTML", Pattern("<meta", " a", f">{META}")),
    ("HTML", Pattern("", "<svg>", f"</math>{META}")),
    ("HTML", Pattern("", "<template>", META)),
    ("HTML", Pattern("", "<!--", META)),
    ("HTML", Pattern(f"{META[:-1]} a='", "&", "'>")),
    ("HTML", Pattern("<svg>", "<![CDATA[", "")),
    ("HTML", Pattern("<script>", "<!--<script>", "")),
    ("HTML", Pattern("", "<?", "")),
    ("delay", Pattern("", "9", "")),
    ("delay", Pattern("1", " ", "x")),
    ("delay", Pattern("", "User-agent: *\nRequest-rate: 1/1\n", "")),
    ("usage lines", Pattern("", f"Content-Usage: k{COUNTER}=n\n", "")),
    ("usage lines", Pattern("", f"Content-Usage: /*a{COUNTER}*a x=n\n", "")),
    ("usage lines", Pattern("Content-Usage: /", "*a", "")),
    ("usage lines", Pattern("Content-Usage: ", "a=n,", "")),
    ("usage dictionary", Pattern("", f"k{COUNTER}=n,", "a")),
    ("usage dictionary", Pattern("a=(", "y ", ")")),
    ("usage dictionary", Pattern('a="', '\\"', '"')),
    ("usage dictionary", Pattern('a=%"', "%c3%a9", '%ff"')),
    ("usage dictionary", Pattern("a=:", "QUJD", ":")),
    ("X-Robots-Tag", Pattern("", "a:", "")),
    ("access log", Pattern('"', "a, ", "")),
    ("fields", Pattern('"', '\\"', "")),
    ("fields", Pattern("max-age=", "9", "")),
    ("fields", Pattern("Sun, 06 Nov ", "1", " 00:00:00 GMT")),
    ("Location", Pattern("/", "a/", "../" * 9)),
    ("URL", Pattern("/", "%", "")),
    ("check", Pattern("", f"User-agent:{'a' * 400}\N{NUMERO SIGN}\na:\n", "")),
    ("check", Pattern("User-agent:*\n", "Allow:/a\nDisallow:/a\n", "")),
    ("Content-Encoding", Pattern("", "\0\x01\x02", "")),
    ("stored value", Pattern("", "[", "")),
    ("stored value", Pattern('{"url":"', "\\u0000", '"}')),
    ("log and terminal", Pattern("", "\x1b", "")),
    ("log and terminal", Pattern("", "%(value)s", "")),
]
PIECES = (
    *"a/:*#$%&=;,. \n\t\r\0<>\"'()[]{}\\-1\xff\u2028", COUNTER,
    "%2F", "//", "../", "\\u0000", "Allow: /", "<b>", "<script>", "--",
)  # fmt: skip
"""Of made-up text, beside the parts of the attacks."""
PATTERNS = int(os.environ.get("FUZZ_PATTERNS", "500"))
"""How many are made up in all. More of them: FUZZ_PATTERNS=100000, 10 minutes or so."""
SEED = os.environ.get("FUZZ_SEED", "1996")


@pytest.mark.parametrize("name", READERS)
def test_made_up_text_of_double_length_takes_about_twice_the_time(name: str) -> None:
    reader = READERS[name]
    known = [part for _, each in ATTACKS for part in (each.start, each.pump, each.end) if part]
    made_up = patterns([*PIECES, *known], Random(f"{SEED} {name}"))
    slow = {}
    for _, pattern in zip(range(PATTERNS // len(READERS)), made_up, strict=False):
        # Twice, because other processes can only make it slower.
        if growth(reader, pattern.text) > MOST and (times := growth(reader, pattern.text)) > MOST:
            slow[pattern] = times
    assert not slow


@pytest.mark.parametrize(("name", "pattern"), ATTACKS)
def test_an_attack_of_double_length_takes_about_twice_the_time(name: str, pattern: Pattern) -> None:
    assert growth(READERS[name], pattern.text) <= MOST


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("name", ["decision", "RFC 9309", "records", "check"])
def test_a_hostile_file_of_double_length_takes_about_twice_the_time(name: str, kind: str) -> None:
    def text(chars: int) -> str:
        return HOSTILE[kind](chars).decode("latin-1")

    assert growth(READERS[name], text) <= MOST


def test_a_quadratic_reader_is_found() -> None:
    """By the pattern that once looked for names with character references."""
    once = re.compile(r"""name\s*=\s*(?:"[^"&]*|'[^'&]*|[^\s>&]*)&""")
    assert (
        growth(Reader(once.search, chars=400, most_chars=6_400), Pattern("", 'name="', "").text)
        > MOST
    )
