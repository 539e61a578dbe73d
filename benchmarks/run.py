"""The sections of the benchmark, and the command line that runs them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

import archive
import audit
import broad
import contact
import counted
import crawls
import differential
import files
import first_contact
import hostility
import pacing
import page_directives
import passing
import readings
import report_page
import rules
from report import Table, origin, write

# A section takes the number of rounds and yields its tables as they are done.
SECTIONS: dict[str, Callable[[int], Iterator[Table]]] = {
    "broad": broad.tables,
    "first-contact": first_contact.tables,
    "counted": counted.tables,
    "files": files.tables,
    "rules": rules.tables,
    "readings": readings.tables,
    "hostile": hostility.tables,
    "differential": differential.tables,
    "requests": passing.tables,
    "pages": page_directives.tables,
    "contact": contact.tables,
    "crawls": crawls.tables,
    "report": report_page.tables,
    "pacing": pacing.tables,
    "audit": audit.tables,
    "archive": archive.tables,
}


def main() -> int:
    """Run the sections named, or all; the status is 1 where a goal is not met."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--rounds", type=int, default=15, help="of each measurement")
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    options = parser.parse_args()
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no such section: {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    command = " ".join(["python benchmarks", *sys.argv[1:]])
    print(origin(command), flush=True)
    tables = []
    for name in options.sections or SECTIONS:
        for table in SECTIONS[name](options.rounds):
            print(f"\n{table}", flush=True)
            tables.append(table)
    if options.write:
        write(command, tables)
    return int(any(table.unmet for table in tables))
