"""What a kind of findings is: how grave, by which standards, and how it is fixed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from scrapy_koster.protocol.ruling import Standard


class Severity(Enum):
    """How much of what the author meant is at stake."""

    ERROR = "error"
    """Lines without effect, or a file without one."""
    WARNING = "warning"
    """Two readers of the file part, or the author is likely mistaken."""
    NOTE = "note"
    """The file leaves the letter of a standard and nothing is lost, or it is good to know."""


BOTH: Collection[Standard] = tuple(Standard)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is looked for. The code never changes its meaning."""

    code: str
    severity: Severity
    section: str
    """The section of the draft that it rests on."""
    points: str
    """The rows of the decision table in docs/semantics.md."""
    title: str
    fix: str
    """What to do. By the readings that have no such finding, it changes nothing."""
    readings: Collection[Standard] = BOTH
    """The standards by which a file has this finding."""
