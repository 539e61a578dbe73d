"""What is known of one robot: how often it came, how fast, what it asked and disobeyed."""

from __future__ import annotations

from collections import Counter, deque
from itertools import accumulate
from operator import sub
from typing import TYPE_CHECKING, Any

from scrapy_koster.audit.judging import READINGS, Knowledge, method_and_path
from scrapy_koster.protocol.wording import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_koster.audit.access_log import Visit
    from scrapy_koster.audit.judging import Decision, Judge, Rule
    from scrapy_koster.protocol.ruling import Standard

CLIENTS_MOST = 64
"""So many addresses of a robot are told apart."""
WINDOWS_SECS = (1, 10, 60)
DAY_SECS = 86400
DAYS_MOST = 400
"""So many days of a robot are told apart."""
NO_DAY = -1
"""In place of a day: those that were not told apart."""

_SAMPLES = 5
_SAMPLED_OF = 100
_SAMPLE_CHARS = 200
_EXACT_GAP_SECS = 120
_DIGITS = 2


class Violation:
    """How often a robot disobeyed one line."""

    __slots__ = (
        "by_both", "clients", "count", "first", "last", "octets", "samples", "versions"
    )  # fmt: skip

    def __init__(self) -> None:
        self.count = self.octets = self.by_both = 0
        self.first = self.last = 0
        self.samples: list[str] = []
        """Paths, safe to print."""
        self.clients: list[Any] = []
        self.versions: set[int] = set()
        """Of the file, that have this line."""

    def add(self, visit: Visit) -> None:
        """Count a request."""
        secs, _, client, request, _, size = visit
        if not self.count:
            self.first = secs
        self.last = secs
        self.count += 1
        self.octets += _number(size)
        if len(self.samples) < _SAMPLES and self.count <= _SAMPLED_OF:
            sample = shown(method_and_path(request)[1], _SAMPLE_CHARS)
            if sample not in self.samples:
                self.samples.append(sample)
        if (
            len(self.clients) < _SAMPLES
            and self.count <= _SAMPLED_OF
            and client not in self.clients
        ):
            self.clients.append(client)

    def merge(self, other: Violation) -> None:
        """Add what another one has counted."""
        self.first = min(self.first, other.first) if self.count else other.first
        self.last = max(self.last, other.last)
        self.count += other.count
        self.octets += other.octets
        self.by_both += other.by_both
        self.versions |= other.versions
        self.samples = list(dict.fromkeys(self.samples + other.samples))[:_SAMPLES]
        self.clients = list(dict.fromkeys(self.clients + other.clients))[:_SAMPLES]


class Charge(Violation):
    """Requests to which the same rules apply, with the same copy, until something changes."""

    __slots__ = ("against", "excused")

    def __init__(self, against: dict[Standard, Rule], excused: list[Standard]) -> None:
        super().__init__()
        self.against = against
        """The rules that they disobey, by reading."""
        self.excused = excused
        """The readings by which a copy allows them."""


def _number(text: Any) -> int:
    try:
        return max(int(text), 0)
    except (ValueError, TypeError, OverflowError):  # "-"
        return 0


