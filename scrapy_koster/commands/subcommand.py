"""What a command of ``scrapy robots`` is, and what one run of it is given."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, ClassVar, NoReturn, TypeAlias

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from scrapy.utils.spider import DefaultSpider

from scrapy_koster.commands.lookup import QUIET, Learnt, LookupSpider
from scrapy_koster.commands.output import Output
from scrapy_koster.commands.style import Line, Style
from scrapy_koster.crawl.config import Config, config_of
from scrapy_koster.extras import need_extra
from scrapy_koster.protocol.nametoken import name_token
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.report.writing import try_writing

NOT_RETRIEVED = 3
"""The exit status where an answer could not be had; 2 is for wrong usage."""

Argument: TypeAlias = "tuple[tuple[str, ...], dict[str, Any]]"
"""What ``ArgumentParser.add_argument`` is called with."""


def argument(*names: str, **options: Any) -> Argument:
    """Return an argument or an option of a command."""
    return names, options


def json_option(what: str) -> Argument:
    """Return the option ``--json``."""
    return argument("--json", action="store_true", help=what)


def file_option(*names: str, what: str) -> Argument:
    """Return an option for a file to write."""
    return argument(*names, metavar="FILE", help=what)


AGENT = argument(
    "--agent", metavar="TOKEN",
    help="name of the robot, or its User-Agent header (default: from your settings)",
)  # fmt: skip
ARCHIVE = argument(
    "--archive", metavar="FOLDER", help="folder of the archive (default: KOSTER_ARCHIVE)"
)

FAILED = 4
"""The exit status where there is no answer, or nowhere to write it."""

HAS_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:(?![0-9])")
"""The beginning of a URL, and not of a host with a port."""

_MESSAGE_CHARS = 1000
_READ_MAX_BYTES = 10_000_000
_ASYNCIO_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"


@contextmanager
def usage_errors() -> Iterator[None]:
    """Raise the ValueErrors that are about the user's input as UsageErrors."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None


@dataclass
class Run:
    """One run of a command: its options, and what it may ask for."""

    opts: Namespace
    output: Output
    settings: Settings
    status: int = 0
    """The exit status so far."""

    @cached_property
    def style(self) -> Style:
        """The colours of standard output."""
        return self.output.style()

    @cached_property
    def crawler(self) -> Crawler:
        """A crawler with the settings at hand, which crawls nothing."""
        return Crawler(DefaultSpider, self.settings)

    @cached_property
    def config(self) -> Config:
        """The KOSTER_ settings; UsageError where one is wrong."""
        with usage_errors():
            return config_of(self.crawler)

    def worse(self, status: int) -> None:
        """End with *status*, if it is the highest so far."""
        self.status = max(self.status, status)

    def warn(self, message: str, status: int) -> None:
        """Say what could not be done, and end with *status* at least."""
        self.worse(status)
        self.output.warn(message)

    def requested(self, urls: Iterable[str]) -> list[str]:
        """Return *urls* as Requests have them; https is assumed for a host, and said."""
        found = []
        for url in urls:
            whole = url if HAS_SCHEME.match(url) else f"https://{url}"
            found.append(requested(whole))
            if whole != url:
                self.output.warn(f"{printable(url)}: https is assumed")
        return found

    def read(self, name: str) -> bytes:
        """Return the content of a file, or of standard input if *name* is "-".

        At most 10,000,000 bytes, or KOSTER_MAX_BYTES and one more. UsageError if it cannot be read.
        """
        most = max(_READ_MAX_BYTES, self.config.max_bytes + 1)
        with self.output.opened(name, "a file, a URL with http:// or https://,") as file:
            return file.read(most)

    def try_output(self, name: str | None) -> None:
        """Raise UsageError if a page cannot be written to *name*; None is no page."""
        try:
            if name is not None:
                try_writing(name)
        except (OSError, ValueError) as error:  # ValueError: a name with NUL in it
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot write {name!r}: {reason}") from None

    def learn(self, urls: Iterable[str], *, refresh: bool = False) -> dict[str, Learnt]:
        """Return what a crawl would go by for each of *urls*. It can be called once.

        With *refresh* sites are asked of which there is a fresh copy.
        Those are left out whose site was not asked before the crawl ended.
        """
        wanted = list(urls)
        learnt: dict[str, Learnt] = {}
        if wanted:
            self.settings.setdict(QUIET, priority="cmdline")
            self.crawl(LookupSpider, urls=wanted, learnt=learnt, refresh=refresh)
        return learnt

    def crawl(self, spider: type[Spider], **arguments: Any) -> Crawler:
        """Run a crawl with the settings at hand to its end. It can be called once."""
        process = _crawler_process(self.settings)
        crawler = process.create_crawler(spider)
        process.crawl(crawler, **arguments)
        process.start()
        return crawler


