"""The kinds of findings of the syntax checker, by their codes.

The letters and numbers (A1, B12, ...) are the rows of the decision table in
docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from scrapy_koster.protocol.ruling import Standard


class Severity(Enum):
    """How much of what the author meant is at stake."""

    ERROR = "error"
    """Lines without effect, or a file without one."""
    WARNING = "warning"
    """Two readers of the file part, or the author is likely mistaken."""
    NOTE = "note"
    """The file leaves the letter of a standard and nothing is lost, or it is good to know."""


BOTH: Collection[Standard] = tuple(Standard)
_DRAFT: Collection[Standard] = (Standard.DRAFT,)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is looked for. The code never changes its meaning."""

    code: str
    severity: Severity
    section: str
    """The section of the draft that it rests on."""
    points: str
    """The rows of the decision table in docs/semantics.md."""
    title: str
    fix: str
    """What to do. By the readings that have no such finding, it changes nothing."""
    readings: Collection[Standard] = BOTH
    """The standards by which a file has this finding."""


_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

CHECKS = {
    check.code: check
    for check in (
        # The file.
        Check(
            "K001",
            _NOTE,
            "3.2",
            "A6, B17",
            "There is no instruction in the file.",
            'To restrict nobody, say so: "User-agent: *" and "Disallow:".',
        ),
        Check(
            "K002",
            _ERROR,
            "3.1, 5.2",
            "B17",
            "The file is an HTML page.",
            "Serve a text/plain file of records at /robots.txt, or status 404.",
        ),
        Check(
            "K003",
            _ERROR,
            "3.3",
            "B3",
            "The file is UTF-16 or UTF-32: many readers can read no line of it.",
            "Save it as ASCII or UTF-8.",
        ),
        Check(
            "K004",
            _WARNING,
            "3.3",
            "B3",
            "The file begins with a byte order mark.",
            "Save it without one: some readers lose the first line.",
            _DRAFT,
        ),
        Check(
            "K005",
            _WARNING,
            "6",
            "B16",
            "The file is larger than a crawl reads: the rest is lost.",
            "Shorten it: rules by directory in place of rules by page.",
        ),
        Check(
            "K006",
            _NOTE,
            "6",
            "B16",
            "The line is longer than 2,083 octets, which some readers cut.",
            "Shorten it: a path matches all that begins with it.",
        ),
        Check(
            "K007",
            _NOTE,
            "3.1",
            "B17",
            "The file is not served as text/plain.",
            'Have the server send "Content-Type: text/plain".',
        ),
        Check(
            "K008",
            _NOTE,
            "3.2.2",
            "C4",
            "The file closes the whole site to all robots that it does not name.",
            "Nothing, if that is meant. Else write the paths that are not to be fetched.",
        ),
        # The lines.
        Check(
            "K010",
            _ERROR,
            "3.2",
            "B6",
            "There is no colon after the field: the line is ignored.",
            "Put a colon behind the field.",
        ),
        Check(
            "K011",
            _WARNING,
            "3.2",
            "B6, B8",
            "The line is neither a field with a value nor a comment: it is ignored.",
            'Put "#" before it, remove it, or join it to the line that it continues.',
        ),
        Check(
            "K012",
            _ERROR,
            "3.2",
            "B9, B11",
            "The field looks misspelt: the line is not what it seems.",
            "Write User-agent, Disallow or Allow.",
        ),
        Check(
            "K013",
            _WARNING,
            "3.3",
            "B11",
            "What stands before the colon is no token: the line is ignored.",
            'Put "#" before it, or remove it.',
        ),
        Check(
            "K014",
            _NOTE,
            "3.3",
            "B7",
            "There is space before the colon.",
            "Remove it.",
            _DRAFT,
        ),
        Check(
            "K015",
            _WARNING,
            "3.3, 5.2",
            "B2",
            "A character ends the line for some readers, but is no line end.",
            "Remove it, or end the line with CR LF.",
        ),
        Check(
            "K016",
            _WARNING,
            "3.3",
            "B5",
            "There is a control character.",
            "Remove it; in a path write it as %xx.",
        ),
        Check(
            "K017",
            _NOTE,
            "3.3",
            "B4",
            "There are characters that are not ASCII.",
            "In a path write their octets as %xx.",
            _DRAFT,
        ),
        Check(
            "K018",
            _WARNING,
            "3.3",
            "B4",
            "There are octets that are not UTF-8: some readers drop them.",
            "Save the file as UTF-8; in a path write octets as %xx.",
        ),
        # The agents.
        Check(
            "K020",
            _WARNING,
            "3.2.1",
            "A9",
            "The User-agent line is empty: it names no robot.",
            'Name a robot, or "*" for all robots without a record.',
        ),
        Check(
            "K021",
            _WARNING,
            "3.2.1",
            "A8",
            'The "*" does not stand alone: this is not the record for all others.',
            'Write "*" alone for all other robots, or the whole name of a robot without it.',
        ),
        Check(
            "K022",
            _WARNING,
            "3.2.1, 3.3",
            "A8",
            "The value is not one name token.",
            "One User-agent line for each robot: its name, without a version.",
        ),
        Check(
            "K023",
            _WARNING,
            "3.2.1",
            "A4",
            "The robot has a record already: it obeys the first, RFC 9309 joins them.",
            "Put all rules for the robot into one record.",
            _DRAFT,
        ),
        Check(
            "K024",
            _WARNING,
            "3.2.1",
            "A5",
            'There is a "*" record already: the first counts, RFC 9309 joins them.',
            'Put all rules for "*" into one record.',
            _DRAFT,
        ),
        Check(
            "K025",
            _NOTE,
            "3.2.1",
            "A7",
            "The record names this robot already.",
            "Remove the line.",
        ),
        Check(
            "K026",
            _WARNING,
            "3.2.1",
            "A1, A2",
            "An earlier record names a robot whose name contains this one.",
            "Put the record with the shorter name first.",
            _DRAFT,
        ),
        # The records.
        Check(
            "K030",
            _WARNING,
            "3.3",
            "B15",
            "No rule follows the User-agent lines: they are no record.",
            'Add "Disallow:" to restrict nothing, or rules.',
        ),
        Check(
            "K031",
            _WARNING,
            "3.2, 3.3",
            "B12",
            "A blank line stands inside a record, which some readers end here.",
            'Remove it, or put "#" into it.',
            _DRAFT,
        ),
        Check(
            "K032",
            _NOTE,
            "3.3",
            "B11, B14",
            "The extension line stands outside of a record.",
            "Move it to the rules of a record, at their end.",
            _DRAFT,
        ),
        Check(
            "K033",
            _WARNING,
            "3.3",
            "B11",
            "An extension line ends the User-agent lines: the robots before it are not restricted.",
            "Move it behind the rules.",
            _DRAFT,
        ),
        Check(
            "K034",
            _ERROR,
            "3.2",
            "B14",
            "The rule stands before any User-agent line: it is ignored.",
            'Put "User-agent: *" before it.',
        ),
        Check(
            "K035",
            _NOTE,
            "3.2",
            "B13",
            "No blank line separates the records.",
            "Put a blank line before the User-agent line.",
            _DRAFT,
        ),
        # The rules.
        Check(
            "K040",
            _ERROR,
            "3.2.2",
            "C5",
            "The path does not begin with a slash: it matches nothing.",
            'Begin the path with "/".',
        ),
        Check(
            "K041",
            _ERROR,
            "3.2.2",
            "C5",
            "The path is a full URL: it matches nothing.",
            "Write the path alone, from the slash behind the host.",
        ),
        Check(
            "K042",
            _WARNING,
            "3.2.2, 3.3",
            "C6",
            'The "*" is a character like any other; for RFC 9309 it is a wildcard.',
            "Keep it for RFC 9309. For the draft, add a line for each path that it stands for.",
            _DRAFT,
        ),
        Check(
            "K043",
            _WARNING,
            "3.2.2, 3.3",
            "C6",
            'The "$" at the end is a character like any other; for RFC 9309 it ends the path.',
            "Keep it for RFC 9309: no line of the draft ends a path.",
            _DRAFT,
        ),
        Check(
            "K044",
            _WARNING,
            "3.3",
            "C3",
            'Two hexadecimal digits do not follow the "%": it stands for itself.',
            "Write %25 for a percent sign.",
        ),
        Check(
            "K045",
            _WARNING,
            "3.2",
            "B10",
            'The "#" begins a comment: the path ends before it.',
            "Write %23 in a path; put a space before a comment.",
        ),
        Check(
            "K046",
            _WARNING,
            "3.2.2",
            "C8",
            "/robots.txt must not appear in a rule: it is always allowed.",
            'Remove the line; if it is the only rule of its record, write "Disallow:".',
        ),
        Check(
            "K047",
            _WARNING,
            "3.2.2",
            "C1",
            "An earlier rule that says the opposite matches all that this one does.",
            "Put this line before the other: the first match counts.",
            _DRAFT,
        ),
        Check(
            "K048",
            _NOTE,
            "3.2.2",
            "C1",
            "An earlier rule that says the same matches all that this one does.",
            "Remove the line.",
            _DRAFT,
        ),
        Check(
            "K049",
            _WARNING,
            "3.2.2",
            "C1",
            '"Allow: /" comes before a Disallow line: nothing behind it counts.',
            "Put it last.",
            _DRAFT,
        ),
        Check(
            "K050",
            _NOTE,
            "3.3",
            "C2",
            "The Allow line is empty: it matches nothing.",
            'Write "Disallow:", which restricts nothing.',
        ),
        Check(
            "K051",
            _WARNING,
            "3.3",
            "C5",
            "There is a space in the path, which is compared as it is.",
            "One line for each path; write %20 where a space is meant.",
        ),
        Check(
            "K052",
            _NOTE,
            "6",
            "C9",
            "The path has a name that people look for: who reads the file learns that it is there.",
            "Protect it by a password: a rule hides nothing. Name a directory above it, if any.",
        ),
        # The fields that the standards leave to others.
        Check(
            "K060",
            _NOTE,
            "3.2",
            "B11",
            "No robot that we know of reads a field of this name.",
            'Remove the line, or put "#" before it.',
        ),
        Check(
            "K061",
            _WARNING,
            "3.2",
            "B11",
            "The Sitemap is no full URL: robots do not find it.",
            "Write the whole URL, from http:// or https:// on.",
        ),
        Check(
            "K062",
            _WARNING,
            "3.2",
            "B11",
            "The Crawl-delay is no number of seconds: it is ignored.",
            "Write a number alone, such as 10.",
        ),
    )
}
"""Every check by its code, in the order of docs/check-codes.md."""
