"""``scrapy robots audit``: finds robots that disobeyed a robots.txt, in the log of a server."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

from scrapy.exceptions import UsageError

from scrapy_koster.audit.addresses import Ranges, masked, networks_in, whole
from scrapy_koster.audit.auditor import audit
from scrapy_koster.audit.judging import Files, Version
from scrapy_koster.audit.kinds import Kind
from scrapy_koster.audit.result import Result, violated_rules
from scrapy_koster.audit.textlines import NAMED, nginx_format
from scrapy_koster.commands.output import Line, counted, green, opened, progress_of, red, table
from scrapy_koster.commands.subcommand import (
    JSON,
    NOT_RETRIEVED,
    Run,
    Subcommand,
    argument,
    site_named,
    time_of,
    usage_errors,
)
from scrapy_koster.protocol.html_page import page_in_place
from scrapy_koster.protocol.misspelling import has_only_other_lines
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.wording import STANDARD_KEYS

_DISOBEYED = 1
_SHOWN = 50
_ROBOT_COLUMNS = (
    "ROBOT", "KIND", "REQUESTS", "ROBOTS.TXT", "DISOBEYED", "ONLY BY THIS", "IN GRACE", "GAP",
    "IN 10 S", "",
)  # fmt: skip
_VIOLATION_COLUMNS = ("DISOBEYED", "ROBOT", "LINE", "", "FIRST", "LAST", "FOR EXAMPLE")


class Audit(Subcommand):
    """Find robots that disobeyed, in the log of your web server.

    You see which lines of your robots.txt were disobeyed, how often, with examples, which robots
    never fetched the file, and how fast the robots were. Reads logs of Apache, nginx, Caddy,
    lighttpd, HAProxy, Varnish, Squid, Traefik, IIS, Cloudflare, CloudFront, AWS load balancers and
    Google Cloud, also as gz, bz2 or xz. No request is sent. Press Ctrl-C to stop and see the result
    so far.
    """

    example = "scrapy robots audit --robots robots.txt -o audit.html access.log"
    answers = "0 no robot disobeyed, 1 a robot disobeyed"
    extra = "tools"
    arguments = (
        argument("logs", nargs="+", metavar="LOG", help="log of your server; - is stdin"),
        argument(
            "--robots", metavar="FILE[@DATE]", action="append", required=True,
            help="the robots.txt, and the date from which it applied (2026-11-21); may be repeated",
        ),
        argument("--site", metavar="URL", help="ignore requests to other hosts"),
        argument(
            "--log-format", metavar="FORMAT", help="haproxy, squid, or the log_format of nginx"
        ),
        argument("--reading", choices=["draft", "rfc9309"], default="draft", help="default: draft"),
        argument(
            "--ranges", metavar="[NAME=]FILE", action="append", default=[],
            help="published address ranges of a robot; may be repeated",
        ),
        argument("--clients", action="store_true", help="show addresses, not networks"),
        argument("-o", "--output", "--page", metavar="FILE", help="write an HTML page"),
        JSON,
    )  # fmt: skip

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the findings about the robots."""
        run.try_output(run.opts.output)  # fail early: reading a log can take hours
        result = _audited(run)
        found = result.to_dict()
        if any(violated_rules(found)):
            run.worse(_DISOBEYED)
        if found["ended"]:
            run.warn("ended by Ctrl-C: what follows is not read", NOT_RETRIEVED)
        for each in found["damaged"]:
            run.warn(f"{each['log']}: {each['why']}", NOT_RETRIEVED)
        hosts = ", ".join(found["hosts"])
        if len(found["hosts"]) > 1 and run.opts.site is None:
            run.warn(f"the log is of several hosts ({hosts}): --site leaves out others")
        # Some lines name no host: aborted requests, and the log of a server with one site.
        read = found["lines"] - found["unread"]
        if not found["of_site"] and 0 < read <= 2 * found["elsewhere"]:
            run.warn(f"no line is of {found['site']}. The log is of {hosts}", NOT_RETRIEVED)
        yield from run.answer(found, _as_text(found))
        if run.opts.output is not None:
            # audit_page imports jinja2, which only the extra "tools" installs.
            from scrapy_koster.audit.audit_page import write_audit  # noqa: PLC0415

            write_audit(found, run.opts.output)


class _Logs:
    """The logs. A first Ctrl-C ends all logs early, a second Ctrl-C ends the program."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the user has pressed Ctrl-C."""
        self._files: list[BufferedReader] = []

    @contextmanager
    def opened(self, name: str) -> Iterator[BufferedReader]:
        """Open a log, or the null device if the user has pressed Ctrl-C."""
        with opened(os.devnull if self.ended else name, "the log of a server") as file:
            self._files.append(file)
            yield file

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """Handle Ctrl-C, and restore the previous handler at the end."""
        before = signal.signal(signal.SIGINT, self._end)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _end(self, *_: object) -> None:
        if self.ended:
            raise KeyboardInterrupt
        self.ended = True
        # From now on, a read from an open log finds the end of the file. Python repeats a read that
        # Ctrl-C has interrupted, so a read that waits for a pipe finds the end, too.
        null = os.open(os.devnull, os.O_RDONLY)
        for file in self._files:
            if not file.closed:
                os.dup2(null, file.fileno())


