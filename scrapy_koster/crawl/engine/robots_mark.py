"""The mark in the meta of this package's requests for a robots.txt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

MARK = "koster_robotstxt"
"""The meta key. docs/stats.md documents the key, but not the value."""


def is_for_robots_txt(request: Request) -> bool:
    """Return whether a Fetcher has made *request*."""
    return MARK in request.meta
