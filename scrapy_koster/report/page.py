"""The page of a report: one HTML file, which needs no network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader

from scrapy_koster.report import numbers as of
from scrapy_koster.report import pictures
from scrapy_koster.report.compare import Compared, compared_with
from scrapy_koster.report.database import reading
from scrapy_koster.report.files import files_of
from scrapy_koster.report.tables import SHOWN_FIRST, Table, shown, tables_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scrapy_koster.report.files import BodyOf, File
    from scrapy_koster.report.numbers import Numbers
    from scrapy_koster.report.tables import Samples

_FIRST = 5
_HERE = Path(__file__).parent
_PATTERNS = {
    "obeyed": "",
    "none": "M2 2h2v2h-2z",
    "restricted": "M-2 2l4 -4M0 8l8 -8M6 10l4 -4",
    "unavailable": "M0 4h8",
    "unknown": "M4 0v8",
}
"""What tells parts of a bar apart beside their colour, in a square of 8."""


@dataclass(frozen=True)
class Tile:
    """A number, large."""

    what: str
    count: int
    key: str = ""


def no_file(_site: str) -> None:
    """Know of no stored file."""


def write_page(
    database: str, out: str, *, files: BodyOf = no_file, against: str | None = None
) -> None:
    """Make the page *out* of the file of a report.

    *files* returns the stored file of a site, *against* is the file of an older
    report. Where there are more than 100,000 sites all of them are written
    beside the page, as CSV. Raises DatabaseError and OSError; the page is
    written whole or not at all.
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
        if too_many:
            beyond = str(Path(out).with_suffix(".sites.csv"))
            with _whole(beyond) as path, path.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in of.csv_lines(connection))
    page = _page(numbers, tables, samples, stored, compared=compared, beyond=beyond)
    with _whole(out) as path:
        path.write_text(page, encoding="utf-8")


class _whole:  # noqa: N801  # a context manager
    """A file beside that of *name*, which takes its place when it is written."""

    def __init__(self, name: str) -> None:
        self._name = Path(name).absolute()
        self._path = self._name.with_name(f"{self._name.name}.{os.getpid()}.part")

    def __enter__(self) -> Path:
        self._name.parent.mkdir(parents=True, exist_ok=True)
        return self._path

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._path.replace(self._name)
        else:
            with suppress(OSError):
                self._path.unlink()


