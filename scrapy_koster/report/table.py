"""One table of the page: its columns and its values. The script of the page shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table: its columns and their values."""

    name: str
    title: str
    about: str
    columns: Mapping[str, str]
    """Headings with the classes of their cells: a kind, and "minor" for a column that is left out
    if there is little room. The kinds are text, site, number, time, secs, bytes, and severity
    (3 error, 2 warning, 1 note)."""
    rows: Sequence[Iterable[Any]]
    _: KW_ONLY
    sort: int = 0
    """The column by which it is sorted at first."""

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
