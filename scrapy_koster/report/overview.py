"""The totals and the charts of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
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
    """A table of numbers with bars. The longest bar is for the largest number."""

    title: str
    about: str
    counts: Mapping[str, int]

    def bar(self, count: int) -> float:
        """Return the length of the bar of a number, in percent."""
        return 100 * count / (max(self.counts.values()) or 1)


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
    totals = numbers.totals
    copies = {
        "fetched": totals["fetches"],
        "from storage": totals["from_storage"],
        "revalidated (304)": totals["renewed"],
    }
    statuses = "Last response of each site to the request for robots.txt."
    failed = "Failed attempts to fetch a robots.txt, by reason."
    most_failures = dict(islice(numbers.failures.items(), _BARS_MOST))
    yield Chart("Outcomes", "Sites by outcome.", numbers.outcomes)
    yield Chart("Statuses", statuses, dict(islice(numbers.statuses.items(), _BARS_MOST)))
    yield Chart("Copies", "Where each robots.txt came from.", copies)
    yield Chart("Failures", failed, most_failures)
