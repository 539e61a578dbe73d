"""The base class of the commands of ``scrapy robots``, common arguments, and ``Run``."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from scrapy.utils.spider import DefaultSpider

from scrapy_koster.commands.lookup import QUIET, Basis, LookupSpider
from scrapy_koster.commands.output import Line, file_errors, opened, warn
from scrapy_koster.crawl.config import Config, config_of
from scrapy_koster.extras import need_extra
from scrapy_koster.protocol.line import whole_lines
from scrapy_koster.protocol.nametoken import name_token
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.wording import TEXT_CHARS
from scrapy_koster.writing import try_writing

if TYPE_CHECKING:  # needs the extra "archive"
    from scrapy_koster.archive.folder import Folder

NOT_RETRIEVED = 3
"""The exit status if a robots.txt or a file could not be retrieved or read."""

FAILED = 4
"""The exit status if the command failed."""

Argument: TypeAlias = "tuple[tuple[str, ...], dict[str, Any]]"
"""The positional and the keyword arguments of ``ArgumentParser.add_argument``."""


def argument(*names: str, **options: Any) -> Argument:
    """Return an argument or an option of a command."""
    return names, options


AGENT = argument(
    "--agent",
    metavar="TOKEN",
    help="name of the robot, or its User-Agent header (default: from your settings)",
)
ARCHIVE = argument(
    "--archive", metavar="FOLDER", help="folder of the archive (default: KOSTER_ARCHIVE)"
)
JSON = argument("--json", action="store_true", help="print JSON: see commands.md")
PAGE = argument("-o", "--output", metavar="FILE", help="write an HTML page")

HAS_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:(?![0-9])")
"""Matches the beginning of a URL, but not a host with a port."""

HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")
"""Matches a host that can exist, in lower case."""

DOCS = "https://github.com/scrapy-koster/scrapy-koster/blob/main/docs/"
_STATUSES = """\
2 wrong usage,
3 something could not be retrieved or read, 4 the command failed; the highest that applies"""
_READ_MAX_BYTES = 10_000_000


class Subcommand(ABC):
    """A command of ``scrapy robots``: the arguments and the run.

    The name of a subclass, in lower case, is the name of the command. The docstring is its help.
    The first line is shown in the list of commands.
    """

    arguments: ClassVar[Sequence[Argument]] = ()
    example: ClassVar[str]
    answers: ClassVar[str]
    """The meaning of the exit statuses 0 and 1."""
    extra: ClassVar[str | None] = None
    """The extra that the command needs, or None."""

    @property
    def name(self) -> str:
        """The name of the command."""
        return type(self).__name__.lower()

    def add_to(self, subparsers: Any) -> ArgumentParser:
        """Add a parser with the options of the command to *subparsers*. Return the parser."""
        about = cleandoc(self.__doc__ or "")
        statuses = f"exit status: {self.answers}, {_STATUSES}"
        parser: ArgumentParser = subparsers.add_parser(
            self.name,
            help=about.partition("\n")[0].rstrip("."),
            description=about,
            epilog=f"example:\n  {self.example}\n\n{statuses}\n\nmore: {DOCS}commands.md",
            formatter_class=RawDescriptionHelpFormatter,
        )
        for names, options in self.arguments:
            parser.add_argument(*names, **options)
        # Scrapy's global options are accepted after the name of the command, too.
        group = parser.add_argument_group("Global Options")
        group.add_argument(
            "-s", "--set", dest="set_behind", metavar="NAME=VALUE", action="append",
            default=SUPPRESS, help="set/override setting (may be repeated)",
        )  # fmt: skip
        group.add_argument("-L", "--loglevel", metavar="LEVEL", default=SUPPRESS, help="log level")
        group.add_argument("--logfile", metavar="FILE", default=SUPPRESS, help="log file")
        group.add_argument("--nolog", action="store_true", default=SUPPRESS, help="disable logging")
        return parser

    @abstractmethod
    def run(self, run: Run) -> Iterator[Line]:
        """Yield the lines of the answer, and set the exit status by ``run.worse``."""


class SubcommandParser(ArgumentParser):
    """Reports wrong arguments in a printable line."""

    def error(self, message: str) -> NoReturn:
        """Print *message*, escaped and cut, and exit with the status for wrong usage."""
        super().error(printable(message, TEXT_CHARS))


def choose(parser: ArgumentParser, commands: Mapping[str, Subcommand], **options: Any) -> None:
    """Add the parsers of *commands* to *parser*, of which the user has to choose one."""
    names = "|".join(commands)
    subparsers = parser.add_subparsers(
        metavar=names, required=True, parser_class=SubcommandParser, **options
    )
    for command in commands.values():
        command.add_to(subparsers)


@dataclass
class Run:
    """A run of a command: the options, the settings and the exit status."""

    opts: Namespace
    settings: Settings
    status: int = 0
    """The exit status so far."""

    @cached_property
    def crawler(self) -> Crawler:
        """A crawler with the settings, to build components without a crawl."""
        return Crawler(DefaultSpider, self.settings)

    @cached_property
    def config(self) -> Config:
        """The KOSTER_ settings. Raises UsageError for an invalid setting."""
        with usage_errors():
            return config_of(self.crawler)

    def worse(self, status: int) -> None:
        """Set the exit status to *status*, if *status* is higher."""
        self.status = max(self.status, status)

    def warn(self, message: str, status: int = 0) -> None:
        """Print a problem on standard error, and call ``worse`` with *status*."""
        self.worse(status)
        warn(message)

    def answer(self, facts: dict[str, Any], text: Iterable[Line]) -> Iterable[Line]:
        """Return *facts* as a line of JSON if ``--json`` is given. If not, return *text*."""
        return [json.dumps(facts)] if self.opts.json else text

    def requested(self, url: str) -> str:
        """Return *url* as normalized by Request. A host gets https, with a message.

        Raises UsageError if *url* is invalid.
        """
        whole = url if HAS_SCHEME.match(url) else f"https://{url}"
        site_named(whole)
        with usage_errors():
            found = Request(whole).url
        if not HOST.fullmatch(site_named(found).host):
            raise UsageError(f"no host can have the name in {url!r}")
        if whole != url:
            self.warn(f"{printable(url)}: https is assumed")
        return found

    def read_once(self, names: list[str]) -> None:
        """Raise UsageError if more than one of *names* is standard input."""
        if names.count("-") > 1:
            raise UsageError("standard input can be read once: give - once")

    def read(self, name: str) -> bytes:
        """Return the content of a file, or of standard input if *name* is "-".

        Reads 10,000,000 bytes at most, or KOSTER_MAX_BYTES + 1 if this is more. Raises UsageError.
        """
        most = max(_READ_MAX_BYTES, self.config.max_bytes + 1)
        with opened(name, "a file (check takes a URL with http:// or https://, too)") as file:
            return file.read(most)

    def robots_txt(self, name: str) -> tuple[bytes, int | None]:
        """Return the whole lines of the robots.txt in a file, and the limit in bytes if it is cut.

        Raises UsageError.
        """
        body, limit = self.read(name), self.config.max_bytes
        return whole_lines(body, limit), limit if len(body) > limit else None

    def warn_if_not_obeyed(self) -> None:
        """Print a line if the user's settings switch scrapy-koster off, or to a dry run."""
        settings = self.settings
        if settings.getpriority("ROBOTSTXT_OBEY") and not settings.getbool("ROBOTSTXT_OBEY"):
            self.warn("ROBOTSTXT_OBEY is False: your crawl does not obey the rules")
        elif self.config.dry_run:
            self.warn("KOSTER_DRY_RUN is True: your crawl refuses no request")

    def archive(self, feature: str) -> Folder:
        """Return the archive in the folder of ``--archive``, or of KOSTER_ARCHIVE.

        Raises ArchiveError if there is no archive, and UsageError if no folder is named. Raises
        MissingExtraError, which names *feature*, without the extra ``archive``.
        """
        need_extra("archive", feature)
        path = self.opts.archive or self.config.archive
        if path is None:
            raise UsageError(
                "No archive is named. Use --archive FOLDER, or set KOSTER_ARCHIVE to a folder: the"
                " crawls after that write an archive into it"
            )
        from scrapy_koster.archive.folder import Folder  # noqa: PLC0415  # needs the extra

        return Folder(path)

    def try_output(self, name: str | None) -> None:
        """Raise UsageError if the file *name* cannot be written. None means no file."""
        if name is not None:
            with file_errors(f"cannot write {name!r}"):
                try_writing(name)

    def look_up(self, urls: Collection[str], *, refresh: bool = False) -> dict[str, Basis]:
        """Return the basis of a crawl's decision on each of *urls*. Can be called only once.

        With *refresh*, stored copies are not used. A URL is missing in the result if the crawl
        ended before the robots.txt was fetched.
        """
        found: dict[str, Basis] = {}
        if urls:
            self.settings.setdict({**QUIET, "KOSTER_ARCHIVE": None}, priority="cmdline")
            self.crawl(LookupSpider, urls=urls, found=found, refresh=refresh)
        return found

    def crawl(self, spider: type[Spider], **arguments: Any) -> Crawler:
        """Run a crawl to the end, and return its crawler. Can be called only once."""
        # If Scrapy made the process (``requires_crawler_process``), an error in making the process
        # would exit with status 1. In our commands, this status is an answer.
        has_reactor = self.settings.getbool("TWISTED_REACTOR_ENABLED")
        process = (CrawlerProcess if has_reactor else AsyncCrawlerProcess)(self.settings)
        crawler = process.create_crawler(spider)
        process.crawl(crawler, **arguments)
        process.start()
        return crawler


