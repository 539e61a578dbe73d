"""``scrapy robots audit``: which robots disobeyed a robots.txt, by the log of its server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_koster.audit.auditor import audit
from scrapy_koster.audit.clients import masked, whole
from scrapy_koster.audit.judging import Files, Version
from scrapy_koster.audit.kinds import Kind
from scrapy_koster.audit.ranges import Ranges, networks_in
from scrapy_koster.audit.result import KEYS, Result
from scrapy_koster.audit.textlines import nginx_format
from scrapy_koster.commands.logreading import LogReader, Reading
from scrapy_koster.commands.progress import progress_of
from scrapy_koster.commands.style import joined
from scrapy_koster.commands.subcommand import (
    NOT_RETRIEVED,
    Run,
    Subcommand,
    argument,
    file_option,
    json_option,
    site_named,
    time_of,
    usage_errors,
)
from scrapy_koster.protocol.line import whole_lines

if TYPE_CHECKING:
    from scrapy_koster.audit.access_log import Opened
    from scrapy_koster.commands.style import Line, Style


_DISOBEYED = 1
_ROBOTS_SHOWN = 50
_LINES_SHOWN = 50
_ROBOT_COLUMNS = (
    "ROBOT", "KIND", "REQUESTS", "ROBOTS.TXT", "DISOBEYED", "ONLY BY THIS", "IN GRACE", "GAP",
    "IN 10 S", "",
)  # fmt: skip
_VIOLATION_COLUMNS = ("DISOBEYED", "ROBOT", "LINE", "", "FIRST", "LAST", "FOR EXAMPLE")


class Audit(Subcommand):
    """``scrapy robots audit --robots FILE[@DATE] [--site URL] LOG...``."""

    name = "audit"
    brief = "find robots that disobeyed, in a server's log"
    about = """\
Find the robots that disobeyed your robots.txt, in the log of your web server: the lines they
disobeyed, how often, with examples, the robots that never fetched robots.txt, and how fast each
robot was. Reads logs of Apache, nginx, Caddy, Traefik, IIS, Cloudflare, CloudFront, AWS load
balancers and Google Cloud, also as gz, bz2 or xz. Sends no request. Press Ctrl-C to stop and see
the result so far."""
    example = "scrapy robots audit --robots robots.txt -o audit.html access.log"
    statuses = """\
