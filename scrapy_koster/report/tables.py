"""The tables of the page: the columns, and the queries of the rows."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from scrapy_koster.checker.checks import Severity
from scrapy_koster.protocol.site_status import SiteStatus
from scrapy_koster.report.files import GRAVITY, File
from scrapy_koster.report.html import Table
from scrapy_koster.report.numbers import BY_LINE, BY_MATTER, RULES_MOST, worded
from scrapy_koster.report.tally import HAZARD, OVERRIDDEN, START, USAGE

_OUTCOME = worded({status: status.words for status in SiteStatus})
_TOP_LINE = (
    "(SELECT iif(line, line || ': ', '') || text FROM rule"
    f" WHERE rule.site = site.site AND {BY_LINE} ORDER BY refused DESC LIMIT 1)"
)
_STATED = (
    "SELECT site, line, text, group_concat(label || '=' || preference, ', ')"
    " FILTER (WHERE label > '') AS stated FROM usage GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    f" LIMIT {RULES_MOST}"
)


def samples_of(connection: sqlite3.Connection) -> dict[str, list[Any]]:
    """Return the kind, the line and the URL of the samples, by site."""
    found: dict[str, list[Any]] = {}
    for site, *sample in connection.execute("SELECT site, kind, line, url FROM sample"):
        found.setdefault(site, []).append(sample)
    return found


def _sample(of: str, *kinds: str, line: str = "0") -> str:
    """Return the SQL expression for a sample URL of these *kinds*, for a row of the table *of*."""
    these = ", ".join(f"'{kind}'" for kind in kinds)
    return (
        f"(SELECT url FROM sample WHERE sample.site = {of}.site AND kind IN ({these})"
        f" AND sample.line = {line} LIMIT 1)"
    )


def tables_of(
    connection: sqlite3.Connection, numbers: dict[str, Any], stored: Mapping[str, File], most: int
) -> list[Table]:
    """Return the tables, with *most* sites at most. *stored* has the stored files by site."""
    now = int(numbers["about"].get("written") or 0)

    def table(name: str, title: str, about: str, columns: Mapping[str, str], query: str) -> Table:
        rows = connection.execute(f"{query} LIMIT {most}").fetchall()
        return Table(name, title, about, columns, rows)

    sites = connection.execute(
        f"SELECT site, {_OUTCOME}, refused, allowed, {_TOP_LINE}, status, reason, asked, fetched,"
        " expires, bytes, record, max(ifnull(nullif(resumed, 0), ?) - nullif(deferred, 0), 0),"
        f" delay, redirect, nofollow, noindex FROM site {BY_MATTER} LIMIT ?",
        (now, most),
    )
    return [
        Table(
            "why",
            "Why requests were refused",
            "Refused requests of all sites, by reason and rule.",
            {"requests": "number", "sites": "number", "reason": "text", "rule": "text"},
            [row.values() for row in numbers["why"]],
        ),
        table(
            "closed",
            "Closed sites",
            "Sites where every request was refused by rules, or whose robots.txt returned HTTP 401"
            " or 403, is missing (KOSTER_MISSING), is an HTML page (KOSTER_HTML_ROBOTSTXT), or was"
            " unavailable.",
            {"refused": "number", "site": "site", "how": "text", "why": "text",
             "allowed": "number", "expires": "time"},
            f"SELECT refused, site, iif(is_whole, {_OUTCOME}, 'every request refused'),"
            " iif(is_whole, ifnull(nullif(reason, ''), 'HTTP ' || status),"
            f" ifnull('line ' || {_TOP_LINE}, 'your override')), allowed, expires"
            f" FROM site WHERE is_closed {BY_MATTER}",
        ),
        table(
            "rules",
            "Lines that refused requests",
            "Each line of a robots.txt that has refused a request, and a sample URL.",
            {"refused": "number", "site": "site", "line": "number", "text": "text",
             "sample": "text"},
            "SELECT refused, site, nullif(line, 0), text,"
            f" {_sample('rule', 'rule', 'delay', 'usage', line='rule.line')}"
            f" FROM rule WHERE {BY_LINE} ORDER BY 1 DESC, site, line",
        ),
        table(
            "overrides",
            "Your overrides",
            "KOSTER_OVERRIDES entries that changed the decision on a request.",
            {"allowed": "number", "refused": "number", "site": "site",
             "reason and expiry": "text", "sample": "text"},
            "SELECT allowed, refused, site, text,"
            f" {_sample('override', OVERRIDDEN, 'override')}"
            " FROM override ORDER BY allowed + refused DESC, site, text",
        ),
        table(
            "starts",
            "Refused start requests",
            "If they are refused, pages linked only from there are not found.",
            {"refused": "number", "site": "site", "sample": "text"},
            f"SELECT start_refused, site, {_sample('site', START)}"
            " FROM site WHERE start_refused > 0 ORDER BY 1 DESC, site",
        ),
        Table(
            "hazards",
            "Hazards",
            "Files whose authors may have meant something else, the most severe first. Findings"
            f" are a sample: {len(stored):,} stored files were checked with scrapy robots check.",
            {"severity": "severity", "requests allowed": "number", "site": "site", "what": "text"},
            _hazards(connection, stored),
        ),
        table(
            "looser",
            "Allowed pages that RFC 9309 or a hidden rule forbids",
            'Your parser allows them. KOSTER_PARSER = "scrapy_koster.StrictestRobotParser" obeys'
            " both standards, and hidden rules.",
            {"pages": "number", "site": "site", "cause": "text", "forbidden by": "text",
             "allowed by": "text", "sample": "text"},
            "SELECT pages, site, cause, line || ': ' || text, allows,"
            f" {_sample('hazard', HAZARD, line='hazard.line')}"
            " FROM hazard ORDER BY 1 DESC, site, line",
        ),
        table(
            "stricter",
            "Refused pages that RFC 9309 allows",
            'Lines by which only your parser refuses them. KOSTER_PARSER ='
            ' "scrapy_koster.Rfc9309RobotParser" allows them.',
            {"pages": "number", "site": "site", "line": "number", "text": "text",
             "sample": "text"},
            f"SELECT stricter, site, line, text, {_sample('rule', 'rule', line='rule.line')}"
            " FROM rule WHERE stricter > 0 ORDER BY 1 DESC, site, line",
        ),
        table(
            "usage",
            "Usage preferences",
            "What sites state in robots.txt about the use of their pages, with the dropped items"
            " and refused requests of each site.",
            {"site": "site", "line": "number", "statement": "text", "preference": "text",
             "items dropped": "number", "refused": "number"},
            f"WITH stated AS ({_STATED})"
            f" SELECT site, line, text, stated, {USAGE}, refused_usage"
            " FROM stated LEFT JOIN site USING (site)"
            f" UNION ALL SELECT site, NULL, 'in headers or META tags of pages', '', {USAGE},"
            f" refused_usage FROM site WHERE {USAGE} + refused_usage > 0"
            " AND site NOT IN (SELECT site FROM stated)",
        ),
        Table(
            "sites",
            "Sites",
            "Each site and its outcome. Click a site to see its robots.txt.",
            {"site": "site", "outcome": "text", "refused": "number", "allowed": "number",
             "top refusing line": "text", "status": "number", "failure": "text",
             "attempts": "number minor", "fetched": "time minor", "expires": "time minor",
             "size": "bytes minor", "record": "text minor", "deferred for": "secs",
             "Crawl-delay": "text minor", "redirect": "text minor",
             "links dropped": "number minor", "items dropped": "number minor",
             "findings": "number minor"},
            [(*row, len(stored[row[0]]["findings"]) if row[0] in stored else None)
             for row in sites],
            sort=2,
        ),
    ]  # fmt: skip


def _hazards(connection: sqlite3.Connection, stored: Mapping[str, File]) -> list[Any]:
    allowed = dict(connection.execute("SELECT site, allowed_rule FROM site").fetchall())
    found = [
        (grave, allowed[site], site, f"{code} {title}")
        for site, file in stored.items()
        for code, title, grave in file["findings"]
    ]
    too_long = "Longer than KOSTER_MAX_BYTES: the rest was not read."
    cut = connection.execute(
        "SELECT ?, allowed_rule, site, ? FROM site WHERE cut > 0 LIMIT 10000",
        (GRAVITY[Severity.WARNING], too_long),
    )
    return sorted([*found, *map(tuple, cut)], key=lambda row: (-row[0], -row[1], row[2]))
