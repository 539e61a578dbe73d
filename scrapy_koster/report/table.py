"""One table of the page: its columns, its values, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scrapy_koster.protocol.wording import utc

SHOWN_FIRST = 25
"""Rows of a table that are in the page itself, for those who have no JavaScript."""


@dataclass(frozen=True)
class Column:
    """A column: its heading, and what its values are."""

    head: str
    kind: str = "text"
    """text, site, number, time, secs, bytes, or severity: 3 error, 2 warning, 1 note"""
    minor: bool = False
    """Whether it is left out where there is little room."""

    @property
    def key(self) -> str:
        """The class of its cells."""
        return f"{self.kind} minor" if self.minor else self.kind


@dataclass
class Table:
    """A table, by columns."""

    name: str
    title: str
    about: str
    columns: list[Column]
    sort: int = 0
    """The column by which it is sorted at first; where that is of numbers, the largest first."""
    values: list[list[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = [[] for _ in self.columns]

    def __len__(self) -> int:
        return len(self.values[0])

    def add(self, *row: Any) -> None:
        """Add a row."""
        for column, value in zip(self.values, row, strict=True):
            column.append(value)

    def first(self) -> list[list[str]]:
        """Return the rows that stand in the page itself, as they are shown."""
        rows = zip(*(column[:SHOWN_FIRST] for column in self.values), strict=True)
        kinds = [column.kind for column in self.columns]
        return [
            [formatted(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in rows
        ]

    def packed(self) -> dict[str, Any]:
        """Return what the script of the page is given."""
        return {
            "heads": [column.head for column in self.columns],
            "kinds": [column.kind for column in self.columns],
            "keys": [column.key for column in self.columns],
            "sort": self.sort,
            "values": self.values,
        }


def formatted(value: Any, kind: str) -> str:
    """Return a value as the page shows it. The script does the same."""
    if value is None or value == "":
        return ""
    return _FORMATS.get(kind, str)(value)


SEVERITIES = ("", "note", "warning", "error")


def duration(secs: float) -> str:
    """Return a number of seconds in a unit that can be grasped."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if secs >= 2 * size:
            return f"{secs / size:.0f} {unit}"
    return f"{secs:.0f} s"


def _size(count: int) -> str:
    return f"{count:,} B" if count < 10_000 else f"{count / 1000:,.0f} kB"


_FORMATS: dict[str, Callable[[Any], str]] = {
    "number": lambda count: f"{count:,}",
    "time": lambda secs: utc(secs)[:16].replace("T", " "),
    "secs": duration,
    "bytes": _size,
    "severity": lambda grave: SEVERITIES[grave],
}
