"""Rulings and delays as JSON can hold them. Text from the network is made printable and cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.wording import because_of, shown, text_of

if TYPE_CHECKING:
    from scrapy_koster.protocol.delay import Delay
    from scrapy_koster.protocol.line import Line
    from scrapy_koster.protocol.override import Override
    from scrapy_koster.protocol.ruling import Heading, Ruling

TEXT_CHARS = 1000
_AGENTS_LISTED = 100


def ruling_to_dict(ruling: Ruling, robot: str) -> dict[str, Any]:
    """Return *ruling*, of a file that *robot* obeys."""
    return {
        "allowed": ruling.allowed,
        "section": ruling.section,
        "because": because_of(ruling, robot),
        **lines_to_dict(ruling),
    }


def lines_to_dict(ruling: Ruling) -> dict[str, Any]:
    """Return the lines that a ruling rests on."""
    return {**_rule(ruling.rule), "record": _record(ruling.record) if ruling.record else None}


def delay_to_dict(delay: Delay) -> dict[str, Any]:
    """Return *delay*."""
    return {"secs": delay.secs, **_rule(delay.line)}


def override_to_dict(override: Override) -> dict[str, Any]:
    """Return *override*."""
    reason = printable(override.reason, TEXT_CHARS)
    return {"site": str(override.site), "reason": reason, "until": override.until.isoformat()}


def _rule(line: Line | None) -> dict[str, Any]:
    if line is None:
        return {"line": None, "rule": None}
    return {"line": line.number, "rule": text_of(line, TEXT_CHARS)}


def _record(record: Heading) -> dict[str, Any]:
    agents = [shown(agent.value, TEXT_CHARS) for agent in record.agents[:_AGENTS_LISTED]]
    return {"line": record.agents[0].number, "agents": agents}
