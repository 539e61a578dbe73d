"""Colours on a terminal, plain text everywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from shutil import get_terminal_size
from typing import TextIO, TypeAlias

from scrapy_koster.protocol.printable import escaped

_UNLIMITED = 100_000


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
        """Yield the lines of a table; with colours, its cells are folded to fit the terminal.

        Columns of numbers are on the right. Needs the extra ``tools``.
        """
        # The commands without a table work without rich.
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for at, column in enumerate(columns):
            is_number = all(isinstance(row[at], int) for row in rows)
            table.add_column(column, overflow="fold", justify="right" if is_number else "left")
        for row in rows:
            table.add_row(*(Text(escaped(str(cell))) for cell in row))
        console = Console(
            file=StringIO(),
            force_terminal=self.coloured,
            color_system="standard" if self.coloured else None,
            force_jupyter=False,
            width=get_terminal_size().columns if self.coloured else _UNLIMITED,
        )
        with console.capture() as captured:
            console.print(table)
        for line in captured.get().splitlines():
            yield Painted(line.rstrip())


def joined(*parts: Line) -> Painted:
    """Return a line of *parts*, some of which may be painted."""
    return Painted("".join(map(shown, parts)))


def shown(line: Line) -> str:
    """Return *line* as it is printed, without a line end."""
    return line if isinstance(line, Painted) else escaped(line)


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a line for each of *rows*, with the cells in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def style_for(stream: TextIO, environ: Mapping[str, str]) -> Style:
    """Return the style for *stream*, in the order of precedence that CPython has."""
    if environ.get("NO_COLOR"):
        return Style(coloured=False)
    if environ.get("FORCE_COLOR"):
        return Style(coloured=True)
    return Style(coloured=environ.get("TERM") != "dumb" and stream.isatty())
