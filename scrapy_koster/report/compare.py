"""The changes between the crawls of two reports."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from scrapy_koster.report.html import Table, time_of
from scrapy_koster.report.numbers import OUTCOME_NAMES, worded

if TYPE_CHECKING:
    import sqlite3

_ROWS_MOST = 10_000
_NAMED = f"SELECT *, {worded(OUTCOME_NAMES)} AS named FROM"
_BOTH = f"({_NAMED} new.site) AS n JOIN ({_NAMED} old.site) AS o USING (site)"
_CHANGES = {
    "sites closed": "n.is_whole AND NOT o.is_whole",
    "sites opened": "o.is_whole AND NOT n.is_whole",
    "files changed": "n.digest <> o.digest",
}
_LONE_SITES = {
    "new sites": "SELECT site FROM new.site EXCEPT SELECT site FROM old.site",
    "sites gone": "SELECT site FROM old.site EXCEPT SELECT site FROM new.site",
}
_LONE_LINES = {
    "lines that now refuse": ("NULL, sum(refused)", "new", "old"),
    "lines that no longer refuse": ("sum(refused), NULL", "old", "new"),
}


@dataclass(frozen=True)
class Compared:
    """The changes since an older report."""

    title: str
    counts: dict[str, int]
    tables: list[Table]


def compared_with_old(connection: sqlite3.Connection) -> Compared:
    """Return the changes. Counts are exact, but a table has only its first 10,000 rows."""
    sites = {
        what: connection.execute(
            f"SELECT site, '{what.split()[1]}', o.named, n.named FROM {_BOTH} WHERE {condition}"
        ).fetchall()
        for what, condition in _CHANGES.items()
    }
    lone = {what: connection.execute(query).fetchall() for what, query in _LONE_SITES.items()}
    lines = {
        what: connection.execute(
            f"SELECT site, nullif(line, 0), text, {refused} FROM {these}.rule AS these"
            f" WHERE text > '' AND NOT EXISTS (SELECT 1 FROM {others}.rule AS others"
            " WHERE others.site = these.site AND others.text = these.text) GROUP BY site, text"
        ).fetchall()
        for what, (refused, these, others) in _LONE_LINES.items()
    }
    about = dict(connection.execute("SELECT name, value FROM old.about").fetchall())
    tables = [
        Table(
            "changes",
            "Sites that changed",
            "Sites in both crawls that closed, opened, or changed their robots.txt.",
            {"site": "site", "change": "text", "before": "text", "now": "text"},
            list(chain(*sites.values()))[:_ROWS_MOST],
        ),
        Table(
            "changed_rules",
            "Lines that changed",
            "Lines that refused requests in only one of the two crawls.",
            {"site": "site", "line": "number", "text": "text", "refused before": "number",
             "refused now": "number"},
            list(chain(*lines.values()))[:_ROWS_MOST],
        ),
    ]  # fmt: skip
    return Compared(
        f"{about.get('title')}, {time_of(about.get('written') or 0)} UTC",
        {what: len(rows) for found in (sites, lone, lines) for what, rows in found.items()},
        tables,
    )
