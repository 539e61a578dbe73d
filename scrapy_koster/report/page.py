"""The page of a report, out of the file that a crawl has written."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_koster.report import numbers as of
from scrapy_koster.report.answers import answers, speech_of
from scrapy_koster.report.compare import Compared, compared_with
from scrapy_koster.report.database import reading
from scrapy_koster.report.files import files_of
from scrapy_koster.report.html import rendered
from scrapy_koster.report.overview import pictures_of, tiles
from scrapy_koster.report.table import Table
from scrapy_koster.report.tables import Samples, tables_of
from scrapy_koster.report.writing import is_stream, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_koster.report.files import BodyOf, File
    from scrapy_koster.report.numbers import Numbers


_FIRST = ("why", "closed", "rules")
"""The tables above the charts."""


def no_file(_site: str) -> None:
    """Know of no stored file."""


def write_page(
    database: str, out: str, *, files: BodyOf = no_file, against: str | None = None
) -> None:
    """Make the page *out* of the file of a report.

    *files* returns the stored file of a site, *against* is the file of an older
    report. If there are more than 100,000 sites, all of them are written
    next to the page as CSV, unless the page goes into a device or a pipe. Raises
    DatabaseError and OSError; the page is written whole or not at all.
    """
    with reading(database) as connection:
        numbers = of.numbers_of(connection)
        too_many = numbers.sites > of.EVERY_SITE_UP_TO
        refusing: dict[str, set[int]] = {}
        for site, line, _, _ in numbers.rules:
            refusing.setdefault(site, set()).add(line)
        robot = str(numbers.about.get("robot", ""))
        tables, samples, stored = tables_of(
            connection,
            numbers,
            most=of.SITES_THAT_MATTER if too_many else of.EVERY_SITE_UP_TO,
            samples=partial(of.samples_of, connection),
            files=partial(files_of, body_of=files, robot=robot, refusing=refusing),
        )
        compared = None
        if against is not None:
            with reading(against) as old:
                compared = compared_with(old, connection)
            tables.extend(table for table in compared.tables if len(table))
        beyond = None
        if too_many and not is_stream(out):
            beyond = str(Path(out).with_suffix(".sites.csv"))
            with whole(beyond) as path, path.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in of.csv_lines(connection))
    page = _page(numbers, tables, samples, stored, compared=compared, beyond=beyond)
    with whole(out) as path:
        path.write_text(page, encoding="utf-8")


def _page(
    numbers: Numbers,
    tables: list[Table],
    samples: Samples,
    stored: Mapping[str, File],
    *,
    compared: Compared | None,
    beyond: str | None,
) -> str:
    return rendered(
        "page.html",
        about={"written": 0, "title": "A crawl", **numbers.about},
        numbers=numbers,
        speech=speech_of(numbers),
        answers=answers(numbers, tables),
        tiles=list(tiles(numbers)),
        pictures=list(pictures_of(numbers)),
        first_tables=[table for table in tables if table.name in _FIRST],
        other_tables=[
            table
            for table in tables
            if table.name not in _FIRST and table not in (compared.tables if compared else ())
        ],
        compared=compared,
        beyond=beyond and Path(beyond).name,
        shown_sites=len(next(table for table in tables if table.name == "sites")),
        rows=_rows(numbers, tables, samples),
        files={site: file.packed() for site, file in stored.items()},
    )


def _rows(numbers: Numbers, tables: list[Table], samples: Samples) -> dict[str, Any]:
    return {
        "robot": numbers.about.get("robot", ""),
        "tables": {table.name: table.packed() for table in tables if len(table)},
        "samples": {
            site: [[kind, line, urls] for (kind, line), urls in kinds.items()]
            for site, kinds in samples.items()
        },
    }
