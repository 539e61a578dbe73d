"""The exact numbers of a report, from its file."""

import csv
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

from scrapy_koster.protocol.site_status import SiteStatus
from scrapy_koster.protocol.usage import USE
from scrapy_koster.report.database import reading
from scrapy_koster.report.tally import ALLOWED, COUNTS, FACTS, REFUSED

Counted: TypeAlias = dict[str, int]

EVERY_SITE_UP_TO = 100_000
"""A page has every site of a crawl with at most this number of sites."""
SITES_THAT_MATTER = 10_000
"""Number of sites on the page if a crawl has more than EVERY_SITE_UP_TO."""
RULES_MOST = 10_000

BY_MATTER = "ORDER BY refused DESC, is_whole DESC, looser DESC, allowed DESC, site"
BY_LINE = "ground IN ('rule', 'delay', 'usage')"
"""SQL condition for refusals by a line of a robots.txt."""

REASONS = {
    "rule": "a rule",
    "delay": "a Crawl-delay that is too long",
    "usage": "a usage preference",
    "override": "your override",
    "restricted": "HTTP 401 or 403",
    "missing": "no robots.txt (KOSTER_MISSING)",
    "html": "an HTML page as robots.txt (KOSTER_HTML_ROBOTSTXT)",
    "unavailable": "robots.txt unavailable",
}
"""The reasons for refusals, by ground."""
_CLOSED_NAMES = {each: each.ground.value for each in SiteStatus if each.is_closed}

_STATUSES = (
    "SELECT CASE WHEN status IS NULL THEN 'no result yet' WHEN status = 0 THEN 'no answer'"
    " ELSE 'HTTP ' || status END, count(*) FROM site GROUP BY 1 ORDER BY 2 DESC"
)
_USAGE_SITES = (
    "SELECT label, preference, count(DISTINCT site) FROM usage WHERE label > ''"
    " GROUP BY 1, 2 ORDER BY 1, 2"
)

OUTCOME_NAMES = {
    SiteStatus.OBEYED: "obeyed",
    SiteStatus.HTML: "without robots.txt",
    SiteStatus.WITHOUT_RULES: "without robots.txt",
    SiteStatus.WITHOUT_ROBOTS_TXT: "without robots.txt",
    SiteStatus.RESTRICTED: "restricted",
    SiteStatus.MISSING: "restricted",
    SiteStatus.HTML_DISALLOWED: "restricted",
    SiteStatus.UNAVAILABLE: "unavailable",
    SiteStatus.LET_THROUGH: "unavailable",
}
ALLOWED_BECAUSE = {
    SiteStatus.WITHOUT_ROBOTS_TXT: "no robots.txt",
    SiteStatus.WITHOUT_RULES: "a robots.txt without rules",
    SiteStatus.HTML: "an HTML page for robots.txt",
    SiteStatus.LET_THROUGH: "unavailable and let through",
}
"""The reasons for allowed requests to sites whose rules do not exist or are unknown."""
NOT_KNOWN = "not known"
"""The outcome of a site without a known status when the counts were saved."""


def worded(words: Mapping[Any, str], *, column: str = "outcome", other: str = NOT_KNOWN) -> str:
    """Return the SQL expression that turns the value of a column into its word in *words*."""
    values = {getattr(key, "value", key): word for key, word in words.items()}
    cases = " ".join(f"WHEN {value!r} THEN '{word}'" for value, word in values.items())
    return f"CASE {column} {cases} ELSE '{other}' END"


_WHY = (
    f"SELECT sum(refused) AS requests, count(DISTINCT site) AS sites,"
    f" {worded(REASONS, column='ground')} AS reason, text AS rule FROM rule GROUP BY ground, text"
    " ORDER BY requests DESC, sites DESC, ground, text LIMIT 1000"
)
_RULES = (
    f"SELECT site, line, text, refused FROM rule WHERE {BY_LINE}"
    f" ORDER BY refused DESC, site, line LIMIT {RULES_MOST}"
)
_OVERRIDES = (
    "SELECT site, text AS override, allowed, refused FROM override"
    " ORDER BY allowed + refused DESC, site, text"
)
_HAZARDS = (
    "SELECT site, cause, line, text, allows AS draft, pages FROM hazard"
    f" ORDER BY pages DESC, site, line LIMIT {RULES_MOST}"
)


def read(path: str) -> dict[str, Any]:
    """Return the numbers of a report's file. Raises DatabaseError."""
    with reading(path) as connection:
        return numbers_of(connection)


