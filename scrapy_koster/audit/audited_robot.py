"""The findings about a robot: visits, speed, requests for robots.txt and violations."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import accumulate
from operator import sub
from typing import Any

from scrapy_koster.audit.access_log import Visit
from scrapy_koster.audit.addresses import UNVERIFIED
from scrapy_koster.audit.judging import Judge, Knowledge, Rule, method_and_path
from scrapy_koster.protocol.ruling import Standard
from scrapy_koster.protocol.wording import shown

CLIENTS_MOST = 64
"""At most this many different addresses are counted per robot."""
WINDOWS_SECS = (1, 10, 60)
DAY_SECS = 86400

_SAMPLES = 5
_SAMPLED_OF = 100
_SAMPLE_CHARS = 200
_EXACT_GAP_SECS = 120
_DIGITS = 2


@dataclass(slots=True)
class Violation:
    """The requests with which a robot disobeyed a line."""

    count: int = 0
    octets: int = 0
    by_both: int = 0
    first: int = 0
    last: int = 0
    samples: list[str] = field(default_factory=list)
    """Some of the paths, as printable text."""
    clients: list[Any] = field(default_factory=list)
    versions: set[int] = field(default_factory=set)
    """Numbers of the versions of the file in which the line was disobeyed."""

    def add(self, visit: Visit, version: int) -> None:
        """Count a request that disobeyed the line in the version with the number *version*."""
        secs, _, client, request, _, size = visit
        one = Violation(1, number_in(size), 0, secs, secs, versions={version})
        if self.count < _SAMPLED_OF:
            one.samples.append(shown(method_and_path(request)[1], _SAMPLE_CHARS))
            one.clients.append(client)
        self.merge(one)

    def merge(self, other: Violation) -> None:
        """Add the counts of *other*."""
        self.first = min(self.first, other.first) if self.count else other.first
        self.last = max(self.last, other.last)
        self.count += other.count
        self.octets += other.octets
        self.by_both += other.by_both
        self.versions |= other.versions
        self.samples = list(dict.fromkeys(self.samples + other.samples))[:_SAMPLES]
        self.clients = list(dict.fromkeys(self.clients + other.clients))[:_SAMPLES]


def number_in(text: Any) -> int:
    """Return the number in a field of a log, 0 for an invalid number such as "-"."""
    try:
        return max(int(text), 0)
    except (ValueError, TypeError, OverflowError):
        return 0


class Pace:
    """The speed of a robot: the gaps between requests, and bursts, in whole seconds."""

    def __init__(self) -> None:
        self.days: Counter[int] = Counter()
        """Number of requests by days since the epoch."""
        self.times: list[int] = []
        """Times of requests that are not counted yet, in order."""
        self.counted = 0
        self.first: int | None = None
        self.last: int | None = None
        self.last_late: int | None = None
        """The last time of requests too far out of order."""
        self.gaps: Counter[int] = Counter()
        """Number of gaps by seconds. Gaps over two minutes are rounded to two digits."""
        self.worst = dict.fromkeys(WINDOWS_SECS, 0)
        """The largest number of requests in a window of time, by the seconds of the window."""
        self._windows: dict[int, deque[tuple[int, int]]] = {secs: deque() for secs in WINDOWS_SECS}
        self._sums = dict.fromkeys(WINDOWS_SECS, 0)

    def count(self) -> None:
        """Count the requests in ``times``, and clear the list."""
        times = self.times
        if not times:
            return
        if self.first is None or times[0] < self.first:
            self.first = times[0]
        if self.last is not None:
            self.gaps[_rounded(times[0] - self.last)] += 1
        for secs, count in Counter(map(sub, times[1:], times)).items():
            self.gaps[_rounded(secs)] += count
        self.counted += len(times)
        self.last = times[-1]
        found = Counter(times)
        for secs, count in found.items():
            self.days[secs // DAY_SECS] += count
        self._count_bursts(found)
        times.clear()

    def count_late(self, secs: int) -> None:
        """Count a request too far out of order in a log: only by day."""
        self.days[secs // DAY_SECS] += 1
        self.first = secs if self.first is None else min(self.first, secs)
        self.last_late = secs if self.last_late is None else max(self.last_late, secs)

    def _count_bursts(self, found: Counter[int]) -> None:
        for secs, window in self._windows.items():
            total, worst = self._sums[secs], self.worst[secs]
            for at, count in found.items():
                window.append((at, count))
                total += count
                while window[0][0] <= at - secs:
                    total -= window.popleft()[1]
                worst = max(worst, total)
            self._sums[secs], self.worst[secs] = total, worst

    def gap(self, part: float) -> int | None:
        """Return a quantile of the gaps in seconds (*part* 0.5: the median), None without gaps."""
        ordered = sorted(self.gaps.items())
        below = accumulate(count for _, count in ordered)
        least = part * self.gaps.total()
        return next((secs for (secs, _), n in zip(ordered, below, strict=True) if n >= least), None)

    def kept(self, delay_secs: float) -> float | None:
        """Return the share of the gaps that can have kept a Crawl-delay, or None without gaps.

        Logs have whole seconds: a gap of one second can be nearly two seconds.
        """
        least = min(delay_secs, _rounded(int(delay_secs)))  # the gaps are rounded, too
        kept = sum(count for secs, count in self.gaps.items() if secs + 1 > least)
        return kept / self.gaps.total() if self.gaps else None


def _rounded(secs: int) -> int:
    return secs if secs <= _EXACT_GAP_SECS else round(secs, _DIGITS - len(str(secs)))


@dataclass(slots=True)
class Asking:
    """The requests of a robot for /robots.txt."""

    count: int = 0
    first: int = 0
    last: int = 0
    longest_secs: int = 0
    """The longest time between two consecutive requests for /robots.txt."""
    pages_before: int = 0
    statuses: Counter[int] = field(default_factory=Counter)

    def add(self, secs: int, status: int, requests: int) -> None:
        """Count a request at the time *secs*. *requests* counts the robot's earlier requests."""
        if not self.count:
            self.first = self.last = secs
            self.pages_before = requests
        self.first = min(self.first, secs)
        self.longest_secs = max(self.longest_secs, secs - self.last)
        self.last = max(self.last, secs)
        self.count += 1
        self.statuses[status] += 1


class AuditedRobot:
    """A robot, with the findings of the audit."""

    def __init__(self, name: str, judge: Judge, unseen_until: float) -> None:
        self.name = name
        self.token = name.removesuffix(UNVERIFIED)
        self.judged_as = judge.like(self.token)
        self.knowledge = Knowledge(unseen_until)
        self.pace = Pace()
        self.times = self.pace.times
        self.asking = Asking()
        self.late = 0
        """Number of requests too far out of order in a log."""
        self.clients: set[Any] = set()
        self.violated: dict[Rule, Violation] = {}
        self.in_grace = 0
        """Number of forbidden requests that an older, unexpired copy of the file allows."""
        self.days_violated: Counter[int] = Counter()
        self.by_reading: Counter[Standard] = Counter()
        """Number of requests that disobeyed, by standard."""
        self.only_by: Counter[Standard] = Counter()
        """Number of requests that disobeyed only one standard, by this standard."""

    @property
    def requests(self) -> int:
        """The number of requests."""
        return self.pace.counted + len(self.times) + self.late

    @property
    def first_violation(self) -> int | None:
        """The time of the first violation, or None."""
        return min((violation.first for violation in self.violated.values()), default=None)

    @property
    def violations(self) -> int:
        """The number of violations, by the reading of the audit."""
        return sum(violation.count for violation in self.violated.values())
