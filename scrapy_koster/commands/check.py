"""``scrapy robots check``: the findings of the syntax checker in files."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from scrapy_koster.checker.checks import BOTH, Severity
from scrapy_koster.checker.syntax import FINDINGS_LISTED, Finding, check
from scrapy_koster.commands.lookup import NO_ANSWER, Basis
from scrapy_koster.commands.output import Line, Part, bold, counted, cyan, dim, green, red, yellow
from scrapy_koster.commands.subcommand import JSON, NOT_RETRIEVED, Run, Subcommand, argument, is_url
from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.ruling import Standard
from scrapy_koster.protocol.site_status import SiteStatus, status_of_http
from scrapy_koster.protocol.step import Obey, Pass, Refuse
from scrapy_koster.protocol.wording import STANDARD_KEYS, TEXT_CHARS

_READINGS = {**{key: (standard,) for standard, key in STANDARD_KEYS.items()}, "both": BOTH}
_PAINTS = {Severity.ERROR: red, Severity.WARNING: yellow, Severity.NOTE: cyan}
_LEVELS = [severity.value for severity in Severity]
_FINDINGS = 1


class Check(Subcommand):
    """Find mistakes in a robots.txt.

    These are lines that are invalid by the draft (draft-koster-robots-00), and lines that the
    draft and RFC 9309 read differently. A finding is a line

      name:line:column: severity CODE message (section of the draft)
      URL, line LINE, column COLUMN: ...

    and a fix that does not change the reading by the other standard. "only the draft" marks
    findings that do not apply to RFC 9309; hide these with --reading rfc9309. The codes are
    explained in https://github.com/scrapy-koster/scrapy-koster/blob/main/docs/check-codes.md
    """

    example = "scrapy robots check --reading rfc9309 robots.txt"
    answers = "0 clean, 1 findings"
    arguments = (
        argument(
            "files", nargs="+", metavar="FILE|URL|-", help="file, URL of a site, or standard input"
        ),
        JSON,
        argument("--all", action="store_true", help="show all findings of each code"),
        argument("--level", choices=_LEVELS, default="note", help="lowest (default: note)"),
        argument("--reading", choices=[*_READINGS], default="both", help="default: both"),
    )

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the findings."""
        opts, max_bytes = run.opts, run.config.max_bytes
        limit, readings = None if opts.all else FINDINGS_LISTED, _READINGS[opts.reading]
        levels = _LEVELS[: _LEVELS.index(opts.level) + 1]
        run.read_once(opts.files)
        for name, body, kind in _bodies(run):
            if isinstance(body, str):
                run.warn(f"{printable(name)}: {body}", NOT_RETRIEVED)
                continue
            found = check(body, limit, max_bytes=max_bytes, content_type=kind, readings=readings)
            findings = [each for each in found if each.check.severity.value in levels]
            run.worse(_FINDINGS if findings else 0)
            facts = {"name": name, "findings": [*map(_as_dict, findings)]}
            yield from run.answer(facts, _as_text(printable(name, TEXT_CHARS), findings))


def _bodies(run: Run) -> Iterator[tuple[str, bytes | str, str | None]]:
    """Yield the name, the body and the Content-Type of each file.

    If a site has no file, the body is a message (str). The Content-Type is None if unknown.
    """
    names = {name: run.requested(name) for name in run.opts.files if is_url(name)}
    found = run.look_up([*names.values()], refresh=True)
    for name in run.opts.files:
        if name in names:
            basis = found.get(names[name])
            step = basis.step if basis else None
            cut = step.copy.cut_bytes if isinstance(step, Obey) else None
            if cut is not None and run.opts.level != Severity.ERROR.value:
                more = f"longer than KOSTER_MAX_BYTES = {cut}, and the rest is not read (K005)"
                run.warn(f"{printable(name)}: {more}", _FINDINGS)
            yield name, _body(basis), basis.content_type if basis else None
        else:
            yield name, run.read(name), None


def _body(basis: Basis | None) -> bytes | str:
    """Return the file of a site, or the reason why there is no file."""
    match basis.step if basis else None:
        case Obey(CachedRobots(status=status, body=body)):
            site_status = status_of_http(status)
            if site_status is SiteStatus.OBEYED:
                return body
            if site_status is SiteStatus.RESTRICTED:
                return f"HTTP {status}: no file. The draft closes the site, RFC 9309 opens it"
            return f"HTTP {status}: there is no robots.txt"
        case Pass(failure) | Refuse(failure):
            return f"it cannot be retrieved ({printable(failure.reason)})"
        case _:
            return NO_ANSWER


def _as_text(name: str, findings: list[Finding]) -> Iterator[Line]:
    """Yield lines for people. Programs can read the first line of a finding, too."""
    explained: set[str] = set()
    for finding in findings:
        kind = finding.check
        yield _place(name, finding)
        if kind.code not in explained:
            yield f"    {kind.title}"
            explained.add(kind.code)
        yield dim(f"    Fix: {kind.fix}")
        if finding.more:
            yield dim(f"    {finding.more} more {kind.code} are not listed (--all lists them)")
    yield bold(name), ": ", _summary(findings)


def _place(name: str, finding: Finding) -> Line:
    kind, where = finding.check, f"section {finding.check.section}"
    place = f"{name}:{finding.line}:{finding.column}:"
    if is_url(name):  # after a URL, ":3:" looks like a port
        place = f"{name}, line {finding.line}, column {finding.column}:"
    if len(finding.readings) < len(BOTH):
        [reading] = finding.readings
        where += f"; only {'the draft' if reading is Standard.DRAFT else reading.value}"
    severity = _PAINTS[kind.severity](kind.severity.value)
    return bold(place), " ", severity, f" {kind.code} {finding.message} ", dim(f"({where})")


def _summary(findings: list[Finding]) -> Part:
    if not findings:
        return green("clean")
    counts: Counter[str] = Counter()
    for finding in findings:
        counts[finding.check.severity.value] += 1 + finding.more
    parts = [counted(counts[level], level) for level in _LEVELS if counts[level]]
    return f"{counted(counts.total(), 'finding')}: {', '.join(parts)}"


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
        "readings": [STANDARD_KEYS[reading] for reading in finding.readings],
        "more": finding.more,
    }
