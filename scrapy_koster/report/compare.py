"""The changes between the crawls of two reports."""

import sqlite3
from dataclasses import dataclass

from scrapy_koster.report.html import Table, time_of
from scrapy_koster.report.numbers import OUTCOME_NAMES, worded

_ROWS_MOST = 10_000
_NAMED = f"SELECT *, {worded(OUTCOME_NAMES)} AS named FROM"
_BOTH = f"({_NAMED} new.site) AS n JOIN ({_NAMED} old.site) AS o USING (site)"


def _sites(change: str, condition: str) -> str:
    return f"SELECT site, '{change}', o.named, n.named FROM {_BOTH} WHERE {condition}"


def _lines(refused: str, these: str, others: str) -> str:
    return (
        f"SELECT site, nullif(line, 0), text, {refused} FROM {these}.rule AS these"
        f" WHERE text > '' AND NOT EXISTS (SELECT 1 FROM {others}.rule AS others"
        " WHERE others.site = these.site AND others.text = these.text) GROUP BY site, text"
    )


_QUERIES = {
    "sites closed": _sites("closed", "n.is_whole AND NOT o.is_whole"),
    "sites opened": _sites("opened", "o.is_whole AND NOT n.is_whole"),
    "files changed": _sites("changed", "n.digest <> o.digest"),
    "new sites": "SELECT site FROM new.site EXCEPT SELECT site FROM old.site",
    "sites gone": "SELECT site FROM old.site EXCEPT SELECT site FROM new.site",
    "lines that now refuse": _lines("NULL, sum(refused)", "new", "old"),
    "lines that no longer refuse": _lines("sum(refused), NULL", "old", "new"),
}


@dataclass(frozen=True)
class Compared:
    """The changes since an older report."""

    title: str
    counts: dict[str, int]
    tables: list[Table]


def compared_with_old(connection: sqlite3.Connection) -> Compared:
    """Return the changes. Counts are exact, but a table has only its first 10,000 rows."""
    found = {what: connection.execute(query).fetchall() for what, query in _QUERIES.items()}
    closed, opened, changed, _, _, refusing, no_longer = found.values()
    about = dict(connection.execute("SELECT name, value FROM old.about").fetchall())
    tables = [
        Table(
            "changes",
            "Sites that changed",
            "Sites in both crawls that closed, opened, or changed their robots.txt.",
            {"site": "site", "change": "text", "before": "text", "now": "text"},
            [*closed, *opened, *changed][:_ROWS_MOST],
        ),
        Table(
            "changed_rules",
            "Lines that changed",
            "Lines that refused requests in only one of the two crawls.",
            {"site": "site", "line": "number", "text": "text", "refused before": "number",
             "refused now": "number"},
            [*refusing, *no_longer][:_ROWS_MOST],
        ),
    ]  # fmt: skip
    return Compared(
        f"{about.get('title')}, {time_of(about.get('written') or 0)} UTC",
        {what: len(rows) for what, rows in found.items()},
        tables,
    )
