"""The verdicts of a survey, a line for each URL: what may be given to a crawl."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from scrapy_koster.protocol.printable import printable
from scrapy_koster.report.writing import whole

if TYPE_CHECKING:
    from scrapy_koster.protocol.verdict import Verdict

COLUMNS = ("url", "verdict", "line", "because")
NOT_DECIDED = "not decided"


class VerdictFile:
    """Writes CSV: url, verdict (allowed, forbidden, unavailable, not decided), line, because."""

    def __init__(self, file: TextIO) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def write(self, url: str, outcome: Verdict | str | None) -> None:
        """Write a line: *outcome* is the verdict that refuses *url*, or why it is not decided.

        None if a crawl would fetch it.
        """
        match outcome:
            case None:
                row = ("allowed", "", "")
            case str():
                row = (NOT_DECIDED, "", printable(outcome))
            case verdict:
                found = verdict.to_dict()
                word = "unavailable" if found["ground"] == "unavailable" else "forbidden"
                row = (word, found["line"], found["because"])
        self._writer.writerow((url, *row))


@contextmanager
def verdict_file(name: str | None) -> Iterator[VerdictFile | None]:
    """Open the file *name*, which is written whole or not at all; None is no file."""
    if name is None:
        yield None
        return
    with whole(name) as path, path.open("w", encoding="utf-8", newline="") as file:
        yield VerdictFile(file)