def numbers_of(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the numbers of the open file of a report, as ``scrapy robots report --json`` does.

    Texts are printable. Of long lists, the rows with the largest numbers are returned.
    """
    totals = _totals(connection)
    no_record = totals.pop("allowed_no_record")
    allowed_because = {
        "by its rules": totals[ALLOWED[SiteStatus.OBEYED]] - no_record,
        "no record for this robot": no_record,
        **{why: totals[ALLOWED[status]] for status, why in ALLOWED_BECAUSE.items()},
    }
    outcomes = _sites_by(connection, worded(OUTCOME_NAMES), [*OUTCOME_NAMES.values(), NOT_KNOWN])
    closed_by = _sites_by(
        connection,
        worded(_CLOSED_NAMES, other="rules"),
        ["rules", *_CLOSED_NAMES.values()],
        where="is_closed",
    )
    return {
        "about": _dict(connection, "SELECT name, value FROM about"),
        "outcomes": outcomes,
        # Sums over all sites: of the columns COUNTS, and of the expressions in ``_totals``.
        "totals": totals,
        "allowed_because": allowed_because,
        "statuses": _dict(connection, _STATUSES),
        "failures": _dict(connection, "SELECT reason, attempts FROM failure ORDER BY 2 DESC, 1"),
        "rules": _rows(connection, _RULES),
        "overrides": _rows(connection, _OVERRIDES),
        "hazards": _rows(connection, _HAZARDS),
        "closed_by": closed_by,
        "why": _rows(connection, _WHY),
        "usage": _usage(connection),
        "sites": sum(outcomes.values()),
        "requests": {
            "allowed": sum(allowed_because.values()),
            "refused": {ground: totals[column] for ground, column in REFUSED.items()},
        },
        "closed": sum(closed_by.values()),
    }


def _sites_by(
    connection: sqlite3.Connection, what: str, names: Iterable[str], where: str = "TRUE"
) -> Counted:
    """Return the number of sites by the SQL expression *what*, 0 for *names* without sites."""
    query = f"SELECT {what}, count(*) FROM site WHERE {where} GROUP BY 1"
    return {**dict.fromkeys(names, 0), **_dict(connection, query)}


def _usage(connection: sqlite3.Connection) -> dict[str, Counted]:
    """Return the number of sites that state a preference in robots.txt, by label and preference."""
    found: dict[str, Counted] = {}
    for label, preference, sites in connection.execute(_USAGE_SITES):
        found.setdefault(label, {} if label == USE else {"y": 0, "n": 0})[preference] = sites
    return found


def _totals(connection: sqlite3.Connection) -> Counted:
    sums = {name: name for name in COUNTS} | {
        "deferred_now": "deferred > 0 AND NOT resumed",
        "sites_given_up": "given_up > 0",
        "allowed_no_record": "allowed_rule * (record_line = 0)",
    }
    columns = ", ".join(f"ifnull(sum({what}), 0) AS {name}" for name, what in sums.items())
    return dict(connection.execute(f"SELECT {columns} FROM site").fetchone())


def _rows(connection: sqlite3.Connection, query: str) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(query)]


def _dict(connection: sqlite3.Connection, query: str) -> dict[Any, Any]:
    """Return the rows of a query with two columns as a dict."""
    return dict(connection.execute(query).fetchall())


# The sites as CSV.

_SITE_COLUMNS = ("site", *FACTS, *COUNTS)
_TIMES = ("fetched", "expires", "deferred", "resumed")


class _Line:
    """A file for a CSV writer. As ``write`` returns the line, ``writerow`` returns it, too."""

    def write(self, line: str) -> str:
        return line


def csv_lines(connection: sqlite3.Connection) -> Iterator[str]:
    """Return CSV lines without line ends: the names of the columns, and the sites."""
    columns = ", ".join(map(_csv_cell, _SITE_COLUMNS))
    rows = connection.execute(f"SELECT {columns} FROM site ORDER BY site")
    return map(csv.writer(_Line(), lineterminator="").writerow, chain([_SITE_COLUMNS], rows))


def _csv_cell(name: str) -> str:
    """Return the SQL expression for the cells of a column."""
    if name == "outcome":
        return worded(OUTCOME_NAMES)
    if name in _TIMES:
        return f"CASE WHEN {name} > 0 THEN strftime('%Y-%m-%dT%H:%M:%SZ', {name}, 'unixepoch') END"
    # A spreadsheet would run a text with this beginning as a formula.
    is_formula = f"typeof({name}) = 'text' AND {name} GLOB '[=+@-]*'"
    return f"CASE WHEN {is_formula} THEN '''' || {name} ELSE {name} END"
