"""Tables of figures, for the terminal and for docs/performance.md."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

PERFORMANCE = Path(__file__).parent.parent / "docs" / "performance.md"
PACKAGES = {
    "Scrapy": "scrapy",
    "Protego": "protego",
    "robotexclusionrulesparser": "robotexclusionrulesparser",
}
BEGIN = "<!-- begin of what `make bench` writes -->\n"
END = "<!-- end of what `make bench` writes -->\n"


@dataclass(frozen=True)
class Table:
    """One table, with what its figures are of."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    unmet: Sequence[str] = field(default_factory=tuple)
    """The goals that this run did not reach."""

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]

        def line(cells: Sequence[str]) -> str:
            first, *others = [cell.ljust(widths[0]) for cell in cells[:1]] + [
                cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)
            ]
            return f"| {' | '.join([first, *others])} |"

        rule = "|".join("-" * (width + 1) + (":" if n else "-") for n, width in enumerate(widths))
        parts = [f"### {self.title}", *([self.note] if self.note else [])]
        table = [line(self.head), f"|{rule}|", *map(line, self.rows)]
        return "\n\n".join([*parts, "\n".join(table), *(f"NOT MET: {goal}" for goal in self.unmet)])


def origin(command: str) -> str:
    """Return when, with what, and how the figures were found."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    packages = [
        f"{package} {version(package)}" for package in PACKAGES if find_spec(PACKAGES[package])
    ]
    today = datetime.now(tz=timezone.utc).date()
    return f"{today.isoformat()}, {', '.join([python, *packages])}: `{command}`"


def write(command: str, tables: Sequence[Table]) -> None:
    """Put *tables* in their place in docs/performance.md."""
    text = PERFORMANCE.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PERFORMANCE} has no place for the figures")
    body = "\n\n".join([origin(command), *map(str, tables)])
    PERFORMANCE.write_text(f"{before}{begin}\n{body}\n\n{end}{after}", encoding="utf-8")
