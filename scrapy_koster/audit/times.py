"""The times of a log, as seconds since the epoch."""

import re
from datetime import datetime
from typing import TypeAlias

from scrapy_koster.audit.textlines import decoded

Time: TypeAlias = "bytes | str | float"
"""A time of a log: text, or in JSON a number of seconds, milliseconds or a smaller unit."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = r"(\d\d:\d\d:\d\d)"
_OFFSET = r"([+-]\d\d):?(\d\d)"
_COMMON = re.compile(rf"(\d\d)/(\w{{3}})/(\d{{4}})[: ]{_CLOCK}(?: {_OFFSET})?", re.ASCII)
_ISO = re.compile(
    rf"(\d{{4}}-\d\d-\d\d)[Tt ]{_CLOCK}(?:[.,]\d{{1,9}})?(?:[Zz]|{_OFFSET})?", re.ASCII
)
_SECS = re.compile(r"\d{1,20}(?:\.\d{1,9})?", re.ASCII)
# A larger number is in milliseconds, microseconds or nanoseconds.
_MOST_SECS = 1e11


def seconds_of(time: Time) -> int | None:
    """Return *time* in whole seconds since the epoch, or None for an invalid time.

    The formats are 21/Nov/2026:20:00:00 +0000 (Apache, nginx), 2026-11-21T20:00:00+00:00, and a
    number of seconds or smaller units since the epoch. A time without an offset is in UTC.
    """
    try:
        if isinstance(time, (int, float)):
            return _scaled(time)
        text = decoded(time)
        if match := _COMMON.fullmatch(text):
            day, month, year, *clock = match.groups()
            return _calendar(f"{year}-{_MONTHS.index(month.lower()) + 1:02}-{day}", *clock)
        if match := _ISO.fullmatch(text):
            return _calendar(*match.groups())
        return _scaled(float(text)) if _SECS.fullmatch(text) else None
    except (ValueError, OverflowError, TypeError):
        return None


def _calendar(date: str, clock: str, hours: str | None, minutes: str | None) -> int:
    at = datetime.fromisoformat(f"{date}T{clock}{hours or '+00'}:{minutes or '00'}")
    return int(at.timestamp())


def _scaled(number: float) -> int | None:
    if not 0 <= number < 1e20:  # NaN is no time, either
        return None
    while number >= _MOST_SECS:
        number /= 1000
    return int(number)
