"""The kinds of findings of the syntax checker, by code."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from scrapy_koster.protocol.ruling import Standard


class Severity(Enum):
    """The severity of a finding."""

    ERROR = "error"
    """A line or a whole file does not have the effect that its author means."""
    WARNING = "warning"
    """Two readers of the file disagree, or the author is probably mistaken."""
    NOTE = "note"
    """The file departs from a standard without harm, or the author may want to know a fact."""


BOTH: Collection[Standard] = tuple(Standard)


@dataclass(frozen=True, slots=True)
class Check:
    """A kind of finding. The meaning of a code never changes."""

    code: str
    severity: Severity
    readings: Collection[Standard]
    """The standards to which this finding applies."""
    section: str
    """The section of the draft for this check."""
    points: str
    """The rows of the decision table in docs/semantics.md for this check."""
    title: str
    fix: str
    """How to fix the file. The fix changes nothing for standards outside of ``readings``."""


_ERROR, _WARNING, _NOTE = Severity
_DRAFT = (Standard.DRAFT,)

# fmt: off
CHECKS = {
    check.code: check
    for check in (
        # The file.
        Check("K001", _NOTE, BOTH, "3.2", "A6, B17", "There is no instruction in the file.",
              'To allow all robots explicitly, write "User-agent: *" and "Disallow:".'),
        Check("K002", _ERROR, BOTH, "3.1, 5.2", "B17",
              "The file is an HTML page, or has HTML in it.",
              "Serve a text/plain file of records at /robots.txt, or status 404."),
        Check("K003", _ERROR, BOTH, "3.3", "B3",
              "The file is UTF-16 or UTF-32: many readers can read no line of it.",
              "Save it as ASCII or UTF-8."),
        Check("K004", _WARNING, _DRAFT, "3.3", "B3", "The file begins with a byte order mark.",
              "Save it without one: some readers lose the first line."),
        Check("K005", _WARNING, BOTH, "6", "B16",
              "The file is larger than a crawl reads: the rest is lost.",
              "Shorten it: write rules for directories instead of pages."),
        Check("K006", _NOTE, BOTH, "6", "B16",
              "The line is longer than 2,083 bytes. Some readers cut it.",
              "Shorten it: a path matches all URLs that begin with it."),
        Check("K007", _NOTE, BOTH, "3.1", "B17", "The file is not served as text/plain.",
              'Have the server send "Content-Type: text/plain".'),
        Check("K008", _NOTE, BOTH, "3.2.2", "C4",
              "The file closes the whole site to all robots that it does not name.",
              "If this is not intended, name only the paths that robots must not fetch."),
        # The lines.
        Check("K010", _ERROR, BOTH, "3.2", "B6",
              "There is no colon after the field: the line is ignored.",
              "Put a colon after the field."),
        Check("K011", _WARNING, BOTH, "3.2", "B6, B8",
              "The line is neither a field with a value nor a comment: it is ignored.",
              'Put "#" before it, remove it, or join it to the line that it continues.'),
        Check("K012", _ERROR, BOTH, "3.2", "B9, B11",
              "The field looks misspelled: the line is not read as intended.",
              "Write User-agent, Disallow or Allow."),
        Check("K013", _WARNING, BOTH, "3.3", "B11",
              "The field is not a token: the line is ignored.",
              'Put "#" before it, or remove it.'),
        Check("K014", _NOTE, _DRAFT, "3.3", "B7", "There is space before the colon.",
              "Remove it."),
        Check("K015", _WARNING, BOTH, "3.3, 5.2", "B2",
              "A character ends the line for some readers, but is no line end.",
              "Remove it, or end the line with CR LF."),
        Check("K016", _WARNING, BOTH, "3.3", "B5", "There is a control character.",
              "Remove it; in a path write it as %xx."),
        Check("K017", _NOTE, _DRAFT, "3.3", "B4", "There are characters that are not ASCII.",
              "In a path, write their bytes as %xx."),
        Check("K018", _WARNING, BOTH, "3.3", "B4",
              "There are bytes that are not UTF-8: some readers drop them.",
              "Save the file as UTF-8. In a path, write bytes as %xx."),
        Check("K019", _ERROR, BOTH, "3.2, 3.3", "B17",
              "Markup hides the line: most robots do not read it.", "Remove the markup."),
        # The agents.
        Check("K020", _WARNING, BOTH, "3.2.1", "A9",
              "The User-agent line is empty: it names no robot.",
              'Name a robot, or "*" for all robots without a record.'),
        Check("K021", _WARNING, BOTH, "3.2.1", "A8",
              'The value is not exactly "*": this is not the record for all other robots.',
              'Write only "*" for all other robots, or only the name of a robot.'),
        Check("K022", _WARNING, BOTH, "3.2.1, 3.3", "A8", "The value is not one name token.",
              "One User-agent line for each robot: its name, without a version."),
        Check("K023", _WARNING, _DRAFT, "3.2.1", "A4",
              "The robot has a record already: it obeys the first, RFC 9309 joins them.",
              "Put all rules for the robot into one record."),
        Check("K024", _WARNING, _DRAFT, "3.2.1", "A5",
              'There is a "*" record already: the first counts, RFC 9309 joins them.',
              'Put all rules for "*" into one record.'),
        Check("K025", _NOTE, BOTH, "3.2.1", "A7", "The record names this robot already.",
              "Remove the line."),
        Check("K026", _WARNING, _DRAFT, "3.2.1", "A1, A2",
              "An earlier record names a robot whose name contains this one.",
              "Put the record with the shorter name first."),
        # The records.
        Check("K030", _WARNING, BOTH, "3.3", "B15",
              "No rule follows the User-agent lines: for the draft they are not a record, "
              "for RFC 9309 they allow all pages.",
              'Add rules, or "Disallow:" to allow all pages.'),
        Check("K031", _WARNING, _DRAFT, "3.2, 3.3", "B12",
              "There is a blank line in a record: some readers end the record here.",
              'Remove it, or put "#" into it.'),
        Check("K032", _NOTE, _DRAFT, "3.3", "B11, B14",
              "The extension line is outside of a record.",
              "Move it to the rules of a record, at their end."),
        Check("K033", _WARNING, BOTH, "3.3", "B11",
              "An extension line ends the User-agent lines: for the draft the robots before it are "
              "not restricted, for RFC 9309 the rules after it apply to them, too.",
              "Move it after the rules, or give each robot rules of its own."),
        Check("K034", _ERROR, BOTH, "3.2", "B14",
              "The rule comes before any User-agent line: it is ignored.",
              'Put "User-agent: *" before it.'),
        Check("K035", _NOTE, _DRAFT, "3.2", "B13", "No blank line separates the records.",
              "Put a blank line before the User-agent line."),
        # The rules.
        Check("K040", _ERROR, BOTH, "3.2.2", "C5",
              "The path does not begin with a slash: it matches no URL.",
              'Begin the path with "/".'),
        Check("K041", _ERROR, BOTH, "3.2.2", "C5", "The path is a full URL: it matches no URL.",
              "If the URL is of this site, write only its path. If not, remove the line."),
        Check("K042", _WARNING, _DRAFT, "3.2.2, 3.3", "C6",
              'The "*" is an ordinary character; for RFC 9309 it is a wildcard.',
              "Keep it for RFC 9309. For the draft, add a line for each path that it matches."),
        Check("K043", _WARNING, _DRAFT, "3.2.2, 3.3", "C6",
              'The "$" at the end is an ordinary character; for RFC 9309 it ends the path.',
              "Keep it for RFC 9309: no line of the draft ends a path."),
        Check("K044", _WARNING, BOTH, "3.3", "C3",
              'The "%" is not followed by two hexadecimal digits: it is an ordinary character.',
              "Write %25 for a percent sign."),
        Check("K045", _WARNING, BOTH, "3.2", "B10",
              'The "#" begins a comment: the path ends before it.',
              "Write %23 in a path; put a space before a comment."),
        Check("K046", _WARNING, BOTH, "3.2.2", "C8",
              "/robots.txt must not appear in a rule: it is always allowed.",
              'Remove the line; if it is the only rule of its record, write "Disallow:".'),
        Check("K047", _WARNING, _DRAFT, "3.2.2", "C1",
              "An earlier rule of the opposite kind matches every URL that this one matches.",
              "Put this line before the other: the first match counts."),
        Check("K048", _NOTE, _DRAFT, "3.2.2", "C1",
              "An earlier rule of the same kind matches every URL that this one matches.",
              "Remove the line."),
        Check("K049", _WARNING, _DRAFT, "3.2.2", "C1",
              '"Allow: /" comes before a Disallow line: later rules have no effect.',
              "Put it last."),
        Check("K050", _NOTE, BOTH, "3.3", "C2", "The Allow line is empty: it matches no URL.",
              'Write "Disallow:", which allows all pages.'),
        Check("K051", _WARNING, BOTH, "3.3", "C5",
              "There is a space in the path: it is part of the path.",
              "Write one line for each path, and %20 for a space."),
        Check("K052", _NOTE, BOTH, "6", "C9",
              "The path has a name that attackers look for: the file reveals it.",
              "Protect the path with a password: a rule cannot hide it."
              " Or name a directory above."),
        # Fields outside of the standards.
        Check("K060", _NOTE, BOTH, "3.2", "B11",
              "No robot that we know of reads a field of this name.",
              'Correct or remove the line; if it is the only rule of its record, write'
              ' "Disallow:".'),
        Check("K061", _WARNING, BOTH, "3.2", "B11",
              "The Sitemap is not a full URL: robots do not find it.",
              "Write the whole URL, from http:// or https:// on."),
        Check("K062", _WARNING, BOTH, "3.2", "B11",
              "The Crawl-delay is not a number of seconds: it is ignored.",
              "Write only a number, for example 10."),
        # The preferences.
        Check("K070", _ERROR, BOTH, "3.2", "B18",
              "The preferences are not a Dictionary of RFC 9651, so the line has no effect, or "
              "they are too long, so the line disallows all known labels.",
              'Write labels in lower case, separated by commas: "train-ai=n, search=y".'),
        Check("K071", _ERROR, BOTH, "3.2", "B18",
              "The value of a label is not a preference: the label has no effect.",
              'Write "y" or "n" in Content-Usage, "yes" or "no" in Content-Signal.'),
        Check("K072", _ERROR, BOTH, "3.2", "B18",
              "The path of the preferences does not begin with a slash: the line has no effect.",
              'Begin the path with "/".'),
        Check("K073", _ERROR, BOTH, "3.2", "B18",
              "The Content-Usage line comes before any User-agent line: it has no effect.",
              'Put "User-agent: *" before it.'),
    )
}
"""The checks by code, in the order of docs/check-codes.md."""
# fmt: on
