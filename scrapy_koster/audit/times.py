"""The times of a log, as seconds since the epoch."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

Time: TypeAlias = "bytes | str | float"
"""As a log has it: a text, or in JSON a number of seconds, or of parts of them."""

_MONTHS = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_COMMON = re.compile(
    r"(\d\d)/(\w{3})/(\d{4})[: ](\d\d):(\d\d):(\d\d)(?: ([+-])(\d\d)(\d\d))?", re.ASCII
)
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,]\d{1,9})?"
    r"(?:[Zz]|([+-])(\d\d):?(\d\d)|)",
    re.ASCII,
)
_SECS = re.compile(r"\d{1,20}(?:\.\d{1,9})?", re.ASCII)
# What is larger counts milliseconds, microseconds or nanoseconds.
_MOST_SECS = 1e11


def seconds_of(time: Time) -> int:
    """Return the whole second that *time* is in. Raises ValueError.

    21/Nov/2026:20:00:00 +0000 (Apache, nginx), 2026-11-21T20:00:00+00:00, both in UTC
    where there is no offset, or a number since the epoch.
    """
    if isinstance(time, (int, float)):
        return _scaled(time)
    text = time.decode("latin-1") if isinstance(time, bytes) else time
    if match := _COMMON.fullmatch(text):
        day, month, year, *clock = match.groups()
        return _utc(int(year), _MONTHS.get(month.lower(), 0), int(day), clock)
    if match := _ISO.fullmatch(text):
        years, months, days, *clock = match.groups()
        return _utc(int(years), int(months), int(days), clock)
    if _SECS.fullmatch(text):
        return _scaled(float(text))
    raise ValueError("no time")


def _utc(year: int, month: int, day: int, clock: list[str | None]) -> int:
    hour, minute, second, sign, hours, minutes = clock
    # A leap second is the last of its minute.
    time = int(hour or 0), int(minute or 0), min(int(second or 0), 59)
    at = datetime(year, month, day, *time, tzinfo=timezone.utc)
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return int((at + offset if sign == "-" else at - offset).timestamp())


def _scaled(number: float) -> int:
    if not 0 <= number < 1e20:  # also NaN
        raise ValueError("no time")
    while number >= _MOST_SECS:
        number /= 1000
    return int(number)


def seconds_or_none(time: Time) -> int | None:
    """Return the second that *time* is in, None for an invalid time."""
    try:
        return seconds_of(time)
    except (ValueError, OverflowError, TypeError):
        return None
