"""One table of the page: its columns, its values, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scrapy_koster.protocol.wording import utc

SHOWN_FIRST = 25
"""Rows of a table that are in the page itself, for those who have no JavaScript."""


class Table:
    """A table: its columns and their values."""

    def __init__(
        self,
        name: str,
        title: str,
        about: str,
        columns: Mapping[str, str],
        rows: Iterable[Iterable[Any]],
        *,
        sort: int = 0,
    ) -> None:
        """*columns* are headings with the classes of their cells: a kind, and "minor" for a column
        that is left out if there is little room. The kinds are text, site, number, time, secs,
        bytes, and severity (3 error, 2 warning, 1 note).

        *sort* is the column by which the table is sorted at first.
        """
        self.name = name
        self.title = title
        self.about = about
        self.columns = columns
        self.values = list(map(list, zip(*rows, strict=True))) or [[] for _ in columns]
        self._sort = sort
        self._kinds = [key.split()[0] for key in columns.values()]

    def __len__(self) -> int:
        return len(self.values[0])

    def first(self) -> list[list[tuple[str, str]]]:
        """Return the rows that are in the page itself: the class and the text of each cell."""
        rows = zip(*(column[:SHOWN_FIRST] for column in self.values), strict=True)
        texts = [map(formatted, row, self._kinds) for row in rows]
        return [list(zip(self.columns.values(), row, strict=True)) for row in texts]

    def packed(self) -> dict[str, Any]:
        """Return the table for the script of the page."""
        return {
            "heads": list(self.columns),
            "kinds": self._kinds,
            "keys": list(self.columns.values()),
            "sort": self._sort,
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
