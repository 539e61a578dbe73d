"""Colours on a terminal, plain text everywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO, TypeAlias

from scrapy_koster.protocol.printable import escaped


class Painted(str):
    """Printable text with its colours."""

    __slots__ = ()


Line: TypeAlias = "str | Painted"
"""A line of an answer. A ``str`` may be any text, and is escaped when it is printed."""


class Style:
    """Paints text. The result is printable, except for the colours."""

    def __init__(self, *, coloured: bool) -> None:
        self.coloured = coloured

    def red(self, text: str) -> Painted:
        """Paint what is forbidden or wrong."""
        return self._painted(text, "1;31")

    def yellow(self, text: str) -> Painted:
        """Paint a warning."""
        return self._painted(text, "1;33")

    def green(self, text: str) -> Painted:
        """Paint what is allowed or right."""
        return self._painted(text, "1;32")

    def cyan(self, text: str) -> Painted:
        """Paint a note."""
        return self._painted(text, "36")

    def bold(self, text: str) -> Painted:
        """Paint a heading."""
        return self._painted(text, "1")

    def dim(self, text: str) -> Painted:
        """Paint a detail."""
        return self._painted(text, "2")

    def _painted(self, text: str, code: str) -> Painted:
        text = escaped(text)
        return Painted(f"\x1b[{code}m{text}\x1b[0m" if self.coloured else text)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str | int]]
    ) -> Iterator[Painted]:
        """Yield the lines of a table. Columns of numbers are on the right."""
        cells = [[escaped(str(cell)) for cell in row] for row in (columns, *rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        marks = [
            ">" if all(isinstance(row[at], int) for row in rows) else "<"
            for at in range(len(columns))
        ]
        heading, *lines = (
            "  ".join(map("{:{}{}}".format, row, marks, widths)).rstrip() for row in cells
        )
        yield self.bold(heading)
        yield from map(Painted, lines)


def joined(*parts: Line) -> Painted:
    """Return a line of *parts*, some of which may be painted."""
    return Painted("".join(map(shown, parts)))


def shown(line: Line) -> str:
    """Return *line* as it is printed, without a line end."""
    return line if isinstance(line, Painted) else escaped(line)


def style_for(stream: TextIO, environ: Mapping[str, str]) -> Style:
    """Return the style for *stream*, in the order of precedence that CPython has."""
    if environ.get("NO_COLOR"):
        return Style(coloured=False)
    if environ.get("FORCE_COLOR"):
        return Style(coloured=True)
    return Style(coloured=environ.get("TERM") != "dumb" and stream.isatty())
