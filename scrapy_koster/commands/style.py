"""Lines of an answer, with colours for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TextIO, TypeAlias

from scrapy_koster.protocol.printable import escaped


@dataclass(frozen=True, slots=True)
class Painted:
    """Text with a colour."""

    colour: str
    """The parameters of the terminal's escape sequence."""
    text: str


red = partial(Painted, "1;31")
yellow = partial(Painted, "1;33")
green = partial(Painted, "1;32")
cyan = partial(Painted, "36")
bold = partial(Painted, "1")
dim = partial(Painted, "2")

Part: TypeAlias = "str | Painted"
Line: TypeAlias = "Part | tuple[Part, ...]"
"""A line of an answer. The text can be from the network: ``shown`` escapes the text."""


def shown(line: Line, *, coloured: bool) -> str:
    """Return *line* as printable text, with escape sequences if *coloured*."""
    return "".join(
        f"\x1b[{part.colour}m{escaped(part.text)}\x1b[0m"
        if coloured and isinstance(part, Painted)
        else escaped(part if isinstance(part, str) else part.text)
        for part in (line if isinstance(line, tuple) else (line,))
    )


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "2 errors"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def table(columns: Sequence[str], rows: Sequence[Sequence[str | int]]) -> Iterator[Line]:
    """Yield the lines of a table. Columns of numbers are aligned to the right."""
    cells = [[escaped(str(cell)) for cell in row] for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    signs = [
        ">" if all(isinstance(row[at], int) for row in rows) else "<" for at in range(len(columns))
    ]
    heading, *lines = (
        "  ".join(map("{:{}{}}".format, row, signs, widths)).rstrip() for row in cells
    )
    yield bold(heading)
    yield from lines


def takes_colours(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether *stream* takes colours: by NO_COLOR, FORCE_COLOR, TERM, then isatty()."""
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or (environ.get("TERM") != "dumb" and stream.isatty())
