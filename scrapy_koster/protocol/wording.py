"""Rulings, lines and times in words and in JSON. Text from the network is escaped and cut."""

from datetime import datetime, timedelta, timezone
from typing import Any

from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.ruling import Heading, Ruling, Standard

STANDARD_KEYS = {Standard.DRAFT: "draft", Standard.RFC_9309: "rfc9309"}
"""The names of the standards in JSON and in options."""

TEXT_CHARS = 1000
_AGENTS_LISTED = 100
_LAST_SECOND = 253402300799.0  # of the year 9999


def shown(text: bytes, limit: int) -> str:
    """Return bytes, decoded from UTF-8, as at most *limit* printable characters."""
    # A character has at most four bytes, so the cut leaves enough for *limit* characters.
    return printable(text[: 4 * limit + 4].decode(errors="backslashreplace"), limit)


def text_of(line: Line, limit: int) -> str:
    """Return a line, "Field: value", as at most *limit* printable characters."""
    field = shown(line.field.capitalize(), limit)
    return printable(f"{field}: {shown(line.value, limit)}", limit)


def utc(seconds: float) -> str:
    """Return *seconds* since the epoch as a time in ISO 8601, without fractions."""
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    whole = int(min(max(seconds, 0.0), _LAST_SECOND))
    return (epoch + timedelta(seconds=whole)).isoformat().replace("+00:00", "Z")


def because_of(ruling: Ruling, robot: str, rfc9309: Ruling | None = None) -> str:
    """Return in words the reason for *ruling* on *robot*, and the reason for ``ruling.also``.

    *rfc9309* is the ruling by which RFC 9309 allows what *ruling* forbids, or None.
    """
    if rfc9309 is not None:
        return _unlike_rfc9309(ruling, rfc9309, robot)
    section, also = _section_of(ruling), ruling.also
    if also is None:
        return f"{_line_of(ruling, robot)}; {section}"
    if (also.record, also.rule) == (ruling.record, ruling.rule):
        return f"{_line_of(ruling, robot)}; {section}, {_section_of(also)}"
    return f"{_line_of(ruling, robot)}; {section}, and {because_of(also, robot)}"


def _unlike_rfc9309(ruling: Ruling, other: Ruling, robot: str) -> str:
    line = other.rule and f"line {other.rule.number} '{text_of(other.rule, 200)}'"
    by = "if misspellings are corrected" if ruling.is_misspelt else "by the 1996 draft only"
    allows = line or ("no rule applies" if other.record else f"no group for {robot or '*'}")
    return f"{_line_of(ruling, robot)} {by}; RFC 9309 allows it ({allows})"


def _section_of(ruling: Ruling) -> str:
    misspelt = ", misspellings corrected" if ruling.is_misspelt else ""
    return f"{ruling.standard.value} {ruling.section}{misspelt}"


def _line_of(ruling: Ruling, robot: str) -> str:
    if ruling.record is None:
        return f"no group for {robot or '*'}"
    group = f"the group for {_title(ruling.record)}"
    if ruling.rule is None:
        return f"no rule of {group} applies"
    return f"line {ruling.rule.number} '{text_of(ruling.rule, 200)}' in {group}"


def _title(record: Heading) -> str:
    agents = ", ".join(shown(agent.value, 40) for agent in record.agents[:3])
    more = ", ..." if len(record.agents) > 3 else ""
    return f"{agents}{more} (line {record.agents[0].number})"


def ruling_to_dict(ruling: Ruling, robot: str) -> dict[str, Any]:
    """Return *ruling* on *robot* as a dict for JSON."""
    return {
        "allowed": ruling.allowed,
        "section": ruling.section,
        "because": because_of(ruling, robot),
        **lines_to_dict(ruling),
    }


def lines_to_dict(ruling: Ruling) -> dict[str, Any]:
    """Return the rule and the record of a ruling as a dict for JSON."""
    record = _record(ruling.record) if ruling.record else None
    return {**line_to_dict(ruling.rule), "record": record}


def line_to_dict(line: Line | None) -> dict[str, Any]:
    """Return the number and the text of a line as a dict for JSON."""
    if line is None:
        return {"line": None, "rule": None}
    return {"line": line.number, "rule": text_of(line, TEXT_CHARS)}


def _record(record: Heading) -> dict[str, Any]:
    agents = [shown(agent.value, TEXT_CHARS) for agent in record.agents[:_AGENTS_LISTED]]
    return {"line": record.agents[0].number, "agents": agents}
