"""The first screen of the page: four questions, each with its answer.

Was anything fetched that should not have been? Why were requests refused? What may have been
missed? What is there to do?
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapy_koster.report import numbers as of

if TYPE_CHECKING:
    from scrapy_koster.report.numbers import Numbers

_GROUPS = 5
_FORBIDDEN = ("exempt_forbidden", "overridden", "allowed_restricted")
"""The totals of requests that were sent although their site forbids them."""
_CLOSED = {
    "rules": "by rules",
    "restricted": "by HTTP 401 or 403",
    "missing": "without a robots.txt",
    "html": "by an HTML page as robots.txt",
    "unavailable": "unavailable",
}


@dataclass(frozen=True)
class Speech:
    """How the page speaks of what it is about: a crawl, a dry run or a survey."""

    what: str
    were: str
    """As in "12 requests were refused"."""
    why_refused: str
    what_missed: str = "What might have been missed?"

    def counted(self, count: int, one: str, many: str) -> str:
        """Return so many of something, with its verb: "1 site was", "2 sites would be"."""
        noun = one if count == 1 else many
        return f"{count:,} {noun} {'was' if (count, self.were) == (1, 'were') else self.were}"


_CRAWL = Speech("crawl", "were", "Why were requests refused?")
_DRY_RUN = Speech("crawl", "would have been", "Why would requests have been refused?")
_SURVEY = Speech("survey", "would be", "Why would requests be refused?", "What might a crawl miss?")


def speech_of(numbers: Numbers) -> Speech:
    """Return how to speak of what was counted."""
    if numbers.about.get("survey"):
        return _SURVEY
    return _DRY_RUN if numbers.about.get("dry_run") else _CRAWL


@dataclass(frozen=True)
class Point:
    """A line of an answer."""

    text: str
    table: str = ""
    """The table that has more of it."""
    code: str = ""
    """A line of a robots.txt that is shown after it."""


@dataclass(frozen=True)
class Answer:
    """A question, and what the counts say to it."""

    name: str
    question: str
    sentence: str
    points: list[Point] = field(default_factory=list)
    table: str = ""
    """The table that has all of it."""


def answers(numbers: Numbers) -> list[Answer]:
    """Return the four of them, in their order."""
    speech = speech_of(numbers)
    missed, to_do = list(_missed(numbers, speech)), list(_to_do(numbers, speech))
    return [
        Answer(
            "fetched",
            "Was anything fetched that should not have been?",
            _fetched(numbers, speech),
            list(_let_through(numbers)),
        ),
        Answer(
            "why", speech.why_refused, _why(numbers, speech), list(_groups(numbers)), table="why"
        ),
        Answer("missed", speech.what_missed, "" if missed else "Nothing known.", missed),
        Answer("to-do", "What can you do?", "" if to_do else "Nothing.", to_do),
    ]


def _fetched(numbers: Numbers, speech: Speech) -> str:
    refused = sum(numbers.refused.values())
    if speech is _SURVEY:
        return "No. A survey fetches no page."
    if speech is _DRY_RUN and refused:
        return f"Yes. This was a dry run: {refused:,} forbidden requests were sent."
    return _sent(numbers)


def _sent(numbers: Numbers) -> str:
    totals, compared = numbers.totals, numbers.compared
    forbidden = sum(totals[name] for name in _FORBIDDEN)
    if forbidden:
        return f"Yes, by your choice: {_requests(forbidden, 'forbidden')}."
    if looser := totals["looser"]:
        return f"By the draft, no. By RFC 9309: {looser:,} {'page' if looser == 1 else 'pages'}."
    if looser := compared["looser"]:
        total = sum(compared.values())
        return f"By your parser, no. By RFC 9309: {looser:,} of a sample of {total:,}."
    if totals["exempt"] or numbers.allowed_because[of.LET_THROUGH]:
        return "Not that is known, but not all rules were known or obeyed."
    return f"No. {numbers.allowed:,} requests were allowed, and no others were sent."


def _let_through(numbers: Numbers) -> Iterator[Point]:
    because, compared = numbers.allowed_because, numbers.compared
    if count := numbers.totals["exempt"]:
        yield Point(
            f"{_requests(count, 'exempt')} (dont_obey_robotstxt); of these, forbidden by a known"
            f" robots.txt: {numbers.totals['exempt_forbidden']:,}",
            "sites",
        )
    if count := numbers.totals["allowed_restricted"]:
        yield Point(f"{count:,} allowed: HTTP 401 or 403 (KOSTER_RESTRICTED)", "sites")
    if count := because[of.LET_THROUGH]:
        yield Point(f"{count:,} allowed: robots.txt is unavailable (KOSTER_UNAVAILABLE)", "sites")
    if count := because[of.HTML_PAGE]:
        yield Point(f"{count:,} allowed: robots.txt is an HTML page", "sites")
    if count := numbers.totals["overridden"]:
        yield Point(f"{count:,} allowed by your overrides (KOSTER_OVERRIDES)", "overrides")
    if looser := numbers.totals["looser"]:
        yield Point(f"{looser:,} allowed, although RFC 9309 forbids them", "looser")
    elif looser := compared["looser"]:
        total = sum(compared.values())
        yield Point(
            f"In a sample of {total:,} decisions, RFC 9309 forbids {_requests(looser, 'allowed')}",
            "hazards",
        )


def _requests(count: int, which: str) -> str:
    return f"{count:,} {which} {'request' if count == 1 else 'requests'}"


def _why(numbers: Numbers, speech: Speech) -> str:
    refused, closed = sum(numbers.refused.values()), numbers.closed_by
    if not refused and not numbers.closed:
        return f"No request {'was' if speech.were == 'were' else speech.were} refused."
    share = f"{100 * refused / (refused + numbers.allowed):.1f} %" if refused else "0 %"
    counted = speech.counted(refused, "request", "requests")
    ways = ", ".join(f"{closed[how]:,} {words}" for how, words in _CLOSED.items() if closed[how])
    sites = f"of {numbers.sites:,} sites"
    closed_sites = (
        f"{speech.counted(numbers.closed, sites, sites)} closed: {ways}."
        if ways
        else "No site is closed."
    )
    return f"{counted} refused ({share}). {closed_sites}"


def _groups(numbers: Numbers) -> Iterator[Point]:
    for requests, sites, reason, rule in numbers.why[:_GROUPS]:
        text = (
            f"{requests:,} {'request' if requests == 1 else 'requests'},"
            f" {sites:,} {'site' if sites == 1 else 'sites'}: {reason if not rule else ''}"
        )
        yield Point(text.strip(), code=rule)


def _missed(numbers: Numbers, speech: Speech) -> Iterator[Point]:
    totals, compared = numbers.totals, numbers.compared
    unknown, stricter = numbers.outcomes[of.NOT_KNOWN], compared["stricter"]
    given_up = totals["sites_given_up"]
    deferred = max(totals["deferred_now"] - given_up, 0)
    for count, one, many, rest, table in (
        (given_up, "site", "sites", "{} unavailable and given up", "closed"),
        (deferred, "site", "sites", "{} still deferred at the end", "closed"),
        (unknown, "robots.txt", "robots.txt files", "{} still loading at the end", "sites"),
        (totals["cut"], "robots.txt", "robots.txt files", "{} too long and cut off", "hazards"),
    ):
        if count:
            was = "was" if count == 1 else "were"
            yield Point(f"{count:,} {one if count == 1 else many} {rest.format(was)}", table)
    for count, one, many, rest, table in (
        (totals["start_refused"], "start request", "start requests",
         "refused; pages linked only from there were not found", "starts"),
        (totals["nofollow"], "link", "links", "dropped (nofollow)", "drops"),
        (totals["noindex"], "item", "items", "dropped (noindex)", "drops"),
    ):  # fmt: skip
        if count:
            yield Point(f"{speech.counted(count, one, many)} {rest}", table)
    if stricter:
        total = sum(compared.values())
        yield Point(
            f"In a sample of {total:,} decisions, RFC 9309 allows {_requests(stricter, 'refused')}"
        )


def _to_do(numbers: Numbers, speech: Speech) -> Iterator[Point]:
    totals, closed, compared = numbers.totals, numbers.closed_by, numbers.compared
    again = "crawl later" if speech is _SURVEY else "crawl them again later"
    for count, text, table in (
        (numbers.about.get("lost", 0), "Free disk space: some counts were lost.", ""),
        (
            totals["looser"] or compared["looser"],
            "Use StrictestRobotParser to obey both standards.",
            "looser" if totals["looser"] else "hazards",
        ),
        (totals["start_refused"], "Choose start URLs that these sites allow.", "starts"),
        (numbers.refused["rule"], "Do not follow links to the forbidden paths.", "why"),
        (closed["restricted"], "Request access from the sites that return 401 or 403.", "closed"),
        (closed["unavailable"], f"Check the unavailable sites, or {again}.", "closed"),
        (
            numbers.refused["delay"],
            "Raise KOSTER_CRAWL_DELAY_MAX_SECS to accept longer delays.",
            "why",
        ),
        (totals["cut"], "Raise KOSTER_MAX_BYTES to read long files completely.", "hazards"),
    ):
        if count:
            yield Point(text, table)
