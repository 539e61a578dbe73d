"""The numbers of a report, out of its file: exact, whatever the page has room for."""

from __future__ import annotations

import csv
import io
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from scrapy_koster.protocol.standing import Access, Standing
from scrapy_koster.report.database import reading
from scrapy_koster.report.tally import ALLOWED, COUNTS, FACTS, REFUSED

if TYPE_CHECKING:
    import sqlite3

Row: TypeAlias = tuple[Any, ...]
Counted: TypeAlias = dict[str, int]

EVERY_SITE_UP_TO = 100_000
"""More sites than these are too many for a page."""
SITES_THAT_MATTER = 10_000
"""So many of them it shows then."""
RULES_MOST = 10_000

_HOUR, _DAY = 3600, 86400
_AGES = (
    ("less than an hour", _HOUR),
    ("an hour to a day", _DAY),
    ("a day to a week", 7 * _DAY),
    ("a week to 30 days", 30 * _DAY),
)
_REFUSED = f"({' + '.join(REFUSED.values())})"
CLOSED_BY = tuple(int(each) for each in Standing if each.access is Access.RESTRICTED)
"""The outcomes of sites that are closed as a whole."""
_ALLOWED = f"({' + '.join(ALLOWED.values())})"
_BY_MATTER = (
    f"ORDER BY {_REFUSED} DESC, outcome IN {CLOSED_BY} DESC, looser DESC, {_ALLOWED} DESC, site"
)
_CHOSEN = "refused_rule + refused_delay + refused_override + refused_usage"
CLOSED = f"(outcome IN {CLOSED_BY} OR {_CHOSEN} > 0 AND {_ALLOWED} = 0)"
"""What holds of sites of which we have nothing: closed as a whole, or all was refused."""
_FIRST_LINES = f"site, line LIMIT {RULES_MOST}"

_BY_RULE = (
    "SELECT text, sum(refused), count(DISTINCT site) FROM rule GROUP BY text"
    " ORDER BY 2 DESC, 3 DESC, 1 LIMIT 1000"
)
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
"""Why requests are refused, by ground."""
_BY_LINE = ("rule", "delay", "usage")
_GROUNDS = {
    "crawl-delay": "delay",
    "request-rate": "delay",
    "content-usage": "usage",
    "content-signal": "usage",
}
"""The ground of a refusal by a line of this field, if it is not a rule."""
_CLOSED_NAMES: dict[int, str] = {
    Standing.RESTRICTED: "restricted",
    Standing.MISSING: "missing",
    Standing.HTML_DISALLOWED: "html",
    Standing.UNAVAILABLE: "unavailable",
}

_STATUSES = "SELECT status, count(*) FROM site GROUP BY 1 ORDER BY 2 DESC"
_USAGE_SITES = (
    "SELECT label, preference, count(DISTINCT site) FROM usage WHERE label > ''"
    " GROUP BY 1, 2 ORDER BY 1, 2"
)

OUTCOME_NAMES = {
    Standing.OBEYED: "obeyed",
    Standing.HTML: "without robots.txt",
    Standing.WITHOUT_RULES: "without robots.txt",
    Standing.WITHOUT_ROBOTS_TXT: "without robots.txt",
    Standing.RESTRICTED: "restricted",
    Standing.MISSING: "restricted",
    Standing.HTML_DISALLOWED: "restricted",
    Standing.UNAVAILABLE: "unavailable",
    Standing.LET_THROUGH: "unavailable",
}
HTML_PAGE = "an HTML page for robots.txt"
LET_THROUGH = "unavailable and let through"
ALLOWED_BECAUSE = {
    Standing.WITHOUT_ROBOTS_TXT: "no robots.txt",
    Standing.WITHOUT_RULES: "a robots.txt without rules",
    Standing.HTML: HTML_PAGE,
    Standing.LET_THROUGH: LET_THROUGH,
}
"""Why requests are allowed to sites that are not obeyed."""
_NAMES: dict[int | None, str] = {
    standing: standing.name.replace("_", " ").lower() for standing in Standing
}
NOT_KNOWN = "not known"
"""The outcome of a site that had not answered when the crawl ended."""