class Days(Counter[int]):
    """How much there was on each day, by the days since the epoch."""

    def count(self, times: Sequence[int]) -> None:
        """Count requests at these times, which are in order."""
        first, last = times[0] // DAY_SECS, times[-1] // DAY_SECS
        if first == last:
            self.put(first, len(times))
        else:
            for secs in times:
                self.put(secs // DAY_SECS, 1)

    def put(self, day: int, count: int) -> None:
        """Count so many on a day. What is beyond 400 days is of none."""
        if day not in self and len(self) >= DAYS_MOST:
            day = NO_DAY
        self[day] += count


class Pace:
    """How fast a robot was, by whole seconds."""

    __slots__ = ("_sums", "_windows", "counted", "days", "first", "gaps", "last", "times", "worst")

    def __init__(self) -> None:
        self.days = Days()
        self.times: list[int] = []
        """Of the requests that are not counted yet, in order."""
        self.counted = 0
        self.first: int | None = None
        self.last: int | None = None
        self.gaps: Counter[int] = Counter()
        """How often so many seconds lay between two requests; beyond two minutes two digits."""
        self.worst = [0] * len(WINDOWS_SECS)
        """Requests at most within each of WINDOWS_SECS."""
        self._windows: list[deque[tuple[int, int]]] = [deque() for _ in WINDOWS_SECS]
        self._sums = [0] * len(WINDOWS_SECS)

    def count(self) -> None:
        """Count the requests of which only the times are known."""
        times = self.times
        if not times:
            return
        if self.last is None:
            self.first = self.last = times[0]
        else:
            self.gaps[_rounded(times[0] - self.last)] += 1
        for secs, count in Counter(map(sub, times[1:], times)).items():
            self.gaps[_rounded(secs)] += count
        self.counted += len(times)
        self.last = times[-1]
        self.days.count(times)
        self._count_bursts(Counter(times))
        times.clear()

    def _count_bursts(self, found: Counter[int]) -> None:
        for n, secs in enumerate(WINDOWS_SECS):
            window, total, worst = self._windows[n], self._sums[n], self.worst[n]
            for at, count in found.items():
                window.append((at, count))
                total += count
                while window[0][0] <= at - secs:
                    total -= window.popleft()[1]
                worst = max(worst, total)
            self._sums[n], self.worst[n] = total, worst

    def gap(self, part: float) -> int | None:
        """Return the gap that *part* of them do not exceed, None where there is none."""
        ordered = sorted(self.gaps.items())
        below = accumulate(count for _, count in ordered)
        least = part * self.gaps.total()
        return next((secs for (secs, _), n in zip(ordered, below, strict=True) if n >= least), None)

    def kept(self, delay_secs: float) -> float | None:
        """Return which part of the gaps may have kept a Crawl-delay.

        Times are whole seconds: two that differ by one may be nearly two apart.
        """
        kept = sum(count for secs, count in self.gaps.items() if secs + 1 > delay_secs)
        return kept / self.gaps.total() if self.gaps else None


def _rounded(secs: int) -> int:
    if secs <= _EXACT_GAP_SECS:
        return secs
    return round(secs, _DIGITS - len(str(secs)))


class Asking:
    """How often a robot asked for /robots.txt, and when."""

    __slots__ = ("count", "first", "last", "longest_secs", "pages_before", "statuses")

    def __init__(self) -> None:
        self.count = 0
        self.first = self.last = 0
        self.longest_secs = 0
        """The longest time from one to the next."""
        self.pages_before = 0
        self.statuses: Counter[int] = Counter()

    def add(self, secs: int, status: int, requests: int) -> None:
        """Count a request; *requests* came before it."""
        if not self.count:
            self.first = self.last = secs
            self.pages_before = requests
        self.longest_secs = max(self.longest_secs, secs - self.last)
        self.last = max(self.last, secs)
        self.count += 1
        self.statuses[status] += 1


class AuditedRobot:
    """One robot."""

    __slots__ = (
        "asking",
        "charges",
        "charges_hold_until",
        "clients",
        "days_violated",
        "excused",
        "first_violation",
        "judge",
        "knowledge",
        "late",
        "name",
        "pace",
        "times",
        "violated",
    )  # fmt: skip

    def __init__(self, name: str, judge: Judge, unseen_until: float) -> None:
        self.name = name
        self.judge = judge
        self.knowledge = Knowledge(unseen_until)
        self.pace = Pace()
        self.times = self.pace.times
        self.asking = Asking()
        self.late = 0
        """Requests that stand in the log long after their time: they are not in the pace."""
        self.clients: set[Any] = set()
        self.charges: dict[Decision, Charge] = {}
        """What is not among the violations yet."""
        self.charges_hold_until = float("-inf")
        self.violated: dict[Standard, dict[Rule, Violation]] = {each: {} for each in READINGS}
        self.excused: Counter[Standard] = Counter()
        """Requests that a copy allowed that it could still go by."""
        self.first_violation: dict[Standard, int] = {}
        self.days_violated = {each: Days() for each in READINGS}

    @property
    def last_secs(self) -> float:
        """When its last request was, of those that stood in the order."""
        last = self.times[-1] if self.times else self.pace.last
        return float("-inf") if last is None else last

    @property
    def requests(self) -> int:
        """How many there were."""
        return self.pace.counted + len(self.pace.times) + self.late

    def violations(self, reading: Standard) -> int:
        """Return how many requests disobeyed."""
        return sum(violation.count for violation in self.violated[reading].values())
