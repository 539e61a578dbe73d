"""``scrapy robots check``: what the syntax checker finds in files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from scrapy_koster.checker.checks import CHECKS, Severity
from scrapy_koster.checker.syntax import Finding, check
from scrapy_koster.commands.ink import Ink
from scrapy_koster.protocol.printable import printable

SEVERITIES = {severity.value: severity for severity in Severity}
_NAME_CHARS = 1000


def findings_of(body: bytes, least: Severity, limit: int | None) -> list[Finding]:
    """Return the findings that are at least as grave as *least*."""
    order = list(Severity)
    grave = order[: order.index(least) + 1]
    return [finding for finding in check(body, limit) if finding.check.severity in grave]


def as_text(name: str, findings: list[Finding], ink: Ink) -> Iterator[str]:
    """Yield lines for people, of which those of the findings are for programs too."""
    name = printable(name, _NAME_CHARS)
    explained: set[str] = set()
    for finding in findings:
        yield _place(name, finding, ink)
        code = finding.check.code
        if code not in explained:
            yield f"    {finding.check.title}"
            explained.add(code)
        yield ink.dim(f"    Fix: {finding.check.fix}")
        if finding.more:
            yield ink.dim(f"    {finding.more} more {code} are not listed (--all lists them)")
    yield f"{ink.bold(name)}: {_summary(findings, ink)}"


def _place(name: str, finding: Finding, ink: Ink) -> str:
    kind = finding.check
    paint = {Severity.ERROR: ink.red, Severity.WARNING: ink.yellow, Severity.NOTE: ink.cyan}
    return (
        f"{ink.bold(f'{name}:{finding.line}:{finding.column}:')}"
        f" {paint[kind.severity](kind.severity.value)} {kind.code} {finding.message}"
        f" {ink.dim(f'(section {kind.section})')}"
    )


def _summary(findings: list[Finding], ink: Ink) -> str:
    if not findings:
        return ink.green("clean")
    counts: Counter[Severity] = Counter()
    for finding in findings:
        counts[finding.check.severity] += 1 + finding.more
    parts = [
        _counted(counts[severity], severity.value) for severity in Severity if counts[severity]
    ]
    return f"{_counted(sum(counts.values()), 'finding')}: {', '.join(parts)}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def as_json(name: str, findings: list[Finding]) -> str:
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
        "more": finding.more,
    }
