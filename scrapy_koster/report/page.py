"""The page of a report, made of the file that a crawl has written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_koster.report import numbers as of
from scrapy_koster.report.answers import answers, speech_of
from scrapy_koster.report.compare import compared_with
from scrapy_koster.report.database import reading
from scrapy_koster.report.files import files_of
from scrapy_koster.report.html import rendered
from scrapy_koster.report.overview import pictures_of, tiles
from scrapy_koster.report.tables import tables_of
from scrapy_koster.report.writing import is_stream, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_koster.report.files import BodyOf

_FIRST = ("why", "closed", "rules")
"""The tables above the charts."""


def write_page(
    database: str, out: str, *, files: BodyOf = lambda _site: None, against: str | None = None
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
        sites = of.sites_of(connection, of.SITES_THAT_MATTER if too_many else of.EVERY_SITE_UP_TO)
        samples = of.samples_of(connection, {row["site"] for row in sites})
        stored = files_of(sites, files, numbers)
        tables = tables_of(connection, numbers, sites, samples, stored)
        compared = None
        if against is not None:
            with reading(against) as old:
                compared = compared_with(old, connection)
        beyond = Path(out).with_suffix(".sites.csv") if too_many and not is_stream(out) else None
        if beyond is not None:
            with whole(str(beyond)) as path, path.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in of.csv_lines(connection))
    filled = [table for table in (*tables, *(compared.tables if compared else ())) if len(table)]
    page = rendered(
        "page.html",
        about={"written": 0, "title": "A crawl", **numbers.about},
        numbers=numbers,
        speech=speech_of(numbers),
        answers=answers(numbers),
        linked_tables={table.name for table in filled},
        tiles=list(tiles(numbers)),
        pictures=list(pictures_of(numbers)),
        first_tables=[table for table in tables if table.name in _FIRST],
        other_tables=[table for table in tables if table.name not in _FIRST],
        compared=compared,
        beyond=beyond and beyond.name,
        shown_sites=len(sites),
        rows={
            "robot": numbers.about.get("robot", ""),
            "tables": {table.name: table.packed() for table in filled},
            "samples": _packed(samples),
        },
        files={site: file.packed() for site, file in stored.items()},
    )
    with whole(out) as path:
        path.write_text(page, encoding="utf-8")


def _packed(samples: Mapping[str, Mapping[tuple[str, int], list[str]]]) -> dict[str, Any]:
    """Return the sample URLs of each site as the page has them."""
    return {
        site: [[kind, line, urls] for (kind, line), urls in kinds.items()]
        for site, kinds in samples.items()
    }
