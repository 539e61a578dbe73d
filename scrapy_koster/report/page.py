"""The page of a report, from the data of a crawl."""

from collections import defaultdict
from typing import Any

from scrapy_koster.report import numbers as of
from scrapy_koster.report.compare import compared_with_old
from scrapy_koster.report.database import reading
from scrapy_koster.report.files import CopyOf, files_of
from scrapy_koster.report.html import write_html
from scrapy_koster.report.tables import samples_of, tables_of

_FORBIDDEN = ("exempt_forbidden", "overridden", "allowed_restricted")
"""The totals of forbidden requests that were sent. RFC 9309 does not forbid the last of these."""


def write_page(
    database: str, out: str, *, copies: CopyOf = lambda _site: None, against: str | None = None
) -> None:
    """Write the page of a report to the file *out*, whole or not at all.

    *database* is the file of the report, *against* the file of an older report. *copies* returns
    the stored copy of a site, or None. Raises DatabaseError and OSError.
    """
    with reading(database, against=against) as connection:
        numbers = of.numbers_of(connection)
        too_many = numbers["sites"] > of.EVERY_SITE_UP_TO
        most = of.SITES_THAT_MATTER if too_many else of.EVERY_SITE_UP_TO
        sites = connection.execute(f"SELECT * FROM site {of.BY_MATTER} LIMIT {most}")
        robot = str(numbers["about"].get("agent", ""))
        files = files_of(sites, copies, robot, numbers["about"].get("reading"))
        tables = tables_of(connection, numbers, files, most)
        compared = compared_with_old(connection) if against is not None else None
        tables = [*(compared.tables if compared else ()), *tables]
        samples = samples_of(connection)
    write_html(
        out,
        "page.html",
        tables,
        data={"robot": robot, "samples": samples, "files": files},
        about=defaultdict(str, {"written": 0, "title": "A crawl", **numbers["about"]}),
        numbers=numbers,
        fetched=_fetched(numbers),
        refused=_refused(numbers),
        reasons=of.REASONS,
        compared=compared,
        most=most,
    )


def _fetched(numbers: dict[str, Any]) -> str:
    """Return the answer to: was anything fetched that should not have been?"""
    totals, about, requests = numbers["totals"], numbers["about"], numbers["requests"]
    refused = sum(requests["refused"].values())
    if about.get("survey"):
        return "No. A survey fetches no page."
    if about.get("dry_run") and refused:
        return f"Yes. This was a dry run. Forbidden requests that were sent: {refused:,}."
    names = _FORBIDDEN[:-1] if about.get("reading") == "rfc9309" else _FORBIDDEN
    if forbidden := sum(totals[name] for name in names):
        return f"Yes, by your choice. Forbidden requests that were sent: {forbidden:,}."
    if looser := totals["looser"]:
        return f"By the draft, no. Pages that RFC 9309 forbids: {looser:,}."
    if totals["exempt"] or totals["allowed_unavailable"]:
        return "Not that is known, but not all rules were known or obeyed."
    answer = "No." if about.get("compared") else "By your parser, no."
    return f"{answer} Only allowed requests were sent: {requests['allowed']:,}."


def _refused(numbers: dict[str, Any]) -> str:
    """Return the answer to: why were requests refused?"""
    refused, closed = sum(numbers["requests"]["refused"].values()), numbers["closed"]
    if not refused and not closed:
        return "No request was refused."
    share = 100 * refused / ((refused + numbers["requests"]["allowed"]) or 1)
    ways = ", ".join(f"{how}: {count:,}" for how, count in numbers["closed_by"].items() if count)
    return (
        f"Refused requests: {refused:,} ({share:.1f} %)."
        f" Closed: {closed:,} of {numbers['sites']:,} sites{ways and f' ({ways})'}."
    )