def _audited(run: Run) -> Result:
    opts = run.opts
    standards = {key: standard for standard, key in STANDARD_KEYS.items()}
    with usage_errors():
        given = NAMED.get(opts.log_format)
        if given is None and opts.log_format is not None:
            given = nginx_format(opts.log_format)
    run.read_once([*opts.robots, *opts.ranges, *opts.logs])
    site = None if opts.site is None else site_named(opts.site)
    versions = [_version(run, text) for text in opts.robots]
    if len({version.since for version in versions}) < len(versions):
        raise UsageError("two files apply from the same time; give dates: --robots FILE@DATE")
    ranges, logs = _ranges(run), _Logs()
    with logs.until_interrupted():
        auditor, found = audit(
            Files(versions),
            [(name, partial(logs.opened, name)) for name in opts.logs],
            whole if opts.clients else masked,
            reading=standards[opts.reading],
            given=given,
            site=site,
            ranges=ranges,
            progress=progress_of("{lines:,} lines read".format),
        )
    return Result(auditor, found, site, ranges, ended=logs.ended)


def _ranges(run: Run) -> Ranges | None:
    """Return the ranges in the files of ``--ranges``, or None without the option.

    Raises UsageError if a file cannot be read.
    """
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
    """Return the version of the robots.txt in *text*, which is FILE or FILE@DATE.

    Raises UsageError if FILE cannot be read or is no robots.txt, or if DATE is invalid.
    """
    name, at, date = text.rpartition("@")
    if not at or Path(text).is_file():
        name, since = text, float("-inf")
    else:
        since = time_of(date)
    body, cut = run.robots_txt(name)
    if page_in_place(body) or has_only_other_lines(body):
        raise UsageError(
            f"{name!r} is not a robots.txt, but perhaps a log or a web page. Use --robots with your"
            " robots.txt"
        )
    if cut is not None:
        run.warn(f"{printable(name)}: longer than KOSTER_MAX_BYTES = {cut}, the rest is not read")
    return Version(name, since, body)


def _as_text(found: dict[str, Any]) -> Iterator[Line]:
    """Yield tables for people."""
    robots = found["robots"]
    if robots:
        for each in found["kinds"]:
            yield _headline(each)
        yield ""
        yield from table(_ROBOT_COLUMNS, [_row(robot) for robot in robots[:_SHOWN]])
    elif found["lines"] > found["unread"] + found["elsewhere"]:
        yield "no robot came"
    else:
        yield f"no line is of {found['site']}" if found["elsewhere"] else "no line was read"
    violations = [_violation(each) for each in violated_rules(found)]
    if violations:
        yield ""
        yield from table(_VIOLATION_COLUMNS, violations[:_SHOWN])
    yield ""
    yield from _sums(found, len(violations))


def _headline(each: dict[str, Any]) -> Line:
    """Return a sentence, such as "6 AI crawlers came, 2 disobeyed"."""
    disobeyed = each["disobeyed"]
    outcome = red(f"{disobeyed:,} disobeyed") if disobeyed else green("none disobeyed")
    return f"{Kind(each['kind']).came(each['robots'])} came, ", outcome


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
        yield f"fetched robots.txt after {counted(asked['pages_before'], 'request')}"
    if (kept := speed["gaps_that_keep_it"]) is not None and kept < 1:
        yield f"kept Crawl-delay {speed['crawl_delay_secs']:g} in {kept:.0%} of gaps"


def _violation(each: dict[str, Any]) -> tuple[str | int, ...]:
    keys = ("count", "robot", "line", "rule", "first", "last")
    return *(each[key] for key in keys), next(iter(each["samples"]), "")


def _sums(found: dict[str, Any], violations: int) -> Iterator[Line]:
    rest, unknown = found["not_kept_apart"], found["unknown"]
    yield f"lines: {found['lines']}"
    for count, what in (
        (found["unread"], "of them could not be read"),
        (found["elsewhere"], "of other hosts"),
        (found["browsers"], "of browsers, which are not judged"),
        (found["nameless"], "without a User-Agent"),
        (unknown["requests"], f"of {unknown['names']} programs that may not be robots"),
        (rest["requests"], f"of at most {rest['names']} further robots, counted together"),
        (rest["clients"], "of further clients without a name, counted together"),
        (max(len(found["robots"]) - _SHOWN, 0), "more robots: --json has them"),
        (max(violations - _SHOWN, 0), "more lines disobeyed: --json has them"),
    ):
        if count:
            yield f"  {count} {what}"
    for sample in found["unread_samples"]:
        yield f"    not read: {sample}"
    for each in unknown["most"]:
        if each["violations"]:
            name, count = each["name"], each["violations"]
            yield f"    maybe not a robot: {name}, {count} of its requests are disallowed"
