"""Crawl-delay and Request-rate: how far apart the visits of a robot are to be.

Neither standard has them; both leave room for them ("extension", 3.2).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from scrapy_koster.protocol.line import Line

# "1/10", "30/1m", "1/5m 0600-0845": it holds at all times of the day, since that is not read.
_RATE = re.compile(rb"([0-9]{1,9})[ \t]*/[ \t]*([0-9]{1,9})[ \t]*([smh]?)(?:[ \t].*)?", re.DOTALL)
_UNIT_SECS = {b"": 1, b"s": 1, b"m": 60, b"h": 3600}
_NAMES = re.compile(rb"crawl-delay|request-rate", re.IGNORECASE)


class Delay(NamedTuple):
    """How far apart visits are to be, and where a file says so."""

    secs: float
    """From the start of one visit to the start of the next, in seconds."""
    line: Line | None
    """None where the parser names none."""


class Over(Enum):
    """KOSTER_CRAWL_DELAY_OVER: what a delay longer than KOSTER_CRAWL_DELAY_MAX_SECS means."""

    CLAMP = "clamp"
    REFUSE = "refuse"
    OBEY = "obey"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Which delays a crawl obeys."""

    obeys: bool
    """KOSTER_CRAWL_DELAY."""
    max_secs: float
    over: Over

    def refuses(self, secs: float) -> bool:
        """Whether a site that asks for so long a delay is not visited."""
        return self.obeys and self.over is Over.REFUSE and secs > self.max_secs

    def kept(self, secs: float) -> float:
        """Return how far apart visits are where *secs* are asked for, in seconds."""
        return secs if self.over is Over.OBEY else min(secs, self.max_secs)


def names_delay(body: bytes) -> bool:
    """Return whether a file may have one at all: most have none, and need not be read for it."""
    return _NAMES.search(body) is not None


def longest_delay(lines: Iterable[Line]) -> Delay | None:
    """Return the longest delay of a Crawl-delay or Request-rate line, None where there is none."""
    found = [
        Delay(secs, line)
        for line in lines
        if line.field in _READ and (secs := _READ[line.field](line.value)) is not None
    ]
    return max(found, key=lambda delay: delay.secs, default=None)


def delays(lines: Iterable[Line]) -> Iterator[float | None]:
    """Yield the seconds of each Crawl-delay in *lines*, None where it is no number of them."""
    for line in lines:
        if line.field == b"crawl-delay":
            yield _seconds(line.value)


def _seconds(value: bytes) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _seconds_of_rate(value: bytes) -> float | None:
    rate = _RATE.fullmatch(value.lower())
    if rate is None or not int(rate[1]):
        return None
    return int(rate[2]) * _UNIT_SECS[rate[3]] / int(rate[1])


_READ = {b"crawl-delay": _seconds, b"request-rate": _seconds_of_rate}
