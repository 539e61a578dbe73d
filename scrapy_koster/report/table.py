"""A table of a page. The script of the page shows the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """The columns and the values of a table."""

    name: str
    title: str
    about: str
    columns: Mapping[str, str]
    """Headings with the classes of their cells: a kind, and "minor" for a column that narrow pages
    omit. The kinds are text, site, number, time, secs, bytes, and severity
    (3 error, 2 warning, 1 note)."""
    rows: Sequence[Iterable[Any]]
    _: KW_ONLY
    sort: int = 0
    """The number of the column to sort by, from 0."""

    def __len__(self) -> int:
        return len(self.rows)

    def packed(self) -> dict[str, Any]:
        """Return the table for the script of the page."""
        return {
            "heads": list(self.columns),
            "kinds": [key.split()[0] for key in self.columns.values()],
            "keys": list(self.columns.values()),
            "sort": self.sort,
            "values": list(zip(*self.rows, strict=True)),
        }
