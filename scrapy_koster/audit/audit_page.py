"""The page of an audit: the result in sentences and tables, in the layout of a report."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from scrapy_koster.audit.kinds import Kind
from scrapy_koster.audit.result import violated_rules
from scrapy_koster.audit.times import seconds_of
from scrapy_koster.report.html import Table, write_html

_VIOLATIONS_MOST = 10_000

Found = dict[str, Any]
"""The result of ``Result.to_dict``."""

_Columns = Sequence[tuple[str, str, Callable[[Any], Any]]]
"""For each column the heading, the classes of its cells, and a function from a row to the value."""

_ROBOTS: _Columns = (
    ("robot", "text", lambda robot: robot["name"]),
    ("kind", "text", lambda robot: robot["kind"]),
    ("violations", "number", lambda robot: robot["violations"]),
    ("requests", "number", lambda robot: robot["requests"]),
    ("robots.txt requests", "number", lambda robot: robot["robots_txt_requests"]),
    ("first robots.txt request", "time minor", lambda robot: _secs(robot["asked"]["first"])),
    ("requests before it", "number minor", lambda robot: robot["asked"]["pages_before"]),
    ("robots.txt interval", "secs minor", lambda robot: robot["asked"]["every_secs"]),
    ("in grace", "number minor", lambda robot: robot["in_grace"]),
    ("only by the draft", "number minor", lambda robot: robot["by_reading"]["only_draft"]),
    ("only by RFC 9309", "number minor", lambda robot: robot["by_reading"]["only_rfc9309"]),
    ("identified by", "text minor", lambda robot: robot["known_by"]),
    ("documented behavior", "text minor", lambda robot: robot["documented"] or ""),
)
_PACE: _Columns = (
    ("robot", "text", lambda robot: robot["name"]),
    ("most in 10 s", "number", lambda robot: robot["speed"]["worst"]["10s"]),
    ("most in 1 s", "number", lambda robot: robot["speed"]["worst"]["1s"]),
    ("most in 60 s", "number", lambda robot: robot["speed"]["worst"]["60s"]),
    ("gap p10", "secs", lambda robot: robot["speed"]["gap_secs"]["p10"]),
    ("gap p50", "secs", lambda robot: robot["speed"]["gap_secs"]["p50"]),
    ("gap p90", "secs", lambda robot: robot["speed"]["gap_secs"]["p90"]),
    ("Crawl-delay", "secs", lambda robot: robot["speed"]["crawl_delay_secs"]),
    ("gaps that respect it, %", "number", lambda robot: _percent(robot["speed"])),
    ("addresses", "number minor", lambda robot: robot["clients"]),
)
_VIOLATIONS: _Columns = (
    ("violations", "number", lambda each: each["count"]),
    ("robot", "text", lambda each: each["robot"]),
    ("line", "number", lambda each: each["line"]),
    ("text", "text", lambda each: each["rule"]),
    ("only by this reading", "number minor", lambda each: each["only_by_this"]),
    ("bytes", "bytes minor", lambda each: each["bytes"]),
    ("first", "time minor", lambda each: _secs(each["first"])),
    ("last", "time minor", lambda each: _secs(each["last"])),
    ("sample", "text", lambda each: next(iter(each["samples"]), "")),
    ("clients", "text minor", lambda each: ", ".join(each["clients"])),
)
_DAYS: _Columns = (
    ("day", "text", lambda day: day["day"]),
    ("requests", "number", lambda day: day["requests"]),
    ("violations", "number", lambda day: day["violations"]),
)
_UNKNOWN: _Columns = (
    ("requests", "number", lambda program: program["requests"]),
    ("name", "text", lambda program: program["name"]),
    ("disallowed", "number", lambda program: program["violations"]),
)


def write_audit(found: Found, out: str) -> None:
    """Write the page to the file *out*, whole or not at all. Raises OSError."""
    robots = found["robots"]
    write_html(
        out,
        "audit.html",
        _tables(found),
        data={},
        found=found,
        kinds=[(Kind(each["kind"]).came(each["robots"]), each) for each in found["kinds"]],
        guilty=sum(robot["violations"] > 0 for robot in robots),
        violations=sum(robot["violations"] for robot in robots),
        requests=sum(robot["requests"] for robot in robots),
    )


def _tables(found: Found) -> Iterator[Table]:
    robots, violations = found["robots"], [*violated_rules(found)][:_VIOLATIONS_MOST]
    for name, title, about, columns, rows, sort in (
        ("robots", "Robots", "Each robot, and whether it obeyed.", _ROBOTS, robots, 2),
        ("violations", "Disobeyed lines",
         "Each line of robots.txt that a robot disobeyed, with a sample path.",
         _VIOLATIONS, violations, 0),
        ("pace", "Speed",
         "The time between two requests in whole seconds, and the largest bursts.",
         _PACE, robots, 1),
        ("days", "Days", "Requests and violations of robots on each day, in UTC.",
         _DAYS, found["days"], 0),
        ("unknown", "Programs that may not be robots",
         ("Programs that never fetched robots.txt and may not be robots. Their disallowed requests"
          " do not count as violations."),
         _UNKNOWN, found["unknown"]["most"], 0),
        ("unread", "Unreadable lines", "A sample of the log lines that could not be read.",
         (("line", "text", str),), found["unread_samples"], 0),
    ):  # fmt: skip
        heads = {head: key for head, key, _ in columns}
        values = [[value(row) for _, _, value in columns] for row in rows]
        yield Table(name, title, about, heads, values, sort=sort)


def _secs(time: str | None) -> int | None:
    return None if time is None else seconds_of(time)


def _percent(speed: Found) -> int | None:
    kept = speed["gaps_that_keep_it"]
    return None if kept is None else round(100 * kept)
