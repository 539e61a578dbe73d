"""``scrapy robots report``: the page about a crawl, from the data that the crawl has saved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_koster.commands.subcommand import Run, Subcommand, unwritable
from scrapy_koster.crawl.report import files_of, stored_copies
from scrapy_koster.crawl.robot import copies_of
from scrapy_koster.protocol.wording import utc
from scrapy_koster.report.database import DatabaseError, reading
from scrapy_koster.report.numbers import csv_lines, read

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.config import Config

_PAGE = "robots-report.html"
_NOT_READ = 3


class Report(Subcommand):
    """``scrapy robots report [DB] [-o FILE] [--json] [--csv] [--against OLD]``."""

    name = "report"
    brief = "make a page about a crawl"
    about = """\
Make the page about a crawl from the data that a crawl with KOSTER_REPORT saves. The crawl may
still run, or have been killed."""
    example = "scrapy robots report -o robots-report.html"
    statuses = "exit status: 0 done, 2 wrong usage, 3 the file cannot be read, 4 the command failed"
    page = "report.md"
    extra = "tools"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add its arguments."""
        parser.add_argument(
            "database", nargs="?", metavar="DB", help="data of a report (default: the newest)"
        )
        parser.add_argument("-o", "--output", metavar="FILE", help=f"the page (default: {_PAGE})")
        parser.add_argument("--json", action="store_true", help="print the numbers as one object")
        parser.add_argument("--csv", action="store_true", help="print the sites as CSV")
        parser.add_argument("--against", metavar="OLD", help="data of an older report to compare")

    def run(self, run: Run) -> Iterator[str]:
        """Write the page; yield the numbers, or where the page is."""
        opts = run.opts
        if opts.json and opts.csv:
            raise UsageError("--json or --csv: standard output takes one of them")
        database = opts.database or _newest(run)
        page = opts.output or (None if opts.json or opts.csv else _PAGE)
        run.try_output(page)
        try:
            if page is not None:
                write_report(run.crawler, run.config, database, page, against=opts.against)
            if opts.json:
                yield json.dumps(read(database).to_dict())
            elif opts.csv:
                with reading(database) as connection:
                    yield from csv_lines(connection)
            else:
                yield f"{page}: the report of {_of_what(database)} ({database})"
        except DatabaseError as error:
            run.warn(str(error), _NOT_READ)
        except OSError as error:
            raise unwritable(page, error) from None


def write_report(
    crawler: Crawler, config: Config, database: str, page: str, *, against: str | None = None
) -> None:
    """Write the page about *database*, with the stored files. Raises DatabaseError and OSError."""
    # The modules of a page import packages of the extra.
    from scrapy_koster.report.page import write_page  # noqa: PLC0415

    with stored_copies(config, copies_of(crawler, config)) as copies:
        write_page(database, page, copies=copies, against=against)


def _of_what(database: str) -> str:
    """Return whether a crawl or a survey has written the data, and when it began."""
    with reading(database) as connection:
        about = dict(connection.execute("SELECT name, value FROM about"))
    kind = "a survey" if about.get("survey") else f"a crawl of spider {about.get('spider')}"
    return f"{kind}, begun {utc(about['started'])}" if "started" in about else kind


def _newest(run: Run) -> str:
    folder = Path(run.config.sqlite_path).absolute().parent
    for newest in files_of(folder):
        return str(newest)
    raise UsageError(
        f"no crawl has written a report below {str(folder)!r}: set KOSTER_REPORT ="
        f' "{_PAGE}" for a crawl, or name the file of a report'
    )
