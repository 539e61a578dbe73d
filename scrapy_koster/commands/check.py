"""``scrapy robots check``: what the syntax checker finds in files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from scrapy_koster.checker.checks import BOTH, Severity
from scrapy_koster.checker.syntax import FINDINGS_LISTED, Finding, check
from scrapy_koster.commands.style import joined
from scrapy_koster.commands.subcommand import (
    DOCS,
    NOT_RETRIEVED,
    Run,
    Subcommand,
    argument,
    is_url,
    json_option,
    requested,
)
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.ruling import Standard
from scrapy_koster.protocol.standing import Standing, standing_stated
from scrapy_koster.protocol.step import Obey, Pass, Refuse

if TYPE_CHECKING:
    from scrapy_koster.commands.lookup import Learnt
    from scrapy_koster.commands.style import Line, Style


_KEYS = {Standard.DRAFT: "draft", Standard.RFC_9309: "rfc9309"}
_READINGS = {**{key: (standard,) for standard, key in _KEYS.items()}, "both": BOTH}
_LEVELS = [severity.value for severity in Severity]
_FINDINGS = 1
_NAME_CHARS = 1000


class Check(Subcommand):
    """``scrapy robots check FILE|URL|-``."""

    name = "check"
    brief = "find mistakes in a robots.txt"
    about = f"""\
Find mistakes in robots.txt files: lines that are invalid by the draft (draft-koster-robots-00),
and lines that the draft and RFC 9309 read differently. Each finding is a line

  name:line:column: severity CODE message (section of the draft)
  URL, line LINE, column COLUMN: ...

and a fix that does not change the reading by the other standard. "only the draft" marks
findings that do not apply to RFC 9309; --reading rfc9309 hides them. The codes are explained in
{DOCS}check-codes.md"""
    example = "scrapy robots check --reading rfc9309 robots.txt"
    statuses = """\
exit status: 0 clean, 1 findings, 2 wrong usage, 3 a site's robots.txt could not be retrieved,
4 the command failed"""
    arguments = (
        argument(
            "files", nargs="+", metavar="FILE|URL|-", help="file, URL of a site, or standard input"
        ),
        json_option("one JSON object for each file"),
        argument("--all", action="store_true", help="show all findings of each code"),
        argument("--level", choices=_LEVELS, default="note", help="lowest (default: note)"),
        argument("--reading", choices=[*_READINGS], default="both", help="default: both"),
    )

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the findings."""
        opts, max_bytes = run.opts, run.config.max_bytes
        limit, readings = None if opts.all else FINDINGS_LISTED, _READINGS[opts.reading]
        levels = _LEVELS[: _LEVELS.index(opts.level) + 1]
        for name, body, kind in _bodies(run):
            if isinstance(body, str):
                run.warn(f"{printable(name)}: {body}", NOT_RETRIEVED)
                continue
            found = check(body, limit, max_bytes=max_bytes, content_type=kind, readings=readings)
            findings = [each for each in found if each.check.severity.value in levels]
            run.worse(_FINDINGS if findings else 0)
            if opts.json:
                yield json.dumps({"name": name, "findings": [*map(_as_dict, findings)]})
            else:
                yield from _as_text(printable(name, _NAME_CHARS), findings, run.style)


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
            standing = standing_stated(status)
            if standing is Standing.OBEYED:
                return body
            if standing is Standing.RESTRICTED:
                return f"HTTP {status}: it may not be read, and restricts the whole site"
            return f"HTTP {status}: there is no robots.txt"
        case Pass(failure) | Refuse(failure):
            return f"it cannot be retrieved ({printable(failure.reason)})"
        case _:
            return "the crawl ended before robots.txt was fetched"


def _as_text(name: str, findings: list[Finding], style: Style) -> Iterator[Line]:
    """Yield lines for people, of which those of the findings are for programs too."""
    explained: set[str] = set()
    for finding in findings:
        kind = finding.check
        yield _place(name, finding, style)
        if kind.code not in explained:
            yield f"    {kind.title}"
            explained.add(kind.code)
        yield style.dim(f"    Fix: {kind.fix}")
        if finding.more:
            yield style.dim(
                f"    {finding.more} more {kind.code} are not listed (--all lists them)"
            )
    yield joined(style.bold(name), ": ", _summary(findings, style))


def _place(name: str, finding: Finding, style: Style) -> Line:
    kind, where = finding.check, f"section {finding.check.section}"
    paint = {Severity.ERROR: style.red, Severity.WARNING: style.yellow, Severity.NOTE: style.cyan}
    place = f"{name}:{finding.line}:{finding.column}:"
    if is_url(name):  # which may end with a port
        place = f"{name}, line {finding.line}, column {finding.column}:"
    if len(finding.readings) < len(BOTH):
        [reading] = finding.readings
        where += f"; only {'the draft' if reading is Standard.DRAFT else reading.value}"
    return joined(
        style.bold(place),
        " ",
        paint[kind.severity](kind.severity.value),
        f" {kind.code} {finding.message} ",
        style.dim(f"({where})"),
    )


def _summary(findings: list[Finding], style: Style) -> Line:
    if not findings:
        return style.green("clean")
    counts: Counter[str] = Counter()
    for finding in findings:
        counts[finding.check.severity.value] += 1 + finding.more
    parts = [_counted(counts[level], level) for level in _LEVELS if counts[level]]
    return f"{_counted(counts.total(), 'finding')}: {', '.join(parts)}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _as_dict(finding: Finding) -> dict[str, Any]:
    kind = finding.check
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
