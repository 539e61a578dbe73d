"""``scrapy robots``: parses the arguments, and runs a command."""

import traceback
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from scrapy_koster.archive.record import ArchiveError
from scrapy_koster.commands.output import print_lines
from scrapy_koster.commands.subcommand import DOCS, FAILED, NOT_RETRIEVED, Run, choose
from scrapy_koster.extras import MissingExtraError, need_extra
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.wording import TEXT_CHARS
from scrapy_koster.report.database import DatabaseError
from scrapy_koster.storage import StorageError


class RobotsCommand(ScrapyCommand):
    """``scrapy robots``, inside and outside of a project."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        """Return the arguments of ``scrapy robots`` for the help."""
        return "<command> ..."

    def short_desc(self) -> str:
        """Return the line for the list of commands that ``scrapy`` prints."""
        return "Check and explain a robots.txt, survey sites, manage copies, report, audit a log"

    def add_options(self, parser: ArgumentParser) -> None:
        """Add the parsers of the commands."""
        # Scrapy imports this module also for ``scrapy crawl``, which needs no subcommand.
        from scrapy_koster.commands.subcommands import SUBCOMMANDS  # noqa: PLC0415

        self._subcommands = SUBCOMMANDS
        super().add_options(parser)
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.epilog = f"example:\n  scrapy robots check robots.txt\n\nmore: {DOCS}commands.md"
        parser.allow_abbrev = False  # an error about an abbreviation would print unescaped text
        choose(parser, SUBCOMMANDS, title="commands", dest="subcommand", prog="scrapy robots")

    def process_options(self, args: list[str], opts: Namespace) -> None:
        """Apply the global options from before and after the command's name.

        Raises UsageError for an argument that is not understood.
        """
        if args:
            what = printable(" ".join(args), TEXT_CHARS)
            raise UsageError(f"not understood: {what}; see scrapy robots {opts.subcommand} -h")
        opts.set = [*opts.set, *getattr(opts, "set_behind", ())]
        super().process_options(args, opts)

    def run(self, args: list[str], opts: Namespace) -> None:  # noqa: ARG002
        """Run the command, and set ``exitcode``."""
        assert self.settings is not None
        run = Run(opts, self.settings)
        subcommand = self._subcommands[opts.subcommand]
        try:
            if subcommand.extra is not None:
                need_extra(subcommand.extra, f"scrapy robots {subcommand.name}")
            # The command continues if the reader of a pipe has ended: `cache forget --all | head`.
            for failure in print_lines(subcommand.run(run)):
                run.warn(failure, FAILED)
        except UsageError as error:
            raise UsageError(printable(str(error), TEXT_CHARS)) from None
        except (ArchiveError, DatabaseError, StorageError) as error:
            run.warn(printable(str(error), TEXT_CHARS), NOT_RETRIEVED)
        except (MissingExtraError, OSError) as error:
            run.warn(str(error), FAILED)
        except KeyboardInterrupt:
            run.warn("stopped by Ctrl-C", FAILED)
        except Exception:  # noqa: BLE001  # uncaught: exit status 1, which is an answer
            for line in traceback.format_exc().splitlines():
                run.warn(line, FAILED)
        self.exitcode = run.status
