"""``scrapy robots report``: the page about a crawl, from the data that the crawl has saved."""

import json
from collections.abc import Iterator

from scrapy.exceptions import UsageError

from scrapy_koster.commands.subcommand import JSON, PAGE, Run, Subcommand, argument
from scrapy_koster.report.database import reading
from scrapy_koster.report.extension import folder_of, report_files, write_report
from scrapy_koster.report.numbers import csv_lines, read

_PAGE = "robots-report.html"


class Report(Subcommand):
    """Make a page about a crawl.

    The data is saved by a crawl with KOSTER_REPORT. The crawl may still run, or have been killed.
    By default the page is robots-report.html.
    """

    example = "scrapy robots report -o robots-report.html"
    answers = "0 done"
    extra = "tools"
    arguments = (
        argument(
            "database", nargs="?", metavar="DB", help="data of a report (default: the newest)"
        ),
        PAGE,
        JSON,
        argument("--csv", action="store_true", help="print the sites as CSV"),
        argument("--against", metavar="OLD", help="data of an older report to compare"),
    )

    def run(self, run: Run) -> Iterator[str]:
        """Write the page, unless only numbers are wanted. Yield the numbers or the page's path."""
        opts = run.opts
        if opts.json and opts.csv:
            raise UsageError("--json or --csv: standard output takes one of them")
        if opts.against and not opts.output and (opts.json or opts.csv):
            raise UsageError("--against needs a page: add -o FILE, or omit --json and --csv")
        database = opts.database or _newest(run)
        page = opts.output or (None if opts.json or opts.csv else _PAGE)
        run.try_output(page)
        if page is not None:
            write_report(run.config, database, page, against=opts.against)
        if opts.json:
            yield json.dumps(read(database))
        elif opts.csv:
            with reading(database) as connection:
                yield from csv_lines(connection)
        else:
            yield f"{page}: the report of {database}"


def _newest(run: Run) -> str:
    folder = folder_of(run.config)
    for newest in report_files(folder):
        return str(newest)
    raise UsageError(
        f"no crawl has written a report below {str(folder.parent)!r}: set KOSTER_REPORT ="
        f' "{_PAGE}" for a crawl, or name the file of a report'
    )
