"""3.4, expiration: how long a copy is fresh, and when a failure may be retried."""

import re
from collections.abc import Iterator, Mapping
from datetime import timezone
from email.utils import parsedate_to_datetime

_ELEMENT = re.compile(r'(?:"(?:[^"\\]|\\.)*"?|[^,"])+', re.DOTALL)
_SECONDS = re.compile(r'("?)([0-9]+)\1')

# RFC 9111 1.2.2: a number too great to represent is taken as 2^31.
_MOST_SECONDS = 2.0**31
# A longer text is not parsed, because int() is slow for a very long year. Dates of RFC 9110 5.6.7
# have at most 33 characters.
_DATE_CHARS = 100


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds from *now* until the time in Retry-After, or None.

    RFC 9110 10.2.3: the field is a number of seconds or a date.
    """
    field = headers.get("retry-after", "")
    secs = _seconds(field)
    if secs is not None:
        return secs
    date = _date(field)
    return None if date is None else max(0.0, date - now)


def stated_life(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the rest of the lifetime that *headers* state for a copy, in seconds, or None.

    The rest is zero or negative if the copy has already expired. An invalid field counts as absent,
    but an Expires of "0" or "-1" means expired.
    """
    # 3.4: "Standard HTTP cache-control mechanisms can be used by both origin
    # server and robots"
    directives = list(_directives(headers))
    if any(name in ("no-cache", "no-store") for name, _ in directives):
        return 0.0
    # RFC 9111 5.3: Expires is ignored if there is a max-age. Of several, the
    # shortest counts (RFC 9111 4.2.1: the first, or the response is stale).
    ages = [_seconds(value) for name, value in directives if name == "max-age"]
    lives = [secs for secs in ages if secs is not None]
    return min(lives) - _age(headers) if lives else _life_to_expires(headers, now=now)


def _directives(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    # RFC 9111 5.4: Pragma counts only if Cache-Control is not present.
    field = headers.get("cache-control", headers.get("pragma", ""))
    for element in _ELEMENT.findall(field):
        name, _, value = element.partition("=")
        yield name.strip().lower(), value.strip()


def _life_to_expires(headers: Mapping[str, str], *, now: float) -> float | None:
    # 3.4: "Specifically robots should take note of Expires header set by the
    # origin server."
    field = headers.get("expires", "")
    # RFC 9111 5.3: the invalid date "0" means already expired. We read "-1", which is as common,
    # in the same way. Any other invalid date counts as absent.
    if field.partition(",")[0].strip() in ("0", "-1"):
        return 0.0
    expires = _date(field)
    if expires is None:
        return None
    # RFC 9111 4.2.1: Expires minus Date, so the server's clock need not be right. Without Date,
    # Expires minus now is the rest of the lifetime, so the age is not subtracted.
    date = _date(headers.get("date", ""))
    return expires - now if date is None else expires - date - _age(headers)


def _age(headers: Mapping[str, str]) -> float:
    # RFC 9111 5.1: the first of several values counts; an invalid value is ignored.
    return _seconds(headers.get("age", "").partition(",")[0]) or 0.0


def _seconds(text: str) -> float | None:
    # RFC 9111 5.2: a recipient accepts the quoted form too.
    digits = _SECONDS.fullmatch(text.strip())
    return None if digits is None else min(float(digits[2]), _MOST_SECONDS)


def _date(text: str) -> float | None:
    if not 0 < len(text) <= _DATE_CHARS:
        return None
    try:
        date = parsedate_to_datetime(text)
        # RFC 9110 5.6.7: all HTTP dates are in UTC. The format of asctime() has no time zone.
        return (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None