@dataclass(frozen=True)
class Numbers:
    """What a crawl comes to. Texts are safe to print."""

    about: dict[str, Any]
    outcomes: Counted
    standings: Counted
    """The same, told apart more finely."""
    totals: Counted
    """Of each of the COUNTS, over all sites, and of what follows from several."""
    allowed_because: Counted
    statuses: Counted
    ages: Counted
    failures: Counted
    compared: Counted
    minutes: list[Row]
    """minute since the epoch, asked, answered, deferred, allowed, refused"""
    rules: list[Row]
    """site, line, text, refused: the largest first, 10,000 at most"""
    overrides: list[Row]
    """site, text, allowed, refused: what the overrides of the user changed"""
    rules_in_all: int
    hazards: list[Row]
    """site, cause, line and text of RFC 9309's rule, the draft's rule, pages: as ``rules``"""
    closed_by: Counted
    """How many sites were CLOSED: by rules, restricted (401, 403), missing, html, unavailable."""
    why: list[Row]
    """requests, sites, reason, rule: why requests were refused, the largest first, 1,000 at most"""

    usage: dict[str, Counted]
    """How many sites state a preference on any page: by label, then "y" and "n"."""

    @property
    def closed(self) -> int:
        """How many sites were CLOSED."""
        return sum(self.closed_by.values())

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return sum(self.outcomes.values())

    @property
    def refused(self) -> Counted:
        """How many requests were refused, by ground."""
        return {ground: self.totals[column] for ground, column in REFUSED.items()}

    @property
    def allowed(self) -> int:
        """How many requests were allowed."""
        return sum(self.allowed_because.values())

    def to_dict(self) -> dict[str, Any]:
        """Return what ``scrapy robots report --json`` prints."""
        return {
            "sites": self.sites,
            "outcomes": self.outcomes,
            "requests": {"allowed": self.allowed, "refused": self.refused},
            "allowed_because": self.allowed_because,
            "rules": _dicts(self.rules, "site", "line", "text", "refused"),
            "overrides": _dicts(self.overrides, "site", "override", "allowed", "refused"),
            "rules_in_all": self.rules_in_all,
            "hazards": _dicts(self.hazards, "site", "cause", "line", "text", "draft", "pages"),
            "closed": self.closed,
            "closed_by": self.closed_by,
            "why": _dicts(self.why, "requests", "sites", "reason", "rule"),
            "usage": self.usage,
            "statuses": self.statuses,
            "failures": self.failures,
            "ages": self.ages,
            "compared": self.compared,
            "totals": self.totals,
            "about": self.about,
        }


def _dicts(rows: Iterable[Row], *keys: str) -> list[dict[str, Any]]:
    return [dict(zip(keys, row, strict=True)) for row in rows]


def read(path: str) -> Numbers:
    """Return the numbers of a report's file. Raises DatabaseError."""
    with reading(path) as connection:
        return numbers_of(connection)


def numbers_of(connection: sqlite3.Connection) -> Numbers:
    """Return the numbers of a report's file that is open."""
    about: dict[str, Any] = dict(connection.execute("SELECT name, value FROM about").fetchall())
    totals = _totals(connection)
    standings = _counted(connection, "SELECT outcome, count(*) FROM site GROUP BY 1")
    outcomes = dict.fromkeys([*OUTCOME_NAMES.values(), NOT_KNOWN], 0)
    for number, count in standings.items():
        outcomes[OUTCOME_NAMES.get(number, NOT_KNOWN)] += count
    no_record = totals.pop("allowed_no_record")
    return Numbers(
        about=about,
        outcomes=outcomes,
        standings={_NAMES.get(number, NOT_KNOWN): count for number, count in standings.items()},
        totals=totals,
        allowed_because={
            "by its rules": totals[ALLOWED[Standing.OBEYED]] - no_record,
            "no record for this robot": no_record,
            **{why: totals[ALLOWED[standing]] for standing, why in ALLOWED_BECAUSE.items()},
        },
        statuses={
            _status_name(status): count for status, count in _counted(connection, _STATUSES).items()
        },
        ages=_ages(connection, int(about.get("written") or 0)),
        failures=_counted(connection, "SELECT reason, attempts FROM failure ORDER BY 2 DESC, 1"),
        compared={name: int(about.get(name) or 0) for name in ("agree", "stricter", "looser")},
        minutes=_rows(connection, "SELECT * FROM minute ORDER BY minute"),
        rules=_rows(connection, f"SELECT * FROM rule ORDER BY refused DESC, {_FIRST_LINES}"),
        overrides=_rows(
            connection, "SELECT * FROM override ORDER BY allowed + refused DESC, site, text"
        ),
        rules_in_all=_number(connection, "SELECT count(*) FROM rule"),
        hazards=_rows(connection, f"SELECT * FROM hazard ORDER BY pages DESC, {_FIRST_LINES}"),
        closed_by=_closed_by(connection),
        why=_why(connection, totals),
        usage=_usage(connection),
    )


def _closed_by(connection: sqlite3.Connection) -> Counted:
    rows = connection.execute(f"SELECT outcome, count(*) FROM site WHERE {CLOSED} GROUP BY 1")
    found = dict.fromkeys(("rules", *_CLOSED_NAMES.values()), 0)
    for outcome, count in rows:
        found[_CLOSED_NAMES.get(outcome, "rules")] += count
    return found


def _why(connection: sqlite3.Connection, totals: Counted) -> list[Row]:
    """Group what was refused: by rule over all sites, and by reason where no rule decided."""
    groups: list[Row] = [
        (requests, sites, _reason_of(text), text)
        for text, requests, sites in connection.execute(_BY_RULE)
    ]
    for ground, reason in REASONS.items():
        if (column := REFUSED.get(ground)) and ground not in _BY_LINE:
            sites = _number(connection, f"SELECT count(*) FROM site WHERE {column} > 0")
            if totals[column]:
                groups.append((totals[column], sites, reason, ""))
    return sorted(groups, key=lambda group: (-group[0], -group[1], group[2:]))


