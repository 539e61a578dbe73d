"""Crawl-delay, an extension that neither standard has."""

from __future__ import annotations

import math
from collections.abc import Iterator

from scrapy_koster.protocol.robotstxt import Record


def delays(record: Record) -> Iterator[float | None]:
    """Yield the seconds of each Crawl-delay in *record*, None where it is no number of them."""
    for rule in record.rules:
        if rule.field == b"crawl-delay":
            yield _seconds(rule.value)


def _seconds(value: bytes) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
