"""The decision of a file on a URL by a standard."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from scrapy_koster.protocol.line import Line


class Standard(Enum):
    """The standard by which a file is read."""

    DRAFT = "draft"
    """draft-koster-robots-00, of 1996."""
    RFC_9309 = "RFC 9309"


class Heading(NamedTuple):
    """How a record begins (RFC 9309: a group), which identifies the record."""

    agents: list[Line]
    """The first hundred User-agent lines."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The decision of a file on a URL, with the deciding line."""

    allowed: bool
    section: str
    """The section of the standard that decided."""
    record: Heading | None
    """The record of the robot, or None. Of several records, the record with the rule."""
    rule: Line | None
    """The Allow or Disallow line that decided, or None."""
    standard: Standard = Standard.DRAFT
    """By which the file was read."""
    name: str = ""
    """The name that decided, if the robot has several names; otherwise ""."""
    is_misspelt: bool = False
    """Whether only misspelt lines, which neither standard has, forbid the URL."""
    also: Ruling | None = None
    """The ruling of the other standard, if both forbid the URL."""
