"""The times of a log, as seconds since the epoch."""

import re
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

from scrapy_koster.audit.textlines import decoded

Time: TypeAlias = "bytes | str | float"
"""A time of a log: text, or in JSON a number of seconds, milliseconds or a smaller unit."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_OFFSET = r"(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)"
_COMMON = re.compile(
    rf"(?P<day>\d\d)/(?P<name>\w{{3}})/(?P<year>\d{{4}})[: ]{_CLOCK}(?: {_OFFSET})?", re.ASCII
)
_ISO = re.compile(
    rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)[Tt ]{_CLOCK}(?:[.,]\d{{1,9}})?"
    rf"(?:[Zz]|{_OFFSET}|)",
    re.ASCII,
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
        if match := _COMMON.fullmatch(text) or _ISO.fullmatch(text):
            return _calendar(match.groupdict("0"))
        return _scaled(float(text)) if _SECS.fullmatch(text) else None
    except (ValueError, OverflowError, TypeError):
        return None


def _calendar(found: dict[str, str]) -> int:
    name = found.get("name", "").lower()
    month = _MONTHS.index(name) + 1 if name else int(found["month"])
    date = int(found["year"]), month, int(found["day"])
    # A leap second counts as second 59.
    clock = int(found["hour"]), int(found["minute"]), min(int(found["second"]), 59)
    at = datetime(*date, *clock, tzinfo=timezone.utc)
    offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"]))
    return int((at + offset if found["sign"] == "-" else at - offset).timestamp())


def _scaled(number: float) -> int | None:
    if not 0 <= number < 1e20:  # NaN is no time, either
        return None
    while number >= _MOST_SECS:
        number /= 1000
    return int(number)