exit status: 0 no robot disobeyed, 1 a robot disobeyed, 2 wrong usage, 3 a log could not be read
completely, 4 the command failed; the highest that applies"""
    extra = "tools"
    arguments = (
        argument("logs", nargs="+", metavar="LOG", help="log of your server; - is stdin"),
        argument(
            "--robots", metavar="FILE[@DATE]", action="append", required=True,
            help="the robots.txt, and the date from which it applied (2026-11-21); may be repeated",
        ),
        argument("--site", metavar="URL", help="ignore requests to other hosts"),
        argument("--log-format", metavar="FORMAT", help="the log_format of nginx"),
        argument("--reading", choices=[*KEYS.values()], default="draft", help="default: draft"),
        argument(
            "--ranges", metavar="[NAME=]FILE", action="append", default=[],
            help="published address ranges of a robot; may be repeated",
        ),
        argument("--clients", action="store_true", help="show addresses, not networks"),
        json_option("one JSON object"),
        file_option("-o", "--output", "--page", what="write an HTML page"),
    )  # fmt: skip

    def run(self, run: Run) -> Iterator[Line]:
        """Yield what the robots did."""
        run.try_output(run.opts.output)  # before a log of hours is read
        result = _audited(run)
        found = result.to_dict()
        rest = found["not_kept_apart"]
        if rest["violations"] or any(robot["violations"] for robot in found["robots"]):
            run.worse(_DISOBEYED)
        if found["ended"]:
            run.warn("ended by Ctrl-C: what follows is not read", NOT_RETRIEVED)
        for each in found["damaged"]:
            run.warn(f"{each['log']}: {each['why']}", NOT_RETRIEVED)
        if len(found["hosts"]) > 1 and run.opts.site is None:
            hosts = ", ".join(found["hosts"])
            run.output.warn(f"the log is of several hosts ({hosts}): --site leaves out others")
        if run.opts.json:
            yield json.dumps(found)
        else:
            yield from _as_text(found, run.style)
        if run.opts.output is not None:
            # The modules of a page import packages of the extra.
            from scrapy_koster.audit.audit_page import write_audit  # noqa: PLC0415

            write_audit(found, run.opts.output)


def _audited(run: Run) -> Result:
    opts = run.opts
    standards = {key: standard for standard, key in KEYS.items()}
    show = whole if opts.clients else masked
    with usage_errors():
        given = nginx_format(opts.log_format) if opts.log_format is not None else None
    if [*opts.robots, *opts.logs].count("-") > 1:
        raise UsageError("standard input can be read once: give - once")
    site = None if opts.site is None else site_named(opts.site)
    files = Files([_version(run, text) for text in opts.robots])
    ranges = _ranges(run)
    total = _bytes_of(opts.logs)

    def worded(read: int) -> str:
        of_total = f" of {total / 1e6:,.0f}" if total else ""
        return f"{read / 1e6:,.0f}{of_total} MB read"

    with progress_of(total, run.output.warn, worded) as progress:
        reading = Reading(progress)
        with reading.until_interrupted():
            auditor, logs = audit(
                files,
                [(name, _opened(run, name, reading)) for name in opts.logs],
                show,
                given=given,
                site=site,
                ranges=ranges,
            )
    return Result(auditor, logs, standards[opts.reading], show, site, ranges, ended=reading.ended)


def _opened(run: Run, name: str, reading: Reading) -> Opened:
    @contextmanager
    def opened() -> Iterator[BufferedReader]:
        with run.output.opened(name, "the log of a server") as file:
            yield BufferedReader(LogReader(file, reading))

    return opened


def _bytes_of(names: Iterable[str]) -> int:
    """Return how many bytes the logs have, 0 if that is not known of one."""
    sizes = [Path(name).stat().st_size if Path(name).is_file() else 0 for name in names]
    return sum(sizes) if all(sizes) else 0


def _ranges(run: Run) -> Ranges | None:
    """Read [NAME=]FILE; UsageError where one of them cannot be read."""
    networks: dict[str, list[Any]] = {}
    for text in run.opts.ranges:
        name, given, file = text.partition("=")
        if not given or Path(text).is_file():
            name, file = Path(text).stem, text
        try:
            found = networks_in(run.read(file).decode("utf-8", "replace"))
        except ValueError as error:
            raise UsageError(
                f"cannot read {file!r}: {error}; give the JSON that the robot's operator publishes,"
                " or a network a line, such as 192.0.2.0/24"
            ) from None
        networks.setdefault(name.lower(), []).extend(found)
    return Ranges(networks) if networks else None


def _version(run: Run, text: str) -> Version:
    """Read FILE or FILE@DATE; UsageError where one of them cannot be read."""
    name, at, date = text.rpartition("@")
    if not at or Path(text).is_file():
        name, since = text, float("-inf")
    else:
        since = time_of(date)
    return Version(name, since, whole_lines(run.read(name), run.config.max_bytes))


def _as_text(found: dict[str, Any], style: Style) -> Iterator[Line]:
    """Yield tables for people."""
    robots = found["robots"]
    if robots:
        for each in found["kinds"]:
            yield _headline(each, style)
        yield ""
        yield from style.table(_ROBOT_COLUMNS, [_row(robot) for robot in robots[:_ROBOTS_SHOWN]])
    elif found["lines"] > found["unread"]:
        yield "no robot came"
    else:
        yield "no line was read"
    violations = [(robot["name"], each) for robot in robots for each in robot["violated_rules"]]
    violations += [("(others)", each) for each in found["not_kept_apart"]["violated_rules"]]
    if violations:
        yield ""
        shown = [_violation(*each) for each in violations[:_LINES_SHOWN]]
        yield from style.table(_VIOLATION_COLUMNS, shown)
    yield ""
    yield from _sums(found, len(violations))


def _headline(each: dict[str, Any], style: Style) -> Line:
    """Return a sentence, such as "6 AI crawlers came, 2 disobeyed"."""
    came = f"{Kind(each['kind']).came(each['robots'])} came, "
    if not each["disobeyed"]:
        return joined(came, style.green("none disobeyed"))
    return joined(came, style.red(f"{each['disobeyed']:,} disobeyed"))


def _row(robot: dict[str, Any]) -> tuple[str | int, ...]:
    gap, worst = robot["speed"]["gap_secs"]["p50"], robot["speed"]["worst"]["10s"]
    return (
        *(robot[key] for key in ("name", "kind", "requests", "robots_txt_requests", "violations")),
        sum(each["only_by_this"] for each in robot["violated_rules"]),
        robot["in_grace"],
        "" if gap is None else f"{gap} s",
        worst,
        ", ".join(_notes(robot)),
    )


def _notes(robot: dict[str, Any]) -> Iterator[str]:
    asked, speed = robot["asked"], robot["speed"]
    if robot["verified"] is False:
        yield "not from the published addresses"
    if robot["documented"] and robot["violations"]:
        yield f"documented: {robot['documented']}"
    if not asked["ever"]:
        yield "never fetched robots.txt"
    elif asked["after_disobeying"]:
        yield "fetched robots.txt only after disobeying"
    elif asked["pages_before"]:
        count = asked["pages_before"]
        yield f"fetched robots.txt after {count} request{'s' if count > 1 else ''}"
    if (kept := speed["gaps_that_keep_it"]) is not None and kept < 1:
        yield f"kept Crawl-delay {speed['crawl_delay_secs']:g} in {kept:.0%} of gaps"


def _violation(name: str, each: dict[str, Any]) -> tuple[str | int, ...]:
    sample = each["samples"][0] if each["samples"] else ""
    return each["count"], name, each["line"], each["rule"], each["first"], each["last"], sample


def _sums(found: dict[str, Any], violations: int) -> Iterator[Line]:
    rest, unknown = found["not_kept_apart"], found["unknown"]
    yield f"lines: {found['lines']}"
    for count, what in (
        (found["unread"], "of them could not be read"),
        (found["elsewhere"], "of other hosts"),
        (found["browsers"], "of browsers, which are not judged"),
        (found["nameless"], "without a User-Agent"),
        (unknown["requests"], f"of {unknown['names']} programs that may not be robots"),
        (rest["requests"], f"of {rest['names']} further robots, counted together"),
        (rest["clients"], "of further clients without a name, counted together"),
        (max(len(found["robots"]) - _ROBOTS_SHOWN, 0), "more robots: --json has them"),
        (max(violations - _LINES_SHOWN, 0), "more lines disobeyed: --json has them"),
    ):
        if count:
            yield f"  {count} {what}"
    for sample in found["unread_samples"]:
        yield f"    not read: {sample}"
    for each in unknown["most"]:
        if each["violations"]:
            name, count = each["name"], each["violations"]
            yield f"    maybe not a robot: {name}, {count} of its requests are disallowed"