@contextmanager
def usage_errors() -> Iterator[None]:
    """Raise a ValueError about the user's input as a UsageError."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None


def robot_in(agent: str) -> str:
    """Return the robot in *agent*, the value of ``--agent``.

    A header can begin like the header of a browser, and name a robot after that. In this case, the
    name that an audit finds is returned. Any other *agent* is returned unchanged.
    Raises MissingExtraError for a header, if the extra ``tools`` is not installed.
    """
    if " " not in agent:
        return agent
    from scrapy_koster.audit.naming import Namer  # noqa: PLC0415  # only for a header

    need_extra("tools", "--agent with a whole header")
    name = Namer([]).named(agent)
    return agent if name in (None, name_token(agent)) else str(name)


def is_url(name: str) -> bool:
    """Return whether *name* is meant as an http or https URL."""
    return name.lower().startswith(("http://", "https://"))


def site_named(url: str) -> Site:
    """Return the site of *url*. Raises UsageError if *url* is no http or https URL."""
    with usage_errors():
        if site := site_of(url):
            return site
    raise UsageError(f"not an http or https URL: {url!r}; write https://example.com/page")


def sites_named(text: str) -> list[Site]:
    """Return the site of a URL, or the https and http sites of a host. Raises UsageError."""
    urls = [text] if "://" in text else [f"{scheme}://{text}/" for scheme in ("https", "http")]
    return [site_named(url) for url in urls]


def time_of(text: str) -> float:
    """Return the ISO 8601 time *text* in seconds since the epoch. Raises UsageError if invalid."""
    try:
        time = datetime.fromisoformat(text.strip().upper().replace("Z", "+00:00"))
        return time.replace(tzinfo=time.tzinfo or timezone.utc).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(
            f"Invalid time: {text!r}. Use ISO 8601, for example 2026-11-01T12:00 (UTC) or"
            " 2026-11-01T12:00+02:00"
        ) from None
