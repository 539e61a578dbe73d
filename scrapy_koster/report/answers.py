"""The first screen of the page: four questions and their answers.

Was anything fetched that should not have been? Why were requests refused? What might have been
missed? What can you do?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_koster.report import numbers as of

if TYPE_CHECKING:
    from scrapy_koster.report.numbers import Numbers

_GROUPS = 5
_FORBIDDEN = ("exempt_forbidden", "overridden", "allowed_restricted")
"""The totals of forbidden requests that were sent."""


@dataclass(frozen=True)
class Point:
    """A line of an answer."""

    text: str
    table: str = ""
    """The name of the table with the details, or ""."""
    code: str = ""
    """A line of a robots.txt, shown after ``text``, or ""."""


@dataclass(frozen=True)
class Answer:
    """A question, with the answer that the counts give."""

    name: str
    question: str
    sentence: str
    points: list[Point]


def answers(numbers: Numbers) -> list[Answer]:
    """Return the four questions with the answers."""
    fetched, missed = list(_counted(_let_through(numbers))), list(_counted(_missed(numbers)))
    to_do = [Point(text, table) for count, text, table in _to_do(numbers) if count]
    reasons = [
        Point(f"{requests:,} refused by {reason} (sites: {sites:,})", "why", rule)
        for requests, sites, reason, rule in numbers.why[:_GROUPS]
    ]
    return [
        Answer(
            "fetched",
            "Was anything fetched that should not have been?",
            _fetched(numbers),
            fetched,
        ),
        Answer("why", "Why were requests refused?", _why(numbers), reasons),
        Answer(
            "missed", "What might have been missed?", "" if missed else "Nothing known.", missed
        ),
        Answer("to-do", "What can you do?", "" if to_do else "Nothing.", to_do),
    ]


def _counted(rows: Iterable[tuple[int, str, str]]) -> Iterator[Point]:
    for count, text, table in rows:
        if count:
            yield Point(f"{text}: {count:,}", table)


def _fetched(numbers: Numbers) -> str:
    refused = sum(numbers.refused.values())
    if numbers.about.get("survey"):
        return "No. A survey fetches no page."
    if numbers.about.get("dry_run") and refused:
        return f"Yes. This was a dry run. Forbidden requests that were sent: {refused:,}."
    return _sent(numbers)


def _sent(numbers: Numbers) -> str:
    totals = numbers.totals
    if forbidden := sum(totals[name] for name in _FORBIDDEN):
        return f"Yes, by your choice. Forbidden requests that were sent: {forbidden:,}."
    if looser := totals["looser"]:
        return f"By the draft, no. Pages that RFC 9309 forbids: {looser:,}."
    if totals["exempt"] or numbers.allowed_because[of.LET_THROUGH]:
        return "Not that is known, but not all rules were known or obeyed."
    sent = f"Only allowed requests were sent: {numbers.allowed:,}."
    return f"No. {sent}" if numbers.about.get("compared") else f"By your parser, no. {sent}"


def _let_through(numbers: Numbers) -> Iterator[tuple[int, str, str]]:
    totals, because = numbers.totals, numbers.allowed_because
    yield totals["exempt"], "Exempt requests (dont_obey_robotstxt)", "sites"
    yield totals["exempt_forbidden"], "Of these, forbidden by a known robots.txt", "sites"
    yield totals["allowed_restricted"], "Allowed: HTTP 401 or 403 (KOSTER_RESTRICTED)", "sites"
    unavailable = "Allowed: robots.txt is unavailable (KOSTER_UNAVAILABLE)"
    yield because[of.LET_THROUGH], unavailable, "sites"
    yield because[of.HTML_PAGE], "Allowed: robots.txt is an HTML page", "sites"
    yield totals["overridden"], "Allowed by your overrides (KOSTER_OVERRIDES)", "overrides"
    yield totals["looser"], "Allowed, although RFC 9309 forbids them", "looser"


def _why(numbers: Numbers) -> str:
    refused, closed = sum(numbers.refused.values()), numbers.closed_by
    if not refused and not numbers.closed:
        return "No request was refused."
    share = 100 * refused / ((refused + numbers.allowed) or 1)
    ways = ", ".join(f"{how}: {count:,}" for how, count in closed.items() if count)
    return (
        f"Refused requests: {refused:,} ({share:.1f} %)."
        f" Closed: {numbers.closed:,} of {numbers.sites:,} sites{ways and f' ({ways})'}."
    )


def _missed(numbers: Numbers) -> Iterator[tuple[int, str, str]]:
    totals = numbers.totals
    given_up = totals["sites_given_up"]
    yield given_up, "Sites that were unavailable and given up", "closed"
    deferred = max(totals["deferred_now"] - given_up, 0)
    yield deferred, "Sites that were still deferred at the end", "closed"
    unknown = numbers.outcomes[of.NOT_KNOWN]
    yield unknown, "Sites whose robots.txt was still loading at the end", "sites"
    yield totals["cut"], "Files that were too long and cut off", "hazards"
    starts = "Refused start requests; pages linked only from there were not found"
    yield totals["start_refused"], starts, "starts"
    yield totals["nofollow"], "Dropped links (nofollow)", "sites"
    yield totals["noindex"], "Dropped items (noindex)", "sites"


def _to_do(numbers: Numbers) -> Iterator[tuple[int, str, str]]:
    totals, closed = numbers.totals, numbers.closed_by
    yield numbers.about.get("lost", 0), "Free disk space: some counts were lost.", ""
    yield totals["looser"], "Use StrictestRobotParser to obey both standards.", "looser"
    yield totals["start_refused"], "Choose start URLs that these sites allow.", "starts"
    yield numbers.refused["rule"], "Do not follow links to the forbidden paths.", "why"
    restricted = "Request access from the sites that return 401 or 403."
    yield closed["restricted"], restricted, "closed"
    yield closed["unavailable"], "Check the unavailable sites, or crawl them later.", "closed"
    delays = "Raise KOSTER_CRAWL_DELAY_MAX_SECS to accept longer delays."
    yield numbers.refused["delay"], delays, "why"
    yield totals["cut"], "Raise KOSTER_MAX_BYTES to read long files completely.", "hazards"
