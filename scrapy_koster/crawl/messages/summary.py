"""What a crawl comes to: counted while it runs, said at its end."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING

from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.standing import Standing

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.config import Config

_HAZARDS_NAMED = 5
_WHICH = (
    '. Which were refused, and by which line: LOG_LEVEL = "DEBUG", or scrapy robots explain URL'
)


class Retrieval(Enum):
    """How a copy came to be known."""

    FETCHED = "fetched"
    FROM_STORAGE = "from storage"
    REVALIDATED = "revalidated"


class Summary:
    """Counts sites and copies; what the stats have it takes from there."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._config = config
        self._log = Log(__name__, crawler)
        self._sites: Counter[Standing] = Counter()
        self._copies: Counter[Retrieval] = Counter()
        self._wildcards: list[str] = []
        self._hazards: list[str] = []

    def stands(self, now: Standing, before: Standing | None) -> None:
        """Count a site as what it is *now*, and no longer as what it was *before*."""
        if before is not None:
            self._sites[before] -= 1
        self._sites[now] += 1

    def learnt(self, how: Retrieval) -> None:
        """Count a copy."""
        self._copies[how] += 1

    def wildcards_met(self, site: str) -> None:
        """Keep the first sites whose record that is obeyed has wildcards (C6)."""
        if len(self._wildcards) < _HAZARDS_NAMED and site not in self._wildcards:
            self._wildcards.append(site)

    def hazard_met(self, url: str) -> None:
        """Keep the first pages that were let through and that RFC 9309 forbids."""
        if len(self._hazards) < _HAZARDS_NAMED and url not in self._hazards:
            self._hazards.append(url)

    def write(self) -> None:
        """Say what became of all sites."""
        if self._wildcards and not self._config.parser_is_chosen:
            self._warn_of_wildcards()
        dry_run = self._config.dry_run
        refused = self._stat("koster/dry_run/forbidden" if dry_run else "robotstxt/forbidden")
        is_told = self._crawler.settings["LOG_LEVEL"] in {"DEBUG", 10}
        self._log.info(
            "Sites: %(sites)s. Requests %(fate)s: %(refused)d. Copies of robots.txt: %(fetched)d"
            " fetched, %(from storage)d from storage, %(revalidated)d revalidated%(hint)s",
            sites=self._counted_sites(),
            fate="that would be refused (KOSTER_DRY_RUN)" if dry_run else "refused",
            refused=refused,
            hint=_WHICH if refused and not is_told else "",
            **{learnt.value: self._copies[learnt] for learnt in Retrieval},
        )

    def _counted_sites(self) -> str:
        counts = ((self._sites[standing], standing.words) for standing in Standing)
        return ", ".join(f"{count} {what}" for count, what in counts if count) or "none"

    def _warn_of_wildcards(self) -> None:
        self._log.warning(
            "Files with wildcards (* or $) in the record that was obeyed: %(hazards)d (%(sites)s)."
            " To the draft they are characters like any others. Pages that were let through, and"
            " that RFC 9309 forbids: %(urls)d (%(pages)s). This asks for a choice, and ends"
            ' with it: KOSTER_PARSER = "scrapy_koster.StrictestRobotParser" allows only what both'
            ' allow, "scrapy_koster.KosterRobotParser" what the draft does',
            hazards=self._stat("koster/hazard/wildcards"),
            sites=", ".join(self._wildcards),
            urls=self._stat("koster/hazard/urls"),
            pages=", ".join(self._hazards) or "none",
        )

    def _stat(self, name: str) -> int:
        count: int = self._crawler.stats.get_value(name, 0)
        return count
