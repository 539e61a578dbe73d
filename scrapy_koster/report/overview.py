"""The totals and the charts of the page."""

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
        Tile("still deferred", totals["deferred_now"], "unavailable"),
    ]
    if outcomes[of.NOT_KNOWN]:
        sites.append(Tile("not known: no result yet", outcomes[of.NOT_KNOWN]))
    yield f"Sites: {numbers.sites:,}", sites
    yield (
        f"Requests allowed: {numbers.allowed:,}",
        [
            Tile(what, count, "obeyed" if what == "by its rules" else "none")
            for what, count in numbers.allowed_because.items()
        ]
        + [
            Tile("of these, by your overrides", totals["overridden"]),
            Tile("also sent: dont_obey_robotstxt", totals["exempt"]),
        ],
    )
    yield (
        f"Requests refused: {sum(refused.values()):,}",
        [
            Tile("by a rule", refused["rule"], "restricted"),
            Tile("restricted: HTTP 401 or 403", refused["restricted"], "restricted"),
            Tile("no robots.txt: KOSTER_MISSING", refused["missing"], "restricted"),
            Tile("HTML page as robots.txt", refused["html"], "restricted"),
            Tile("Crawl-delay too long", refused["delay"], "restricted"),
            Tile("by your overrides", refused["override"], "restricted"),
            Tile("by a usage preference", refused["usage"], "restricted"),
            Tile("unavailable", refused["unavailable"], "unavailable"),
            Tile("of these, start requests", totals["start_refused"]),
            Tile("also dropped: nofollow, noindex", totals["nofollow"] + totals["noindex"]),
        ],
    )


def pictures_of(numbers: Numbers) -> Iterator[pictures.Picture]:
    """Yield the charts, in their order."""
    totals, compared, parser = numbers.totals, numbers.compared, numbers.about.get("parser", _DRAFT)
    parser = "The draft" if parser == _DRAFT else parser
    copies = {
        "fetched": totals["fetches"],
        "from storage": totals["from_storage"],
        "revalidated (304)": totals["renewed"],
    }
    sample = f"A sample of {sum(compared.values()):,} decisions: the first hundred, then one in 64."
    against_rfc = {
        "agree": compared["agree"],
        "stricter than RFC 9309": compared["stricter"],
        "looser than RFC 9309": compared["looser"],
    }
    outcomes = ("obeyed", "none", "restricted", "unavailable", "unknown")
    for name, title, about, counts, keys in (
        ("outcomes", "Outcomes", "Sites by outcome.", numbers.outcomes, outcomes),
        ("compared", f"{parser} against RFC 9309", sample, against_rfc,
         ("obeyed", "unavailable", "restricted")),
        ("statuses", "Statuses", "Last response of each site to the request for robots.txt.",
         numbers.statuses, ()),
        ("copies", "Copies", "Where each robots.txt came from.", copies, ()),
        ("ages", "Age of the copies", "How old each robots.txt was at the end.", numbers.ages, ()),
        ("reasons", "Failures", "Failed attempts to fetch a robots.txt, by reason.",
         numbers.failures, ()),
    ):  # fmt: skip
        yield pictures.bars(name, title, about, counts, keys)
    yield pictures.timeline(
        "timeline",
        "Timeline",
        "robots.txt requested, answered and deferred",
        ("requested", "answered", "deferred"),
        [row[:4] for row in numbers.minutes],
    )
