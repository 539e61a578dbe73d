"""The arguments of ``scrapy robots``, and what ``--help`` says of them."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from typing import Any, NoReturn

from scrapy.commands import ScrapyHelpFormatter

from scrapy_koster.checker.checks import Severity
from scrapy_koster.checker.syntax import FINDINGS_LISTED
from scrapy_koster.protocol.printable import printable

_MESSAGE_CHARS = 1000

_CHECK = """\
Tell where robots.txt files leave the draft (draft-koster-robots-00), and where a
reader of RFC 9309 takes them otherwise. Each finding is a line

  name:line:column: severity CODE message (section of the draft)

and how to fix it. The codes are in docs/check-codes.md."""
_CHECK_STATUS = """\
exit status: 0 clean, 1 findings, 2 wrong usage, 3 a site's robots.txt could not be retrieved"""

_EXPLAIN = """\
Tell whether a robot may fetch a URL, and which line of the site's robots.txt says so.
It is asked for as a crawl with the settings at hand would ask, or taken from FILE."""
_EXPLAIN_STATUS = """\
exit status: 0 allowed, 1 forbidden, 2 wrong usage, 3 the robots.txt could not be retrieved;
of several URLs the highest"""

_CACHE = """\
Look at what the configured storage (KOSTER_STORAGE) knows of sites, and forget it."""
_CACHE_STATUS = """\
exit status: 0 done, 1 nothing is stored of a site, 2 wrong usage, 3 the storage failed"""


_HELP = {
    "check": "tell where a robots.txt leaves the draft",
    "explain": "tell which line allows or forbids a URL",
    "cache": "list, show and forget stored copies",
    "list": "list the sites that are stored",
    "show": "show what is stored of a site",
    "forget": "forget sites",
}


class _Formatter(RawDescriptionHelpFormatter, ScrapyHelpFormatter):
    """Keeps the line ends of what is said below and above the options."""


class _Parser(ArgumentParser):
    """Says what is wrong with arguments in one printable line."""

    def error(self, message: str) -> NoReturn:
        """End with the exit status for wrong usage."""
        super().error(printable(message, _MESSAGE_CHARS))


def add_commands(parser: ArgumentParser) -> None:
    """Add a parser for each of the commands to that of ``scrapy robots``."""
    parser.allow_abbrev = False  # its message shows an ambiguous argument as it is
    verbs = parser.add_subparsers(
        title="commands", dest="verb", metavar="", prog="scrapy robots", parser_class=_Parser
    )
    _add_check(verbs)
    _add_explain(verbs)
    _add_cache(verbs)


def _parser(verbs: Any, name: str, about: str, statuses: str) -> ArgumentParser:
    parser: ArgumentParser = verbs.add_parser(
        name,
        help=_HELP[name],
        description=about,
        epilog=statuses,
        formatter_class=_Formatter,
    )
    return parser


def _add_common(parser: ArgumentParser) -> None:
    """Take Scrapy's options behind the command too; others stand before it."""
    group = parser.add_argument_group("Global Options")
    group.add_argument(
        "-s", "--set", dest="set_behind", metavar="NAME=VALUE", action="append", default=SUPPRESS,
        help="set/override setting (may be repeated)",
    )  # fmt: skip
    group.add_argument("-L", "--loglevel", metavar="LEVEL", default=SUPPRESS, help="log level")
    group.add_argument("--logfile", metavar="FILE", default=SUPPRESS, help="log file")
    group.add_argument(
        "--nolog", action="store_true", default=SUPPRESS, help="disable logging completely"
    )


def _add_check(verbs: Any) -> None:
    parser = _parser(verbs, "check", _CHECK, _CHECK_STATUS)
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE|URL|-",
        help="file, site (any URL of it), or standard input",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each file")
    parser.add_argument(
        "--all", action="store_true", help=f"list more than {FINDINGS_LISTED} findings of one code"
    )
    parser.add_argument(
        "--level",
        choices=[severity.value for severity in Severity],
        default="note",
        help="leave out what is less grave (default: note)",
    )
    _add_common(parser)


def _add_explain(verbs: Any) -> None:
    parser = _parser(verbs, "explain", _EXPLAIN, _EXPLAIN_STATUS)
    parser.add_argument("urls", nargs="+", metavar="URL", help="http or https URL of a page")
    parser.add_argument(
        "--agent",
        metavar="TOKEN",
        help="name token of the robot, or its User-Agent header (default: of the settings)",
    )
    parser.add_argument(
        "--robots", metavar="FILE", help="a robots.txt to go by; - for standard input"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each URL")
    _add_common(parser)


def _add_cache(verbs: Any) -> None:
    parser = _parser(verbs, "cache", _CACHE, _CACHE_STATUS)
    actions = parser.add_subparsers(title="actions", dest="cache_verb", metavar="", required=True)
    listing = _parser(actions, "list", "List the sites that are stored.", _CACHE_STATUS)
    listing.add_argument("--json", action="store_true", help="one JSON object for each site")
    show = _parser(actions, "show", "Show what is stored of a site.", _CACHE_STATUS)
    show.add_argument("site", metavar="SITE", help="URL of the site, or host and port")
    show.add_argument("--json", action="store_true", help="one JSON object")
    forget = _parser(actions, "forget", "Forget sites: they are asked anew.", _CACHE_STATUS)
    forget.add_argument("sites", nargs="*", metavar="SITE", help="URL of a site, or host and port")
    forget.add_argument("--all", action="store_true", help="forget all sites")
    for action in (listing, show, forget):
        _add_common(action)
