"""Crawl-delay and Request-rate: the time between the visits of a robot.

Neither standard has these fields. Both standards allow extensions (3.2).
"""

import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

from scrapy_koster.protocol.defect import guarded, returned
from scrapy_koster.protocol.line import Line, names_any
from scrapy_koster.protocol.wording import line_to_dict, text_of

# "1/10", "30/1m", "1/5m 0600-0845". The time of the day is not read: the rate always applies.
_RATE = re.compile(rb"([0-9]{1,9})[ \t]*/[ \t]*([0-9]{1,9})[ \t]*([smh]?)(?:[ \t].*)?", re.DOTALL)
# A shorter delay is ignored, because the timers of event loops are not more exact.
_LEAST_SECS = 0.001
_UNIT_SECS = {b"": 1, b"s": 1, b"m": 60, b"h": 3600}


class Delay(NamedTuple):
    """The requested time between two visits, and its line in the robots.txt."""

    secs: float
    """The least time between two visits, in seconds. ``crawl/pacing`` decides how it is counted."""
    line: Line | None
    """None if the parser does not name the line."""

    def because(self) -> str:
        """Return in words why a site with this delay is not visited."""
        asked = f"it asks for {self.secs:g} s between two visits"
        if self.line is not None:
            asked = f"line {self.line.number} '{text_of(self.line, 200)}'"
        return f"{asked}, which is longer than KOSTER_CRAWL_DELAY_MAX_SECS"

    def to_dict(self) -> dict[str, Any]:
        """Return the delay as a dict for JSON."""
        return {"secs": self.secs, **line_to_dict(self.line)}


class CrawlDelay(Enum):
    """KOSTER_CRAWL_DELAY: whether a crawl keeps the delays that sites request."""

    IGNORE = "ignore"
    OBEY = "obey"
    """A delay longer than KOSTER_CRAWL_DELAY_MAX_SECS is shortened to that value."""
    REFUSE = "refuse"
    """A site with a delay longer than KOSTER_CRAWL_DELAY_MAX_SECS is not visited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The settings of a crawl for delays."""

    choice: CrawlDelay
    max_secs: float

    @property
    def obeys(self) -> bool:
        """Whether the crawl keeps delays."""
        return self.choice is not CrawlDelay.IGNORE

    def too_long(self, delay: Delay | None) -> Delay | None:
        """Return *delay* if the crawl does not visit a site with this delay, or None."""
        refuses = self.choice is CrawlDelay.REFUSE
        return delay if refuses and delay is not None and delay.secs > self.max_secs else None

    def kept(self, secs: float) -> float:
        """Return the time between two visits to a site with a delay of *secs*, in seconds."""
        return min(secs, self.max_secs)


def delay_of(parser: Any, robot: str | bytes) -> Delay | None:
    """Return the longest delay for *robot*, or None. Raises ParserDefectError.

    If *parser* has no method ``lines``, but the method ``crawl_delay`` of Scrapy 2.18, the ``line``
    of the delay is None.
    """
    if callable(getattr(parser, "lines", None)):
        lines = guarded(parser, "lines", lambda: parser.lines(robot, *FIELDS))
        if not isinstance(lines, Iterable):
            raise returned(parser, "lines", lines, "lines")
        return guarded(parser, "lines", lambda: longest_delay(lines))
    crawl_delay = getattr(parser, "crawl_delay", None)
    secs: Any = crawl_delay and guarded(parser, "crawl_delay", lambda: crawl_delay(robot))
    if secs is None:
        return None
    if isinstance(secs, bool) or not isinstance(secs, (int, float, Decimal)):
        raise returned(parser, "crawl_delay", secs, "a number of seconds or None")
    return Delay(float(secs), None) if _LEAST_SECS <= float(secs) < math.inf else None


def delay_or_limit(
    parser: Any, robot: str | bytes, *, pace: Pace, failed: Callable[[Exception], None]
) -> Delay | None:
    """Return the result of ``delay_of``. If it raises, call *failed* and return the maximum.

    The maximum is KOSTER_CRAWL_DELAY_MAX_SECS: a defect of a parser must not make visits faster.
    """
    try:
        return delay_of(parser, robot)
    except Exception as error:  # noqa: BLE001
        failed(error)
        return Delay(pace.max_secs, None)


def names_delay(body: bytes) -> bool:
    """Return whether a file may have a delay. For speed: most files have no delay."""
    return names_any(body, FIELDS)


def longest_delay(lines: Iterable[Line]) -> Delay | None:
    """Return the longest delay of a Crawl-delay or Request-rate line, or None."""
    found = [
        Delay(secs, line)
        for line in lines
        if line.field in _READ and (secs := _READ[line.field](line.value) or 0.0) >= _LEAST_SECS
    ]
    return max(found, key=lambda delay: delay.secs, default=None)


def seconds(value: bytes) -> float | None:
    """Return the value of a Crawl-delay line in seconds, or None if it is no number of seconds."""
    with suppress(ValueError):
        # float() accepts underscores, which are not allowed here.
        if b"_" not in value and 0 <= (secs := float(value)) < math.inf:
            return secs
    return None


def _seconds_of_rate(value: bytes) -> float | None:
    rate = _RATE.fullmatch(value.lower())
    if rate is None or not int(rate[1]):
        return None
    return int(rate[2]) * _UNIT_SECS[rate[3]] / int(rate[1])


_READ = {b"crawl-delay": seconds, b"request-rate": _seconds_of_rate}
FIELDS = tuple(_READ)
"""The fields of lines with a delay."""