def _page(
    numbers: Numbers,
    tables: list[Table],
    samples: Samples,
    stored: Mapping[str, File],
    *,
    compared: Compared | None,
    beyond: str | None,
) -> str:
    environment = Environment(loader=FileSystemLoader(_HERE), autoescape=True, trim_blocks=False)
    environment.globals.update(
        number=lambda count: f"{count:,}",
        share=lambda part, whole: f"{100 * part / whole:.1f} %",
        time=lambda secs: shown(secs, "time"),
        swatch=pictures.swatch,
        line_key=pictures.key,
    )
    css, script = ((_HERE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    return environment.get_template("page.html").render(
        policy=f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(script)};"
        " base-uri 'none'; form-action 'none'",
        css=css,
        script=script,
        about={"written": 0, "title": "A crawl", **numbers.about},
        numbers=numbers,
        closed=numbers.closed,
        refused=sum(numbers.refused.values()),
        first_closed=_first(tables, "closed", (1, 3)),
        first_rules=_first(tables, "rules", (0, 1, 2, 3)),
        tiles=list(_tiles(numbers)),
        missed=[each for each in _missed(numbers, tables) if each[1]],
        pictures=list(_pictures(numbers)),
        patterns=_PATTERNS,
        tables=tables,
        first=SHOWN_FIRST,
        compared=compared,
        beyond=beyond and Path(beyond).name,
        shown_sites=len(next(table for table in tables if table.name == "sites")),
        rows=_packed(_rows(numbers, tables, samples)),
        files=_packed({site: file.packed() for site, file in stored.items()}),
    )


def _first(tables: list[Table], name: str, columns: Sequence[int]) -> list[list[Any]]:
    """Return some columns of the rows of a table that stand at the top of the page."""
    [table] = [table for table in tables if table.name == name]
    rows = range(min(_FIRST, len(table)))
    return [[table.values[column][row] for column in columns] for row in rows]


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _packed(value: object) -> str:
    octets = json.dumps(value, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(octets, 9)).decode()


def _rows(numbers: Numbers, tables: list[Table], samples: Samples) -> dict[str, Any]:
    return {
        "robot": numbers.about.get("robot", ""),
        "tables": {table.name: table.packed() for table in tables if len(table)},
        "samples": {
            site: [[kind.value, line, urls] for (kind, line), urls in kinds.items()]
            for site, kinds in samples.items()
        },
    }


def _tiles(numbers: Numbers) -> Iterator[tuple[str, list[Tile]]]:
    totals, outcomes, refused = numbers.totals, numbers.outcomes, numbers.refused
    sites = [
        Tile("obeyed", outcomes["obeyed"], "obeyed"),
        Tile("without robots.txt", outcomes["without robots.txt"], "none"),
        Tile("restricted", outcomes["restricted"], "restricted"),
        Tile("unavailable", outcomes["unavailable"], "unavailable"),
        Tile("deferred now", totals["deferred_now"], "unavailable"),
    ]
    if outcomes[of.NOT_KNOWN]:
        sites.append(Tile("not known: still asked at the end", outcomes[of.NOT_KNOWN]))
    yield f"Sites: {numbers.sites:,}", sites
    yield (
        f"Requests allowed: {numbers.allowed:,}",
        [
            Tile(what, count, "obeyed" if what == "by its rules" else "none")
            for what, count in numbers.allowed_because.items()
        ],
    )
    yield (
        f"Requests refused: {sum(refused.values()):,}",
        [
            Tile("by a line of robots.txt", refused["rule"], "restricted"),
            Tile("restricted: HTTP 401 or 403", refused["restricted"], "restricted"),
            Tile("unavailable: given up", refused["unavailable"], "unavailable"),
            Tile("of these, start requests", totals["start_refused"]),
            Tile("dropped: nofollow, noindex", totals["nofollow"] + totals["noindex"]),
        ],
    )


def _missed(numbers: Numbers, tables: list[Table]) -> Iterator[tuple[str, int, str]]:
    """Yield what, how many, and the table that says which."""
    totals, compared = numbers.totals, numbers.compared
    there = {table.name for table in tables if len(table)}
    for what, count, table in (
        ("sites were closed to us.", numbers.closed, "closed"),
        ("requests were refused by a line of a robots.txt.", numbers.refused["rule"], "rules"),
        (
            "start requests were refused: what is only linked from there was never found.",
            totals["start_refused"],
            "starts",
        ),
        ("sites were given up, because they did not answer.", totals["sites_given_up"], "closed"),
        ("sites are still deferred: they would be asked again.", totals["deferred_now"], "closed"),
        ("sites had not answered when the crawl ended.", numbers.outcomes[of.NOT_KNOWN], "sites"),
        ("links were dropped, because their page says nofollow.", totals["nofollow"], "drops"),
        ("items were dropped, because their page says noindex.", totals["noindex"], "drops"),
        ("files are longer than what is read of one.", totals["cut"], "hazards"),
        (
            "decisions, of those that were compared, refuse what RFC 9309 allows.",
            compared["stricter"],
            "",
        ),
        (
            "decisions, of those that were compared, allow what RFC 9309 forbids.",
            compared["looser"],
            "hazards",
        ),
    ):
        yield what, count, table if table in there else ""


def _pictures(numbers: Numbers) -> Iterator[pictures.Picture]:
    keys = ("obeyed", "none", "restricted", "unavailable", "unknown")
    yield pictures.whole(
        "outcomes",
        "Outcomes",
        "What became of the sites.",
        [(*item, key) for item, key in zip(numbers.outcomes.items(), keys, strict=True)],
    )
    compared = numbers.compared
    yield pictures.whole(
        "compared",
        "The draft against RFC 9309",
        f"How both decide on {sum(compared.values()):,} requests that were compared: the first"
        " hundred, then one of 64.",
        [
            ("agree", compared["agree"], "obeyed"),
            ("the draft is stricter", compared["stricter"], "unavailable"),
            ("the draft is looser", compared["looser"], "restricted"),
        ],
    )
    totals = numbers.totals
    copies = {
        "fetched": totals["fetches"],
        "from storage": totals["from_storage"],
        "renewed by 304": totals["renewed"],
    }
    for name, title, about, counts in (
        ("statuses", "Statuses", "What the sites answered last.", numbers.statuses),
        ("copies", "Copies", "Where copies of robots.txt came from.", copies),
        ("ages", "Age of the copies", "When the report was written.", numbers.ages),
        ("reasons", "Failures", "Attempts that failed, by reason.", numbers.failures),
    ):
        yield pictures.bars(name, title, about, counts)
    yield pictures.timeline(
        "timeline",
        "Timeline",
        "Sites that were asked, answered, and began to be deferred",
        ("asked", "answered", "deferred"),
        [row[:4] for row in numbers.minutes],
    )
