"""The lines of a file that a verdict rests on, with those around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.line import lines
from scrapy_koster.protocol.ruling import Ruling, Standard
from scrapy_koster.protocol.wording import shown

if TYPE_CHECKING:
    from scrapy_koster.commands.style import Line, Style
    from scrapy_koster.protocol.verdict import Verdict

_AROUND = 2
_HEAD = 3
_WIDTH = 100


def context_of(
    verdict: Verdict, rulings: Mapping[Standard, Ruling] | None, style: Style
) -> Iterator[Line]:
    """Yield the lines that each standard goes by side by side, with those around them."""
    known = verdict.known
    if rulings is None or not isinstance(known, Copy):
        return
    text = lines(known.in_utf8.rstrip(b"\r\n"))
    marks = {standard: ruling.rule.number for standard, ruling in rulings.items() if ruling.rule}
    shown_by = (*rulings.values(), verdict.ruling)
    numbers = sorted({number for ruling in shown_by for number in _around(ruling, text)})
    if numbers:
        yield style.dim(f"  {'draft':>5}  {'RFC 9309':>8}")
    before = None
    for number in numbers:
        if before is not None and number > before + 1:
            yield style.dim(f"{'...':>26}")
        before = number
        columns = [">" if marks.get(standard) == number else "" for standard in Standard]
        line = f"  {columns[0]:>5}  {columns[1]:>8} {number:>7}  {shown(text[number - 1], _WIDTH)}"
        yield style.bold(line) if any(columns) else line


def _around(ruling: Ruling, text: list[bytes]) -> Iterator[int]:
    """Yield the numbers of the agent lines of the record, and of the lines around the rule."""
    if ruling.record is None:
        return
    agents = [agent.number for agent in ruling.record.agents]
    yield from agents[:_HEAD]
    middle = ruling.rule.number if ruling.rule else agents[-1] + 1
    yield from range(max(agents[0], middle - _AROUND), min(len(text), middle + _AROUND) + 1)