def _crawler_process(settings: Settings) -> AsyncCrawlerProcess | CrawlerProcess:
    """Make the process that Scrapy makes for its own commands.

    Not by ``requires_crawler_process``: what goes wrong there ends with status 1.
    """
    is_asyncio = settings["TWISTED_REACTOR"] == _ASYNCIO_REACTOR
    if settings.getbool("TWISTED_REACTOR_ENABLED") and (
        not is_asyncio or settings.getbool("FORCE_CRAWLER_PROCESS")
    ):
        return CrawlerProcess(settings)
    return AsyncCrawlerProcess(settings)


DOCS = "https://github.com/scrapy-koster/scrapy-koster/blob/main/docs/"


class SubcommandParser(ArgumentParser):
    """Reports wrong arguments in one printable line."""

    def error(self, message: str) -> NoReturn:
        """End with the exit status for wrong usage."""
        super().error(printable(message, _MESSAGE_CHARS))


class Subcommand(ABC):
    """A command of ``scrapy robots``: its help, its arguments and its run."""

    name: ClassVar[str]
    brief: ClassVar[str]
    """A line in the list of commands."""
    about: ClassVar[str]
    """The text above the options."""
    arguments: ClassVar[Sequence[Argument]] = ()
    example: ClassVar[str]
    statuses: ClassVar[str]
    """The exit statuses."""
    extra: ClassVar[str | None] = None
    """The extra of the package that the command needs."""

    def add_to(self, subparsers: Any) -> None:
        """Add the parser of the command, with all its options, to *subparsers*."""
        parser = self.add_parser(subparsers)
        for names, options in self.arguments:
            parser.add_argument(*names, **options)
        _add_global_options(parser)

    def add_parser(self, subparsers: Any) -> ArgumentParser:
        """Return a new parser of *subparsers*, with the help of the command and no arguments."""
        parser: ArgumentParser = subparsers.add_parser(
            self.name,
            help=self.brief,
            description=self.about,
            epilog=f"example:\n  {self.example}\n\n{self.statuses}\n\nmore: {DOCS}commands.md",
            formatter_class=RawDescriptionHelpFormatter,
        )
        return parser

    @abstractmethod
    def run(self, run: Run) -> Iterator[Line]:
        """Yield the lines of the answer, and set the exit status by ``run.worse``."""


def _add_global_options(parser: ArgumentParser) -> None:
    """Accept Scrapy's global options after the name of the command, too."""
    group = parser.add_argument_group("Global Options")
    group.add_argument(
        "-s", "--set", dest="set_behind", metavar="NAME=VALUE", action="append", default=SUPPRESS,
        help="set/override setting (may be repeated)",
    )  # fmt: skip
    group.add_argument("-L", "--loglevel", metavar="LEVEL", default=SUPPRESS, help="log level")
    group.add_argument("--logfile", metavar="FILE", default=SUPPRESS, help="log file")
    group.add_argument("--nolog", action="store_true", default=SUPPRESS, help="disable logging")


def robot_in(agent: str | None, default: str = "") -> tuple[str, bool]:
    """Return the robot that ``--agent`` names, and whether it was found inside of a header.

    A header that begins as that of a browser names its robot further on, where an audit
    finds it too.
    """
    if agent is None or " " not in agent:
        return agent or default, False
    from scrapy_koster.audit.naming import Namer  # noqa: PLC0415  # half a MB

    need_extra("tools", "--agent with a whole header")
    name = Namer([]).named(agent)
    return (agent, False) if name in (None, name_token(agent)) else (str(name), True)


def is_url(name: str) -> bool:
    """Whether *name* is meant as an http or https URL."""
    return name.lower().startswith(("http://", "https://"))


def site_named(url: str) -> Site:
    """Return the site of *url*; UsageError where it names none."""
    with usage_errors():
        if site := site_of(url):
            return site
    raise UsageError(f"not an http or https URL: {url!r}; write https://example.com/page")


def time_of(text: str) -> float:
    """Return the time that *text* names, in seconds since the epoch; UsageError if it is none."""
    try:
        time = datetime.fromisoformat(text.strip().upper().replace("Z", "+00:00"))
        return time.replace(tzinfo=time.tzinfo or timezone.utc).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(
            f"Invalid time: {text!r}. Use ISO 8601, for example 2026-11-01T12:00 (UTC) or"
            " 2026-11-01T12:00+02:00"
        ) from None


def sites_named(text: str) -> list[Site]:
    """Return the site of a URL, or both sites of a host; UsageError if *text* is neither."""
    urls = [text] if "://" in text else [f"{scheme}://{text}/" for scheme in ("https", "http")]
    with usage_errors():
        sites = [site for url in urls if (site := site_of(url))]
    if not sites:
        raise UsageError(f"no http or https URL: {text!r}; write https://example.com or a host")
    return sites


def requested(url: str) -> str:
    """Return *url* as a Request has it, which is what a crawl decides on."""
    site_named(url)
    with usage_errors():
        url = Request(url).url
    site_named(url)
    return url