def _reason_of(text: str) -> str:
    field = text.partition(":")[0].lower()
    return REASONS[_GROUNDS.get(field, "rule")]


def _usage(connection: sqlite3.Connection) -> dict[str, Counted]:
    found: dict[str, Counted] = {}
    for label, preference, sites in connection.execute(_USAGE_SITES):
        found.setdefault(label, {"y": 0, "n": 0})[preference] = sites
    return found


def _totals(connection: sqlite3.Connection) -> Counted:
    derived = {
        "deferred_now": "deferred > 0 AND NOT resumed",
        "sites_given_up": "given_up > 0",
        "sites_deferred": "deferrals > 0",
        "redirects": "redirect > ''",
        "hazards": "looser > 0 OR cut > 0",
        "allowed_no_record": "allowed_rule * (record_line = 0)",
        "allowed_restricted": "allowed_none * (status IN (401, 403))",
    }
    sums = [*(f"sum({name})" for name in COUNTS), *(f"sum({what})" for what in derived.values())]
    row = connection.execute(f"SELECT {', '.join(sums)} FROM site").fetchone()
    return {name: int(n or 0) for name, n in zip((*COUNTS, *derived), row, strict=True)}


def _status_name(status: int | None) -> str:
    if status is None:
        return "no result yet"
    return f"HTTP {status}" if status else "no answer"


def _ages(connection: sqlite3.Connection, now: int) -> Counted:
    names = [name for name, _ in _AGES] + ["older"]
    case = " ".join(f"WHEN ? - fetched < {secs} THEN {n}" for n, (_, secs) in enumerate(_AGES))
    query = (
        f"SELECT CASE {case} ELSE {len(_AGES)} END, count(*) FROM site"
        " WHERE fetched IS NOT NULL GROUP BY 1"
    )
    found = dict(connection.execute(query, [now] * len(_AGES)).fetchall())
    return {name: found.get(n, 0) for n, name in enumerate(names)}


def _rows(connection: sqlite3.Connection, query: str) -> list[Row]:
    return [tuple(row) for row in connection.execute(query)]


def _counted(connection: sqlite3.Connection, query: str) -> dict[Any, int]:
    return dict(connection.execute(query).fetchall())


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


def statements_of(connection: sqlite3.Connection) -> list[Row]:
    """Return the lines that state preferences: site, line, text, what they state; 10,000 at most.

    In the order of the sites and their lines.
    """
    query = (
        "SELECT site, line, text, group_concat(label || '=' || preference, ', ')"
        " FILTER (WHERE label > '') FROM usage GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        f" LIMIT {RULES_MOST}"
    )
    return _rows(connection, query)


# The sites one by one.

SITE_COLUMNS = ("site", *FACTS, *COUNTS)
_SITES = f"SELECT {', '.join(SITE_COLUMNS)} FROM site"


def sites_of(connection: sqlite3.Connection, most: int) -> list[sqlite3.Row]:
    """Return the *most* sites that matter most: refused most, closed, hazardous, allowed most."""
    return connection.execute(f"{_SITES} {_BY_MATTER} LIMIT ?", (most,)).fetchall()


_TIMES = ("fetched", "expires", "deferred", "resumed")
_TEXTS = ("record", "delay", "redirect", "reason", "digest")


def csv_lines(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield a line of names, and one for each site, as CSV without line ends."""
    columns = ", ".join(map(_csv_cell, SITE_COLUMNS))
    rows = connection.execute(f"SELECT {columns} FROM site ORDER BY site")
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="")
    for row in chain([SITE_COLUMNS], rows):
        writer.writerow(row)
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _csv_cell(name: str) -> str:
    """Return the expression for a column: a million rows are no work for Python."""
    if name == "outcome":
        cases = " ".join(f"WHEN {int(each)} THEN '{of}'" for each, of in OUTCOME_NAMES.items())
        return f"CASE outcome {cases} ELSE '{NOT_KNOWN}' END"
    if name in _TIMES:
        return f"CASE WHEN {name} > 0 THEN strftime('%Y-%m-%dT%H:%M:%SZ', {name}, 'unixepoch') END"
    if name in _TEXTS:
        # A spreadsheet takes a text that begins so for a formula.
        return f"CASE WHEN {name} GLOB '[=+@-]*' THEN '''' || {name} ELSE {name} END"
    return name


def samples_of(
    connection: sqlite3.Connection, sites: Container[str]
) -> dict[str, dict[tuple[str, int], list[str]]]:
    """Return the sample URLs of *sites*, by kind and line."""
    found: dict[str, dict[tuple[str, int], list[str]]] = {}
    rows = connection.execute("SELECT site, kind, line, url FROM sample ORDER BY rank")
    for site, kind, line, url in rows:
        if site in sites:
            whole = f"{site}{url}" if url[:1] == "/" else url
            found.setdefault(site, {}).setdefault((kind, line), []).append(whole)
    return found
