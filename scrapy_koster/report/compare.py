"""Two reports side by side: what changed between the crawls."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from scrapy_koster.report.numbers import CLOSED_BY, NOT_KNOWN, OUTCOME_NAMES, numbers_of
from scrapy_koster.report.table import Table, formatted

if TYPE_CHECKING:
    import sqlite3

_ROWS_MOST = 10_000
_SITES = "SELECT site, outcome, crc FROM site ORDER BY site"
_RULES = (
    "SELECT site || ' ' || text, site, line, text, sum(refused) FROM rule GROUP BY 1 ORDER BY 1"
)


@dataclass(frozen=True)
class Compared:
    """What is otherwise than in an older report."""

    title: str
    counts: dict[str, int]
    tables: list[Table]


def compared_with(old: sqlite3.Connection, new: sqlite3.Connection) -> Compared:
    """Return what became otherwise; the counts are exact, the tables have 10,000 rows at most."""
    before = numbers_of(old)
    counts = dict.fromkeys(
        ("sites closed", "sites opened", "files changed", "new sites", "sites gone",
         "lines that now refuse", "lines that no longer refuse"),
        0,
    )  # fmt: skip
    sites: list[tuple[Any, ...]] = []
    for then, now in _pairs(old.execute(_SITES), new.execute(_SITES)):
        for what in _changes(then, now):
            counts[what] += 1
            if then and now and len(sites) < _ROWS_MOST:
                sites.append((now[0], what.split()[1], _named(then[1]), _named(now[1])))
    rules: list[tuple[Any, ...]] = []
    for then, now in _pairs(old.execute(_RULES), new.execute(_RULES)):
        if then is None or now is None:
            counts["lines that now refuse" if now else "lines that no longer refuse"] += 1
            _, site, line, text, _ = now or then
            if len(rules) < _ROWS_MOST:
                rules.append((site, line or None, text, then and then[4], now and now[4]))
    about = before.about
    title = f"{about.get('title')}, {formatted(about.get('written'), 'time')} UTC"
    tables = [
        Table(
            "changes",
            "Sites that changed",
            "Sites in both crawls that closed, opened, or changed their robots.txt.",
            {"site": "site", "change": "text", "before": "text", "now": "text"},
            sites,
        ),
        Table(
            "changed_rules",
            "Lines that changed",
            "Lines that refused requests in only one of the two crawls.",
            {"site": "site", "line": "number", "text": "text", "refused before": "number",
             "refused now": "number"},
            rules,
        ),
    ]  # fmt: skip
    return Compared(title, counts, tables)


def _pairs(old: Iterator[Any], new: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of both that have the same first value, None for what is in one alone."""
    keyed = heapq.merge(
        ((row[0], 0, row) for row in old), ((row[0], 1, row) for row in new), key=itemgetter(0)
    )
    for _, rows in groupby(keyed, key=itemgetter(0)):
        pair = {which: row for _, which, row in rows}
        yield pair.get(0), pair.get(1)


def _changes(then: Any, now: Any) -> Iterator[str]:
    if then is None:
        yield "new sites"
    elif now is None:
        yield "sites gone"
    else:
        was, is_now = then[1] in CLOSED_BY, now[1] in CLOSED_BY
        if was != is_now:
            yield "sites closed" if is_now else "sites opened"
        if None not in (then[2], now[2]) and then[2] != now[2]:
            yield "files changed"


def _named(outcome: Any) -> str:
    return OUTCOME_NAMES.get(outcome, NOT_KNOWN)
