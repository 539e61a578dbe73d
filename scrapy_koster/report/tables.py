"""The tables of the page: their columns and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from scrapy_koster.checker.checks import Severity
from scrapy_koster.protocol.standing import Ground, Standing
from scrapy_koster.report.files import GRAVITY
from scrapy_koster.report.numbers import (
    CLOSED_BY,
    NOT_KNOWN,
    Numbers,
    sites_of,
    statements_of,
)
from scrapy_koster.report.table import Column, Table
from scrapy_koster.report.tally import (
    ALLOWED,
    HAZARD,
    NOFOLLOW,
    NOINDEX,
    OVERRIDDEN,
    REFUSED,
    START,
    USAGE,
)

if TYPE_CHECKING:
    import sqlite3

    from scrapy_koster.report.files import File

_BY_LINE = (Ground.RULE.value, Ground.DELAY.value, Ground.USAGE.value)
_BY_CHOICE = (*_BY_LINE, Ground.OVERRIDE.value)
Samples = Mapping[str, Mapping[tuple[str, int], list[str]]]


_OUTCOMES: dict[int, str] = {standing: standing.words for standing in Standing}

_SITES = [
    Column("site", "site"),
    Column("outcome"),
    Column("refused", "number"),
    Column("allowed", "number"),
    Column("top refusing line"),
    Column("status", "number"),
    Column("failure"),
    Column("attempts", "number", minor=True),
    Column("fetched", "time", minor=True),
    Column("expires", "time", minor=True),
    Column("size", "bytes", minor=True),
    Column("record", "text", minor=True),
    Column("deferred for", "secs"),
    Column("Crawl-delay", "text", minor=True),
    Column("findings", "number", minor=True),
]


def tables_of(
    connection: sqlite3.Connection,
    numbers: Numbers,
    *,
    most: int,
    samples: Callable[[list[str]], Samples],
    files: Callable[[list[sqlite3.Row]], Mapping[str, File]],
) -> tuple[list[Table], Samples, Mapping[str, File]]:
    """Return the tables with *most* sites, and the samples and files of these."""
    rows = sites_of(connection, most)
    names = [row["site"] for row in rows]
    found, stored = samples(names), files(rows)
    worst = _worst_lines(connection, set(names))
    tables = [
        _why(numbers),
        _closed(rows, worst),
        _rules(numbers, found),
        _overrides(numbers, found),
        _starts(rows, found),
        _hazards(rows, stored),
        _looser(numbers, found),
        _failures(numbers),
        _redirects(rows),
        _drops(rows, found),
        _usage(connection, rows),
        _sites(rows, worst, numbers, stored),
    ]
    return tables, found, stored


def _worst_lines(connection: sqlite3.Connection, sites: set[str]) -> dict[str, str]:
    rows = connection.execute("SELECT site, line, text, max(refused) FROM rule GROUP BY site")
    return {site: named_line(line, text) for site, line, text, _ in rows if site in sites}


def named_line(line: int, text: str) -> str:
    """Return a line with its number; what no line has decided has none."""
    return f"{line}: {text}" if line else text


def _sites(
    rows: Iterable[sqlite3.Row],
    worst: Mapping[str, str],
    numbers: Numbers,
    stored: Mapping[str, File],
) -> Table:
    about = "Each site and its outcome. Click a site to see its robots.txt."
    table = Table("sites", "Sites", about, _SITES, sort=2)
    now = int(numbers.about.get("written") or 0)
    for row in rows:
        site = row["site"]
        refused = _refused(row)
        table.add(
            site,
            _OUTCOMES.get(row["outcome"], NOT_KNOWN),
            sum(refused.values()),
            _allowed(row),
            worst.get(site) or _closed_by(row, refused),
            row["status"],
            row["reason"] or "",
            row["asked"],
            row["fetched"],
            row["expires"],
            row["bytes"],
            row["record"] or "",
            _deferred_secs(row, now),
            row["delay"] or "",
            len(stored[site].findings) if site in stored else None,
        )
    return table


def _closed(rows: Iterable[sqlite3.Row], worst: Mapping[str, str]) -> Table:
    table = Table(
        "closed",
        "Closed sites",
        "Sites where every request was refused by rules, or whose robots.txt returned HTTP 401 or"
        " 403, is missing (KOSTER_MISSING), is an HTML page (KOSTER_HTML_ROBOTSTXT), or was"
        " unavailable.",
        [
            Column("refused", "number"),
            Column("site", "site"),
            Column("how"),
            Column("why"),
            Column("allowed", "number"),
            Column("expires", "time"),
        ],
    )
    for row in rows:
        by_line = row["outcome"] not in CLOSED_BY
        chosen = sum(row[REFUSED[ground]] for ground in _BY_CHOICE)
        if not by_line or (chosen and not _allowed(row)):
            how = "every request refused" if by_line else _OUTCOMES[row["outcome"]]
            why = (
                _worst(worst, row["site"]) if by_line else row["reason"] or f"HTTP {row['status']}"
            )
            refused = sum(_refused(row).values())
            table.add(refused, row["site"], how, why, _allowed(row), row["expires"])
    return table


def _worst(worst: Mapping[str, str], site: str) -> str:
    return f"line {worst[site]}" if site in worst else "your override"


def _refused(row: sqlite3.Row) -> dict[str, int]:
    return {ground: row[column] for ground, column in REFUSED.items()}


def _allowed(row: sqlite3.Row) -> int:
    return sum(int(row[column]) for column in ALLOWED.values())


def _closed_by(row: sqlite3.Row, refused: Mapping[str, int]) -> str:
    if refused["restricted"] or refused["missing"] or refused["html"]:
        return f"whole site: HTTP {row['status']}"
    return "whole site: unavailable" if refused["unavailable"] else ""


def _deferred_secs(row: sqlite3.Row, now: int) -> int | None:
    began, ended = row["deferred"], row["resumed"]
    return None if not began else max((ended or now) - began, 0)


def _why(numbers: Numbers) -> Table:
    table = Table(
        "why",
        "Why requests were refused",
        "Refused requests of all sites, by reason and rule.",
        [Column("requests", "number"), Column("sites", "number"), Column("reason"), Column("rule")],
    )
    for group in numbers.why:
        table.add(*group)
    return table


def _rules(numbers: Numbers, samples: Samples) -> Table:
    table = Table(
        "rules",
        "Lines that refused requests",
        "Each line of a robots.txt that has refused a request, and a sample URL.",
        [
            Column("refused", "number"),
            Column("site", "site"),
            Column("line", "number"),
            Column("text"),
            Column("sample"),
        ],
    )
    for site, line, text, refused in numbers.rules:
        of_site = samples.get(site, {})
        urls = [url for ground in _BY_LINE for url in of_site.get((ground, line), ())]
        table.add(refused, site, line or None, text, urls[0] if urls else "")
    return table


def _overrides(numbers: Numbers, samples: Samples) -> Table:
    table = Table(
        "overrides",
        "Your overrides",
        "KOSTER_OVERRIDES entries that changed the decision on a request.",
        [
            Column("allowed", "number"),
            Column("refused", "number"),
            Column("site", "site"),
            Column("reason and expiry"),
            Column("sample"),
        ],
    )
    for site, text, allowed, refused in numbers.overrides:
        of_site = samples.get(site, {})
        kind = OVERRIDDEN if allowed else Ground.OVERRIDE.value
        table.add(allowed, refused, site, text, of_site.get((kind, 0), [""])[0])
    return table


def _starts(rows: Iterable[sqlite3.Row], samples: Samples) -> Table:
    table = Table(
        "starts",
        "Refused start requests",
        "Pages linked only from these pages were not found.",
        [Column("refused", "number"), Column("site", "site"), Column("sample")],
    )
    for row in rows:
        if row["start_refused"]:
            urls = samples.get(row["site"], {}).get((START, 0), [""])
            table.add(row["start_refused"], row["site"], urls[0])
    return table


def _failures(numbers: Numbers) -> Table:
    about = "Failed attempts to fetch a robots.txt."
    columns = [Column("attempts", "number"), Column("reason")]
    table = Table("failures", "Failures by reason", about, columns)
    for reason, attempts in numbers.failures.items():
        table.add(attempts, reason)
    return table


def _hazards(rows: Iterable[sqlite3.Row], stored: Mapping[str, File]) -> Table:
    table = Table(
        "hazards",
        "Hazards",
        "Files whose authors may have meant something else, the most severe first. Findings are a"
        f" sample: {len(stored):,} stored files were checked with scrapy robots check.",
        [
            Column("severity", "severity"),
            Column("requests allowed", "number"),
            Column("site", "site"),
            Column("what"),
        ],
    )
    found = [
        (grave, row["allowed_rule"], row["site"], what)
        for row in rows
        for grave, what in _hazards_of(row, stored.get(row["site"]))
    ]
    for hazard in sorted(found, key=lambda each: (-each[0], -each[1], each[2])):
        table.add(*hazard)
    return table


def _hazards_of(row: sqlite3.Row, file: File | None) -> Iterator[tuple[int, str]]:
    """Yield how grave they are, and what."""
    for code, title, grave in file.findings if file else ():
        yield grave, f"{code} {title}"
    if row["looser"]:
        what = f"Allowed pages that RFC 9309 forbids: {row['looser']:,}."
        yield GRAVITY[Severity.WARNING], what
    if row["cut"]:
        yield GRAVITY[Severity.WARNING], "Longer than KOSTER_MAX_BYTES: the rest was not read."


def _looser(numbers: Numbers, samples: Samples) -> Table:
    table = Table(
        "looser",
        "Allowed pages that RFC 9309 forbids",
        'The draft allows them. KOSTER_PARSER = "scrapy_koster.StrictestRobotParser" obeys'
        " both standards.",
        [
            Column("pages", "number"),
            Column("site", "site"),
            Column("cause"),
            Column("forbidden by RFC 9309"),
            Column("allowed by the draft"),
            Column("sample"),
        ],
    )
    for site, cause, line, text, allows, pages in numbers.hazards:
        urls = samples.get(site, {}).get((HAZARD, line), [""])
        table.add(pages, site, cause, named_line(line, text), allows, urls[0])
    return table


def _redirects(rows: Iterable[sqlite3.Row]) -> Table:
    about = "Sites whose robots.txt redirects to another URL."
    columns = [Column("site", "site"), Column("to")]
    table = Table("redirects", "Redirects of robots.txt", about, columns)
    for row in rows:
        if row["redirect"]:
            table.add(row["site"], row["redirect"])
    return table


def _drops(rows: Iterable[sqlite3.Row], samples: Samples) -> Table:
    table = Table(
        "drops",
        "Dropped by page directives",
        "Requests (nofollow) and items (noindex) dropped by META tags and X-Robots-Tag headers.",
        [
            Column("nofollow", "number"),
            Column("noindex", "number"),
            Column("site", "site"),
            Column("sample"),
        ],
    )
    for row in rows:
        if row["nofollow"] or row["noindex"]:
            of_site = samples.get(row["site"], {})
            urls = of_site.get((NOFOLLOW, 0)) or of_site.get((NOINDEX, 0)) or [""]
            table.add(row["nofollow"], row["noindex"], row["site"], urls[0])
    return table


def _usage(connection: sqlite3.Connection, rows: Iterable[sqlite3.Row]) -> Table:
    table = Table(
        "usage",
        "Usage preferences",
        "What sites state in robots.txt about the use of their pages, with the dropped items and"
        " refused requests of each site.",
        [
            Column("site", "site"),
            Column("line", "number"),
            Column("statement"),
            Column("preference"),
            Column("items dropped", "number"),
            Column("refused", "number"),
        ],
    )
    effects = {row["site"]: (row[USAGE], row[REFUSED[Ground.USAGE.value]]) for row in rows}
    for site, line, text, stated in statements_of(connection):
        table.add(site, line, text, stated or "none", *effects.pop(site, (None, None)))
    for site, (dropped, refused) in effects.items():
        if dropped or refused:
            table.add(site, None, "in headers or META tags of pages", "", dropped, refused)
    return table
