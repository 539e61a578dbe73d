"""``scrapy robots report``: what robots.txt did to a crawl, out of the file that it has written."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

from scrapy.exceptions import UsageError

from scrapy_koster.commands.subcommand import (
    Run,
    Subcommand,
    unwritable,
)
from scrapy_koster.crawl.report import files_of, stored_files
from scrapy_koster.crawl.robot import copies_of
from scrapy_koster.protocol.wording import utc
from scrapy_koster.report.database import DatabaseError, reading
from scrapy_koster.report.numbers import csv_lines, read

_ABOUT = """\
Make the page about a crawl from the data that a crawl with KOSTER_REPORT saves. The crawl may
still run, or have been killed."""
_STATUSES = "exit status: 0 done, 2 wrong usage, 3 the file cannot be read, 4 the command failed"
_PAGE = "robots-report.html"
_NOT_READ = 3


class Report(Subcommand):
    """``scrapy robots report [DB] [-o FILE] [--json] [--csv] [--against OLD]``."""

    name = "report"
    brief = "make a page about a crawl"
    about = _ABOUT
    example = "scrapy robots report -o robots-report.html"
    statuses = _STATUSES
    page = "report.md"
    extra = "tools"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add its arguments."""
        parser.add_argument(
            "database",
            nargs="?",
            metavar="DB",
            help="data of a crawl or survey (default: the newest, next to KOSTER_SQLITE_PATH)",
        )
        parser.add_argument(
            "-o",
            "--output",
            metavar="FILE",
            help=f"the page (default: {_PAGE}, unless --json or --csv is given)",
        )
        parser.add_argument("--json", action="store_true", help="print the numbers as one object")
        parser.add_argument("--csv", action="store_true", help="print the sites as CSV")
        parser.add_argument(
            "--against", metavar="OLD", help="data of an older report, to compare with"
        )

    def run(self, run: Run) -> Iterator[str]:
        """Write the page; yield the numbers, or where the page is."""
        # The modules of a page import packages of the extra.
        from scrapy_koster.report.page import write_page  # noqa: PLC0415

        opts = run.opts
        if opts.json and opts.csv:
            raise UsageError("--json or --csv: standard output takes one of them")
        database = opts.database or _newest(run)
        printed = opts.json or opts.csv
        try:
            if opts.output or not printed:
                page = opts.output or _PAGE
                run.try_output(page)
                with stored_files(run.config, copies_of(run.crawler, run.config)) as body_of:
                    write_page(database, page, files=body_of, against=opts.against)
                if not printed:
                    yield f"{page}: the report of {_of_what(database)} ({database})"
            if opts.json:
                yield json.dumps(read(database).to_dict())
            if opts.csv:
                with reading(database) as connection:
                    yield from csv_lines(connection)
        except DatabaseError as error:
            run.warn(str(error), _NOT_READ)
        except OSError as error:
            raise unwritable(opts.output or _PAGE, error) from None


def _of_what(database: str) -> str:
    """Return whether a crawl or a survey has written the data, and when it began."""
    with reading(database) as connection:
        about = dict(connection.execute("SELECT name, value FROM about"))
    kind = "a survey" if about.get("survey") else f"a crawl of spider {about.get('spider')}"
    return f"{kind}, begun {utc(about['started'])}" if "started" in about else kind


def _newest(run: Run) -> str:
    folder = Path(run.config.sqlite_path).absolute().parent
    newest = next(iter(files_of(folder)), None)
    if newest is None:
        raise UsageError(
            f"no crawl has written a report below {str(folder)!r}: set KOSTER_REPORT ="
            f' "{_PAGE}" for a crawl, or name the file of a report'
        )
    return str(newest)
