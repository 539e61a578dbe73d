"""The page of an audit: the result as tables and pictures, on the page of a report."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from scrapy_koster.audit.kinds import Kind
from scrapy_koster.audit.times import seconds_of
from scrapy_koster.report import pictures
from scrapy_koster.report.html import rendered
from scrapy_koster.report.overview import Tile
from scrapy_koster.report.table import Column, Table
from scrapy_koster.report.writing import whole

_HERE = Path(__file__).parent
_ROBOTS_MOST = 1000
_VIOLATIONS_MOST = 10_000
_DAYS_MOST = 4000
_FIRST = ("robots", "violations")
"""The tables above the charts."""

Found = dict[str, Any]
"""What ``Result.to_dict`` returns."""

_ROBOTS = [
    Column("robot"),
    Column("kind"),
    Column("violations", "number"),
    Column("requests", "number"),
    Column("robots.txt requests", "number"),
    Column("first robots.txt request", "time", minor=True),
    Column("requests before it", "number", minor=True),
    Column("robots.txt interval", "secs", minor=True),
    Column("in grace", "number", minor=True),
    Column("only by the draft", "number", minor=True),
    Column("only by RFC 9309", "number", minor=True),
    Column("identified by", "text", minor=True),
    Column("documented behavior", "text", minor=True),
]
_PACE = [
    Column("robot"),
    Column("most in 10 s", "number"),
    Column("most in 1 s", "number"),
    Column("most in 60 s", "number"),
    Column("gap p10", "secs"),
    Column("gap p50", "secs"),
    Column("gap p90", "secs"),
    Column("Crawl-delay", "secs"),
    Column("gaps that respect it, %", "number"),
    Column("addresses", "number", minor=True),
]
_VIOLATIONS = [
    Column("violations", "number"),
    Column("robot"),
    Column("line", "number"),
    Column("text"),
    Column("only by this reading", "number", minor=True),
    Column("bytes", "bytes", minor=True),
    Column("first", "time", minor=True),
    Column("last", "time", minor=True),
    Column("sample"),
    Column("clients", "text", minor=True),
]


def write_audit(found: Found, out: str) -> None:
    """Make the page *out*. Raises OSError; it is written whole or not at all."""
    robots = found["robots"]
    tables = list(_tables(found))
    page = rendered(
        "audit.html",
        folder=_HERE,
        rows={"tables": {table.name: table.packed() for table in tables if len(table)}},
        found=found,
        about={"site": found["site"]},
        rest=found["not_kept_apart"],
        kinds=[(Kind(each["kind"]).came(each["robots"]), each) for each in found["kinds"]],
        guilty=sum(robot["violations"] > 0 for robot in robots),
        violations=sum(robot["violations"] for robot in robots),
        requests=sum(robot["requests"] for robot in robots),
        tiles=list(_tiles(found)),
        pictures=list(_pictures(found)),
        first_tables=[table for table in tables if table.name in _FIRST],
        other_tables=[table for table in tables if table.name not in _FIRST],
    )
    with whole(out) as path:
        path.write_text(page, encoding="utf-8")


def _tables(found: Found) -> Iterator[Table]:
    robots = found["robots"][:_ROBOTS_MOST]
    yield _filled(
        Table("robots", "Robots", "Each robot, and whether it obeyed.", _ROBOTS, sort=2),
        map(_robot, robots),
    )
    about = "Each line of robots.txt that a robot disobeyed, with a sample path."
    violations = [(robot["name"], each) for robot in robots for each in robot["violated_rules"]]
    violations += [("(others)", each) for each in found["not_kept_apart"]["violated_rules"]]
    yield _filled(
        Table("violations", "Disobeyed lines", about, _VIOLATIONS),
        (_violation(*each) for each in violations[:_VIOLATIONS_MOST]),
    )
    about = "The time between two requests in whole seconds, and the largest bursts."
    yield _filled(Table("pace", "Speed", about, _PACE, sort=1), map(_pace, robots))
    columns = [Column("requests", "number"), Column("name"), Column("disallowed", "number")]
    about = (
        "Programs that never fetched robots.txt and may not be robots. Their disallowed requests do"
        " not count as violations."
    )
    yield _filled(
        Table("unknown", "Programs that may not be robots", about, columns),
        ((e["requests"], e["name"], e["violations"]) for e in found["unknown"]["most"]),
    )
    about = "A sample of the log lines that could not be read."
    yield _filled(
        Table("unread", "Unreadable lines", about, [Column("line")]),
        ((sample,) for sample in found["unread_samples"]),
    )


def _filled(table: Table, rows: Any) -> Table:
    for row in rows:
        table.add(*row)
    return table


def _robot(robot: Found) -> tuple[Any, ...]:
    asked, by = robot["asked"], robot["by_reading"]
    return (
        robot["name"],
        robot["kind"],
        robot["violations"],
        robot["requests"],
        robot["robots_txt_requests"],
        asked["first"] and seconds_of(asked["first"]),
        asked["pages_before"],
        asked["every_secs"],
        robot["in_grace"],
        by["only_draft"],
        by["only_rfc9309"],
        robot["known_by"],
        robot["documented"] or "",
    )


def _pace(robot: Found) -> tuple[Any, ...]:
    speed = robot["speed"]
    gap, worst, kept = speed["gap_secs"], speed["worst"], speed["gaps_that_keep_it"]
    return (
        robot["name"],
        *(worst[window] for window in ("10s", "1s", "60s")),
        *gap.values(),
        speed["crawl_delay_secs"],
        None if kept is None else round(100 * kept),
        robot["clients"],
    )


def _violation(name: str, each: Found) -> tuple[Any, ...]:
    return (
        each["count"],
        name,
        each["line"],
        each["rule"],
        each["only_by_this"],
        each["bytes"],
        seconds_of(each["first"]),
        seconds_of(each["last"]),
        next(iter(each["samples"]), ""),
        ", ".join(each["clients"]),
    )


def _tiles(found: Found) -> Iterator[tuple[str, list[Tile]]]:
    robots = found["robots"]
    yield (
        f"Robots: {len(robots):,}",
        [
            Tile("disobeyed", sum(each["violations"] > 0 for each in robots), "restricted"),
            Tile("obeyed", sum(not each["violations"] for each in robots), "obeyed"),
            Tile(
                "never fetched robots.txt",
                sum(not each["asked"]["ever"] for each in robots),
                "unavailable",
            ),
            Tile(
                "fetched robots.txt after disobeying",
                sum(each["asked"]["after_disobeying"] for each in robots),
                "unavailable",
            ),
        ],
    )
    yield (
        f"Lines: {found['lines']:,}",
        [
            Tile("from robots", sum(each["requests"] for each in robots), "obeyed"),
            Tile("from browsers, not judged", found["browsers"], "none"),
            Tile("from programs that may not be robots", found["unknown"]["requests"], "none"),
            Tile("without a User-Agent", found["nameless"], "none"),
            Tile("unreadable", found["unread"], "unavailable"),
        ],
    )


def _pictures(found: Found) -> Iterator[pictures.Picture]:
    robots = found["robots"]
    violations = sum(each["violations"] for each in robots)
    excused = sum(each["in_grace"] for each in robots)
    rest = sum(each["requests"] for each in robots) - violations - excused
    yield pictures.whole(
        "obedience",
        "Robot requests",
        "In grace: allowed by an older robots.txt that the robot may still have had.",
        [("obeyed", rest, "obeyed"), ("in grace", excused, "unavailable"),
         ("violations", violations, "restricted")],
    )  # fmt: skip
    if days := _days(found):
        yield pictures.strip(
            "days",
            "Requests by day",
            "Robot requests on each day, in UTC.",
            [("obeyed or in grace", "obeyed"), ("violations", "restricted")],
            days,
        )
    for name, title, about, key in (
        ("worst", "Most violations", "Violations by robot.", "violations"),
        ("most", "Most requests", "Requests by robot.", "requests"),
    ):
        ordered = sorted(robots, key=lambda each: -each[key])
        counts = {each["name"]: each[key] for each in ordered if each[key]}
        yield pictures.bars(name, title, about, counts)


def _days(found: Found) -> list[tuple[str, int, int]]:
    """Return the days from the first to the last, those too on which no robot came."""
    came = {
        date.fromisoformat(each["day"]): (each["requests"] - each["violations"], each["violations"])
        for each in found["days"]
        if each["day"]
    }
    if not came:
        return []
    span = (max(came) - min(came)).days + 1
    if span > _DAYS_MOST:  # one line with a wrong time does that
        return [(str(day), *counts) for day, counts in came.items()]
    days = (min(came) + timedelta(days=n) for n in range(span))
    return [(str(day), *came.get(day, (0, 0))) for day in days]
