"""The mark of a request for a /robots.txt that is ours, which every component may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

MARK = "koster_robotstxt"
"""The key of its meta. Its presence is documented in docs/stats.md, its value is not."""


def is_for_robots_txt(request: Request) -> bool:
    """Whether *request* is one of a Fetcher."""
    return MARK in request.meta
