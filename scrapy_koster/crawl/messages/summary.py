"""What a crawl comes to: counted while it runs, said at its end."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING

from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.standing import Standing
from scrapy_koster.protocol.wording import because_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.config import Config
    from scrapy_koster.protocol.hazard import Cause, Hazard

_URL_CHARS = 300
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
        self._hazards: Counter[Cause] = Counter()
        self._examples: dict[Cause, str] = {}

    def stands(self, now: Standing, before: Standing | None) -> None:
        """Count a site as what it is *now*, and no longer as what it was *before*."""
        if before is not None:
            self._sites[before] -= 1
        self._sites[now] += 1

    def learnt(self, how: Retrieval) -> None:
        """Count a copy."""
        self._copies[how] += 1

    def hazard_met(self, url: str, robot: str, hazard: Hazard) -> None:
        """Count a page that was let through and that RFC 9309 forbids; keep one of each cause."""
        self._hazards[hazard.cause] += 1
        if hazard.cause not in self._examples:
            draft, rfc9309 = because_of(hazard.draft, robot), because_of(hazard.rfc9309, robot)
            self._examples[hazard.cause] = (
                f"{printable(url, _URL_CHARS)} is allowed by the draft, {draft}, and forbidden by"
                f" RFC 9309, {rfc9309}"
            )

    def write(self) -> None:
        """Say what became of all sites."""
        if self._hazards:
            self._tell_of_hazards()
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

    def _tell_of_hazards(self) -> None:
        [(cause, count), *_] = self._hazards.most_common(1)
        values = {
            "pages": self._hazards.total(),
            "causes": ", ".join(f"{each.value} {n}" for each, n in self._hazards.most_common()),
            "count": count,
            "words": cause.words,
            "example": self._examples[cause],
            "strictest": '"scrapy_koster.StrictestRobotParser"',
        }
        if self._config.parser_is_chosen:
            self._log.info(
                "Pages that were let through and that RFC 9309 forbids: %(pages)d (%(causes)s). The"
                " main cause, of %(count)d: %(words)s. For example %(example)s. To obey both"
                " standards, set KOSTER_PARSER = %(strictest)s",
                **values,
            )
            return
        self._log.warning(
            "Pages that were let through and that RFC 9309, today's standard, forbids: %(pages)d"
            " (%(causes)s). The main cause, of %(count)d: %(words)s. For example %(example)s."
            " To obey both standards, set KOSTER_PARSER = %(strictest)s. To obey the draft without"
            ' this warning, set it to "scrapy_koster.KosterRobotParser"',
            **values,
        )

    def _stat(self, name: str) -> int:
        count: int = self._crawler.stats.get_value(name, 0)
        return count
