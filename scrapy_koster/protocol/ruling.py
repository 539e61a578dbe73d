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
    """The User-agent lines that identify a record (RFC 9309: a group)."""

    agents: list[Line]
    """The first hundred User-agent lines."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The decision of a file on a URL, with the deciding line."""

    allowed: bool
    section: str
    """The section of the standard that decided."""
    record: Heading | None
    """The record with the rule; without a rule, the first record of the robot.

    None if the robot has no record, or if a delay, a usage preference or an HTTP status decided.
    """
    rule: Line | None
    """The line that decided, such as an Allow or Disallow line, or None."""
    standard: Standard = Standard.DRAFT
    """The standard by which the file was read."""
    name: str = ""
    """The name that decided, if the robot has several names; otherwise ""."""
    is_misspelt: bool = False
    """Whether the file was read with its misspelt or hidden lines corrected."""
    also: Ruling | None = None
    """The ruling of RFC 9309, if the draft and RFC 9309 forbid the URL; otherwise None."""
