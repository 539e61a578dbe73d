"""The totals and the charts of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_koster.report import numbers as of

if TYPE_CHECKING:
    from scrapy_koster.report.numbers import Numbers

_BARS_MOST = 20


@dataclass(frozen=True)
class Tile:
    """A number that the page shows in large type."""

    what: str
    count: int
    key: str = ""


@dataclass(frozen=True)
class Chart:
    """A table of numbers with bars. The longest bar of a column is for the largest number."""

    title: str
    about: str
    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[int]]]

    def bar(self, column: int, count: int) -> float:
        """Return the length of the bar of a number, in percent."""
        return 100 * count / (max(counts[column] for _, counts in self.rows) or 1)


def tiles(numbers: Numbers) -> Iterator[tuple[str, list[Tile]]]:
    """Yield groups of tiles with titles."""
    totals, outcomes, refused = numbers.totals, numbers.outcomes, numbers.refused
    because = numbers.allowed_because
    yield (
        f"Sites: {numbers.sites:,}",
        [
            Tile("obeyed", outcomes["obeyed"], "obeyed"),
            Tile("without robots.txt", outcomes["without robots.txt"], "none"),
            Tile("restricted", outcomes["restricted"], "restricted"),
            Tile("unavailable", outcomes["unavailable"], "unavailable"),
            Tile("still deferred", totals["deferred_now"], "unavailable"),
            Tile("not known: no result yet", outcomes[of.NOT_KNOWN]),
        ],
    )
    yield (
        f"Requests allowed: {numbers.allowed:,}",
        [
            *(Tile(what, n, "none") for what, n in because.items()),
            Tile("of these, by your overrides", totals["overridden"]),
            Tile("also sent: dont_obey_robotstxt", totals["exempt"]),
        ],
    )
    yield (
        f"Requests refused: {sum(refused.values()):,}",
        [
            *(Tile(of.REASONS[ground], n, "restricted") for ground, n in refused.items()),
            Tile("of these, start requests", totals["start_refused"]),
            Tile("also dropped: nofollow, noindex", totals["nofollow"] + totals["noindex"]),
        ],
    )


def charts(numbers: Numbers) -> Iterator[Chart]:
    """Yield the charts in order."""
    totals, compared, parser = numbers.totals, numbers.compared, numbers.about.get("parser")
    copies = {
        "fetched": totals["fetches"],
        "from storage": totals["from_storage"],
        "revalidated (304)": totals["renewed"],
    }
    sample = f"A sample of {sum(compared.values()):,} decisions: the first hundred, then one in 64."
    statuses = "Last response of each site to the request for robots.txt."
    yield _bars("Outcomes", "Sites by outcome.", numbers.outcomes)
    yield _bars(f"{parser} against RFC 9309", sample, compared)
    yield _bars("Statuses", statuses, numbers.statuses)
    yield _bars("Copies", "Where each robots.txt came from.", copies)
    yield _bars("Age of the copies", "How old each robots.txt was at the end.", numbers.ages)
    yield _bars("Failures", "Failed attempts to fetch a robots.txt, by reason.", numbers.failures)
    yield _timeline(numbers.minutes)


def _bars(title: str, about: str, counts: Mapping[str, int]) -> Chart:
    rows = [(what, [count]) for what, count in counts.items()]
    return Chart(title, about, ["count"], rows[:_BARS_MOST])


def _timeline(minutes: Sequence[Sequence[int]]) -> Chart:
    first, last = (minutes[0][0], minutes[-1][0]) if minutes else (0, 0)
    per_bar = (last - first) // _BARS_MOST + 1
    bars = {at: [0, 0, 0] for at in range(0, last - first + 1, per_bar)}
    for minute, *counts in minutes:
        bar = bars[(minute - first) // per_bar * per_bar]
        bar[:] = map(sum, zip(bar, counts, strict=False))
    return Chart(
        "Timeline",
        f"robots.txt requested, answered and deferred, per {per_bar} min since the start.",
        ["requested", "answered", "deferred"],
        [(f"+{at} min", bar) for at, bar in bars.items()],
    )
