"""What the spiders yield."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Visit:
    """One page of the matrix, and what became of the request for it."""

    robot: str
    url: str
    fetched: bool
    line: int | None = None
    """The line of /robots.txt by which it was refused."""
    verdict: str = ""
    """The same in words."""


@dataclass
class Page:
    """A page that was fetched."""

    url: str
    status: int
    title: str


@dataclass
class Text:
    """The text of a page, with what the page may be used for (KOSTER_USAGE_FIELD)."""

    url: str
    text: str
    usage: dict[str, Any] = field(default_factory=dict)
