"""What a terminal gets of the lines of `scrapy robots`, and what it does not."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from scrapy_koster.commands.style import Line, Style, joined, shown

COLOUR = re.compile(r"\x1b\[[0-9;]+m")
HOSTILE = (
    "[bold red]a[/] :warning: [link=http://h]b[/link] \\[ "
    "\x1b[2J\x1b[31m\x9b2J\a\r\t\u202e\u2028 \0"
)
SHOWN = (
    r"[bold red]a[/] :warning: [link=http://h]b[/link] \[ "
    r"\x1b[2J\x1b[31m\x9b2J\x07\r\t\u202e\u2028 \x00"
)


def lines(style: Style) -> list[Line]:
    painted = [style.red, style.yellow, style.green, style.cyan, style.bold, style.dim]
    return [
        HOSTILE,
        joined("a", HOSTILE, style.bold("b"), HOSTILE),
        *(paint(HOSTILE) for paint in painted),
    ]


@pytest.mark.parametrize("coloured", [False, True])
def test_what_is_shown_is_text_and_no_markup(coloured: bool) -> None:
    style = Style(coloured=coloured)
    printed = [shown(line) for line in lines(style)]
    assert [COLOUR.sub("", line) for line in printed] == [SHOWN, f"a{SHOWN}b{SHOWN}", *[SHOWN] * 6]
    assert [bool(COLOUR.search(line)) for line in printed] == [False, *[coloured] * 7]


def test_no_crawl_imports_rich() -> None:
    code = "import sys, scrapy_koster; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
