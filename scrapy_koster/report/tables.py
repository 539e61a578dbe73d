"""The tables of the page: their columns and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scrapy_koster.checker.checks import Severity
from scrapy_koster.protocol.standing import Ground, Standing
from scrapy_koster.report.files import GRAVITY
from scrapy_koster.report.numbers import (
    CLOSED_BY,
    NOT_KNOWN,
    Numbers,
    statements_of,
)
from scrapy_koster.report.table import Table
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
Rows = Iterator[tuple[Any, ...]]

_OUTCOMES: dict[int, str] = {standing: standing.words for standing in Standing}


def tables_of(
    connection: sqlite3.Connection,
    numbers: Numbers,
    rows: Sequence[sqlite3.Row],
    found: Samples,
    stored: Mapping[str, File],
) -> list[Table]:
    """Return the tables, with the sites of *rows*, their samples and their stored files."""
    worst = _worst_lines(connection, {row["site"] for row in rows})
    return [
        Table(
            "why",
            "Why requests were refused",
            "Refused requests of all sites, by reason and rule.",
            {"requests": "number", "sites": "number", "reason": "text", "rule": "text"},
            numbers.why,
        ),
        Table(
            "closed",
            "Closed sites",
            "Sites where every request was refused by rules, or whose robots.txt returned HTTP 401"
            " or 403, is missing (KOSTER_MISSING), is an HTML page (KOSTER_HTML_ROBOTSTXT), or was"
            " unavailable.",
            {"refused": "number", "site": "site", "how": "text", "why": "text",
             "allowed": "number", "expires": "time"},
            _closed(rows, worst),
        ),
        Table(
            "rules",
            "Lines that refused requests",
            "Each line of a robots.txt that has refused a request, and a sample URL.",
            {"refused": "number", "site": "site", "line": "number", "text": "text",
             "sample": "text"},
            _rules(numbers, found),
        ),
        Table(
            "overrides",
            "Your overrides",
            "KOSTER_OVERRIDES entries that changed the decision on a request.",
            {"allowed": "number", "refused": "number", "site": "site",
             "reason and expiry": "text", "sample": "text"},
            (
                (allowed, refused, site, text,
                 _sample(found, site, OVERRIDDEN if allowed else Ground.OVERRIDE.value))
                for site, text, allowed, refused in numbers.overrides
            ),
        ),
        Table(
            "starts",
            "Refused start requests",
            "Pages linked only from these pages were not found.",
            {"refused": "number", "site": "site", "sample": "text"},
            (
                (row["start_refused"], row["site"], _sample(found, row["site"], START))
                for row in rows
                if row["start_refused"]
            ),
        ),
        Table(
            "hazards",
            "Hazards",
            "Files whose authors may have meant something else, the most severe first. Findings"
            f" are a sample: {len(stored):,} stored files were checked with scrapy robots check.",
            {"severity": "severity", "requests allowed": "number", "site": "site", "what": "text"},
            _hazards(rows, stored),
        ),
        Table(
            "looser",
            "Allowed pages that RFC 9309 or a hidden rule forbids",
            'Your parser allows them. KOSTER_PARSER = "scrapy_koster.StrictestRobotParser" obeys'
            " both standards, and hidden rules.",
            {"pages": "number", "site": "site", "cause": "text", "forbidden by": "text",
             "allowed by": "text", "sample": "text"},
            (
                (pages, site, cause, named_line(line, text), allows,
                 _sample(found, site, HAZARD, line))
                for site, cause, line, text, allows, pages in numbers.hazards
            ),
        ),
        Table(
            "failures",
            "Failures by reason",
            "Failed attempts to fetch a robots.txt.",
            {"attempts": "number", "reason": "text"},
            ((attempts, reason) for reason, attempts in numbers.failures.items()),
        ),
        Table(
            "redirects",
            "Redirects of robots.txt",
            "Sites whose robots.txt redirects to another URL.",
            {"site": "site", "to": "text"},
            ((row["site"], row["redirect"]) for row in rows if row["redirect"]),
        ),
        Table(
            "drops",
            "Dropped by page directives",
            "Requests (nofollow) and items (noindex) dropped by META tags and X-Robots-Tag"
            " headers.",
            {"nofollow": "number", "noindex": "number", "site": "site", "sample": "text"},
            (
                (row["nofollow"], row["noindex"], row["site"],
                 _sample(found, row["site"], NOFOLLOW) or _sample(found, row["site"], NOINDEX))
                for row in rows
                if row["nofollow"] or row["noindex"]
            ),
        ),
        Table(
            "usage",
            "Usage preferences",
            "What sites state in robots.txt about the use of their pages, with the dropped items"
            " and refused requests of each site.",
            {"site": "site", "line": "number", "statement": "text", "preference": "text",
             "items dropped": "number", "refused": "number"},
            _usage(connection, rows),
        ),
        Table(
            "sites",
            "Sites",
            "Each site and its outcome. Click a site to see its robots.txt.",
            {"site": "site", "outcome": "text", "refused": "number", "allowed": "number",
             "top refusing line": "text", "status": "number", "failure": "text",
             "attempts": "number minor", "fetched": "time minor", "expires": "time minor",
             "size": "bytes minor", "record": "text minor", "deferred for": "secs",
             "Crawl-delay": "text minor", "findings": "number minor"},
            _sites(rows, worst, int(numbers.about.get("written") or 0), stored),
            sort=2,
        ),
    ]  # fmt: skip


def _worst_lines(connection: sqlite3.Connection, sites: set[str]) -> dict[str, str]:
    rows = connection.execute("SELECT site, line, text, max(refused) FROM rule GROUP BY site")
    return {site: named_line(line, text) for site, line, text, _ in rows if site in sites}


def named_line(line: int, text: str) -> str:
    """Return a line with its number, or the text alone of a decision without a line."""
    return f"{line}: {text}" if line else text


def _sample(samples: Samples, site: str, kind: str, line: int = 0) -> str:
    """Return a sample URL of *site*, "" if there is none."""
    return samples.get(site, {}).get((kind, line), [""])[0]


def _sites(
    rows: Iterable[sqlite3.Row], worst: Mapping[str, str], now: int, stored: Mapping[str, File]
) -> Rows:
    for row in rows:
        site, refused = row["site"], _refused(row)
        began, ended = row["deferred"], row["resumed"]
        yield (
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
            max((ended or now) - began, 0) if began else None,
            row["delay"] or "",
            len(stored[site].findings) if site in stored else None,
        )


def _closed(rows: Iterable[sqlite3.Row], worst: Mapping[str, str]) -> Rows:
    for row in rows:
        site, is_whole = row["site"], row["outcome"] in CLOSED_BY
        if is_whole:
            how, why = _OUTCOMES[row["outcome"]], row["reason"] or f"HTTP {row['status']}"
        elif any(row[REFUSED[ground]] for ground in _BY_CHOICE) and not _allowed(row):
            how = "every request refused"
            why = f"line {worst[site]}" if site in worst else "your override"
        else:
            continue
        yield sum(_refused(row).values()), site, how, why, _allowed(row), row["expires"]


def _refused(row: sqlite3.Row) -> dict[str, int]:
    return {ground: row[column] for ground, column in REFUSED.items()}


def _allowed(row: sqlite3.Row) -> int:
    return sum(int(row[column]) for column in ALLOWED.values())


def _closed_by(row: sqlite3.Row, refused: Mapping[str, int]) -> str:
    if refused["restricted"] or refused["missing"] or refused["html"]:
        return f"whole site: HTTP {row['status']}"
    return "whole site: unavailable" if refused["unavailable"] else ""


def _rules(numbers: Numbers, samples: Samples) -> Rows:
    for site, line, text, refused in numbers.rules:
        urls = (_sample(samples, site, ground, line) for ground in _BY_LINE)
        yield refused, site, line or None, text, next(filter(None, urls), "")


def _hazards(
    rows: Iterable[sqlite3.Row], stored: Mapping[str, File]
) -> list[tuple[int, int, str, str]]:
    found = []
    for row in rows:
        site = row["site"]
        findings = stored[site].findings if site in stored else []
        what = [(grave, f"{code} {title}") for code, title, grave in findings]
        if row["looser"]:
            text = f"Allowed pages that RFC 9309 forbids: {row['looser']:,}."
            what.append((GRAVITY[Severity.WARNING], text))
        if row["cut"]:
            text = "Longer than KOSTER_MAX_BYTES: the rest was not read."
            what.append((GRAVITY[Severity.WARNING], text))
        found += [(grave, row["allowed_rule"], site, text) for grave, text in what]
    return sorted(found, key=lambda hazard: (-hazard[0], -hazard[1], hazard[2]))


def _usage(connection: sqlite3.Connection, rows: Iterable[sqlite3.Row]) -> Rows:
    effects = {row["site"]: (row[USAGE], row[REFUSED[Ground.USAGE.value]]) for row in rows}
    for site, line, text, stated in statements_of(connection):
        yield site, line, text, stated or "none", *effects.pop(site, (None, None))
    for site, (dropped, refused) in effects.items():
        if dropped or refused:
            yield site, None, "in headers or META tags of pages", "", dropped, refused
