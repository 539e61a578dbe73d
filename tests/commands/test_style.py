"""Lines of `scrapy robots` on a terminal: colours, tables and escaped text."""

from __future__ import annotations

import re

import pytest

from scrapy_koster.commands.style import Line, bold, cyan, dim, green, red, shown, yellow

COLOUR = re.compile(r"\x1b\[[0-9;]+m")
HOSTILE = (
    "[bold red]a[/] :warning: [link=http://h]b[/link] \\[ "
    "\x1b[2J\x1b[31m\x9b2J\a\r\t\u202e\u2028 \0"
)
SHOWN = (
    r"[bold red]a[/] :warning: [link=http://h]b[/link] \[ "
    r"\x1b[2J\x1b[31m\x9b2J\x07\r\t\u202e\u2028 \x00"
)


LINES: list[Line] = [
    HOSTILE,
    ("a", HOSTILE, bold("b"), HOSTILE),
    *(paint(HOSTILE) for paint in (red, yellow, green, cyan, bold, dim)),
]


@pytest.mark.parametrize("coloured", [False, True])
def test_what_is_shown_is_text_and_no_markup(coloured: bool) -> None:
    printed = [shown(line, coloured=coloured) for line in LINES]
    assert [COLOUR.sub("", line) for line in printed] == [SHOWN, f"a{SHOWN}b{SHOWN}", *[SHOWN] * 6]
    assert [bool(COLOUR.search(line)) for line in printed] == [False, *[coloured] * 7]
