"""What stands at the top of the page: the totals, what may have been missed, the pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_koster.report import numbers as of
from scrapy_koster.report import pictures

if TYPE_CHECKING:
    from scrapy_koster.report.numbers import Numbers

_DRAFT = "KosterRobotParser"


@dataclass(frozen=True)
class Tile:
    """A number, large."""

    what: str
    count: int
    key: str = ""


def tiles(numbers: Numbers) -> Iterator[tuple[str, list[Tile]]]:
    """Yield groups of tiles, each with its title."""
    totals, outcomes, refused = numbers.totals, numbers.outcomes, numbers.refused
    sites = [
        Tile("obeyed", outcomes["obeyed"], "obeyed"),
        Tile("without robots.txt", outcomes["without robots.txt"], "none"),
        Tile("restricted", outcomes["restricted"], "restricted"),
        Tile("unavailable", outcomes["unavailable"], "unavailable"),
        Tile("deferred now", totals["deferred_now"], "unavailable"),
    ]
    if outcomes[of.NOT_KNOWN]:
        sites.append(Tile("not known: still asked at the end", outcomes[of.NOT_KNOWN]))
    yield f"Sites: {numbers.sites:,}", sites
    yield (
        f"Requests allowed: {numbers.allowed:,}",
        [
            Tile(what, count, "obeyed" if what == "by its rules" else "none")
            for what, count in numbers.allowed_because.items()
        ]
        + [Tile("of these, by an override of yours", totals["overridden"])],
    )
    yield (
        f"Requests refused: {sum(refused.values()):,}",
        [
            Tile("by a line of robots.txt", refused["rule"], "restricted"),
            Tile("restricted: HTTP 401 or 403", refused["restricted"], "restricted"),
            Tile("missing: KOSTER_MISSING", refused["missing"], "restricted"),
            Tile("an HTML page: KOSTER_HTML_ROBOTSTXT", refused["html"], "restricted"),
            Tile("by too long a Crawl-delay", refused["delay"], "restricted"),
            Tile("by an override of yours", refused["override"], "restricted"),
            Tile("unavailable: given up", refused["unavailable"], "unavailable"),
            Tile("of these, start requests", totals["start_refused"]),
            Tile("dropped: nofollow, noindex", totals["nofollow"] + totals["noindex"]),
        ],
    )


def pictures_of(numbers: Numbers) -> Iterator[pictures.Picture]:
    """Yield the pictures, in their order."""
    keys = ("obeyed", "none", "restricted", "unavailable", "unknown")
    yield pictures.whole(
        "outcomes",
        "Outcomes",
        "What became of the sites.",
        [(*item, key) for item, key in zip(numbers.outcomes.items(), keys, strict=True)],
    )
    compared, parser = numbers.compared, numbers.about.get("parser", _DRAFT)
    parser = "The draft" if parser == _DRAFT else parser
    yield pictures.whole(
        "compared",
        f"{parser} against RFC 9309",
        f"A sample: how both decide on {sum(compared.values()):,} requests, the first hundred"
        " and then one in 64.",
        [
            ("agree", compared["agree"], "obeyed"),
            ("stricter than RFC 9309", compared["stricter"], "unavailable"),
            ("looser than RFC 9309", compared["looser"], "restricted"),
        ],
    )
    yield from _bars(numbers)
    yield pictures.timeline(
        "timeline",
        "Timeline",
        "Sites that were asked, answered, and began to be deferred",
        ("asked", "answered", "deferred"),
        [row[:4] for row in numbers.minutes],
    )


def _bars(numbers: Numbers) -> Iterator[pictures.Picture]:
    totals = numbers.totals
    copies = {
        "fetched": totals["fetches"],
        "from storage": totals["from_storage"],
        "renewed by 304": totals["renewed"],
    }
    for name, title, about, counts in (
        ("statuses", "Statuses", "What the sites answered last.", numbers.statuses),
        ("copies", "Copies", "Where copies of robots.txt came from.", copies),
        ("ages", "Age of the copies", "When the report was written.", numbers.ages),
        ("reasons", "Failures", "Attempts that failed, by reason.", numbers.failures),
    ):
        yield pictures.bars(name, title, about, counts)
