"""``scrapy robots check``: what the syntax checker finds in files."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from typing import Any

from scrapy_koster.checker.checks import BOTH, CHECKS, Severity
from scrapy_koster.checker.syntax import FINDINGS_LISTED, Finding, check
from scrapy_koster.commands.lookup import Learnt
from scrapy_koster.commands.style import Line, Style, joined
from scrapy_koster.commands.subcommand import (
    DOCS,
    NOT_RETRIEVED,
    Run,
    Subcommand,
    is_url,
    requested,
)
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.ruling import Standard
from scrapy_koster.protocol.standing import Standing, standing_stated
from scrapy_koster.protocol.step import Obey, Pass, Refuse

_ABOUT = """\
Find mistakes in robots.txt files: lines that are invalid by the draft (draft-koster-robots-00),
and lines that the draft and RFC 9309 read differently. Each finding is a line

  name:line:column: severity CODE message (section of the draft)
  URL, line LINE, column COLUMN: ...

and a fix that does not change the reading by the other standard. "only the draft" marks
findings that do not apply to RFC 9309; --reading rfc9309 hides them. The codes are explained in
"""
_CODES = f"{DOCS}check-codes.md"
_STATUSES = """\
exit status: 0 clean, 1 findings, 2 wrong usage, 3 a site's robots.txt could not be retrieved,
4 the command failed"""

_KEYS = {Standard.DRAFT: "draft", Standard.RFC_9309: "rfc9309"}
_READINGS = {**{key: (standard,) for standard, key in _KEYS.items()}, "both": BOTH}
_FINDINGS = 1
_NAME_CHARS = 1000


class Check(Subcommand):
    """``scrapy robots check FILE|URL|-``."""

    name = "check"
    brief = "find mistakes in a robots.txt"
    about = _ABOUT + _CODES
    example = "scrapy robots check --reading rfc9309 robots.txt"
    statuses = _STATUSES
    page = "commands.md#scrapy-robots-check-fileurl-"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add its arguments."""
        parser.add_argument(
            "files",
            nargs="+",
            metavar="FILE|URL|-",
            help="file, site (any URL of it), or standard input",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object for each file")
        parser.add_argument(
            "--all",
            action="store_true",
            help=f"show all findings of a code, not only {FINDINGS_LISTED}",
        )
        parser.add_argument(
            "--level",
            choices=[severity.value for severity in Severity],
            default="note",
            help="lowest severity to show (default: note)",
        )
        parser.add_argument(
            "--reading",
            choices=list(_READINGS),
            default="both",
            help="show findings by this standard (default: both)",
        )

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the findings."""
        opts, max_bytes = run.opts, run.config.max_bytes
        limit = None if opts.all else FINDINGS_LISTED
        for name, body, content_type in _bodies(run):
            if isinstance(body, str):
                run.warn(f"{printable(name)}: {body}", NOT_RETRIEVED)
                continue
            found = check(
                body,
                limit,
                max_bytes=max_bytes,
                content_type=content_type,
                readings=_READINGS[opts.reading],
            )
            findings = _at_least(Severity(opts.level), found)
            run.worse(_FINDINGS if findings else 0)
            if opts.json:
                yield _as_json(name, findings)
            else:
                yield from _as_text(name, findings, run.style)


def _bodies(run: Run) -> Iterator[tuple[str, bytes | str, str | None]]:
    """Yield the name of each file, the file or why there is none, and its Content-Type."""
    names = {name: requested(name) for name in run.opts.files if is_url(name)}
    learnt = run.learn(names.values(), refresh=True)
    for name in run.opts.files:
        if name in names:
            known = learnt.get(names[name])
            yield name, _body(known), known.content_type if known else None
        else:
            yield name, run.read(name), None


def _body(learnt: Learnt | None) -> bytes | str:
    """Return the file that a site has, or why there is none."""
    match learnt.step if learnt else None:
        case Obey(Copy(status=status, body=body)):
            return _answered(status, body)
        case Pass(failure) | Refuse(failure):
            return f"it cannot be retrieved ({printable(failure.reason)})"
        case _:
            return "the crawl ended before robots.txt was fetched"


def _answered(status: int, body: bytes) -> bytes | str:
    match standing_stated(status):
        case Standing.OBEYED:
            return body
        case Standing.RESTRICTED:
            return f"HTTP {status}: it may not be read, and restricts the whole site (section 3.1)"
        case _:
            return f"HTTP {status}: there is no robots.txt"


def _at_least(least: Severity, findings: list[Finding]) -> list[Finding]:
    order = list(Severity)
    grave = order[: order.index(least) + 1]
    return [finding for finding in findings if finding.check.severity in grave]


def _as_text(name: str, findings: list[Finding], style: Style) -> Iterator[Line]:
    """Yield lines for people, of which those of the findings are for programs too."""
    name = printable(name, _NAME_CHARS)
    explained: set[str] = set()
    for finding in findings:
        yield _place(name, finding, style)
        code = finding.check.code
        if code not in explained:
            yield f"    {finding.check.title}"
            explained.add(code)
        yield style.dim(f"    Fix: {finding.check.fix}")
        if finding.more:
            yield style.dim(f"    {finding.more} more {code} are not listed (--all lists them)")
    yield joined(style.bold(name), ": ", _summary(findings, style))


def _place(name: str, finding: Finding, style: Style) -> Line:
    kind = finding.check
    paint = {Severity.ERROR: style.red, Severity.WARNING: style.yellow, Severity.NOTE: style.cyan}
    place = f"{name}:{finding.line}:{finding.column}:"
    if is_url(name):  # which may end with a port
        place = f"{name}, line {finding.line}, column {finding.column}:"
    return joined(
        style.bold(place),
        " ",
        paint[kind.severity](kind.severity.value),
        f" {kind.code} {finding.message} ",
        style.dim(f"({_holds_for(finding)})"),
    )


def _holds_for(finding: Finding) -> str:
    """Return where the finding comes from, and the reading if it is not of both."""
    section = f"section {finding.check.section}"
    if len(finding.readings) == len(BOTH):
        return section
    [reading] = finding.readings
    return f"{section}; only {'the draft' if reading is Standard.DRAFT else reading.value}"


def _summary(findings: list[Finding], style: Style) -> Line:
    if not findings:
        return style.green("clean")
    counts: Counter[Severity] = Counter()
    for finding in findings:
        counts[finding.check.severity] += 1 + finding.more
    parts = [
        _counted(counts[severity], severity.value) for severity in Severity if counts[severity]
    ]
    return f"{_counted(sum(counts.values()), 'finding')}: {', '.join(parts)}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _as_json(name: str, findings: list[Finding]) -> str:
    """Return one JSON object in one line."""
    return json.dumps({"name": name, "findings": [_as_dict(finding) for finding in findings]})


def _as_dict(finding: Finding) -> dict[str, Any]:
    kind = CHECKS[finding.check.code]
    return {
        "line": finding.line,
        "column": finding.column,
        "severity": kind.severity.value,
        "code": kind.code,
        "message": finding.message,
        "section": kind.section,
        "points": kind.points.split(", "),
        "title": kind.title,
        "fix": kind.fix,
        "readings": [_KEYS[reading] for reading in finding.readings],
        "more": finding.more,
    }
