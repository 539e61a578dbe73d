"""Says and counts what the recorded exceptions of a crawl change (KOSTER_OVERRIDES)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.messages.counting import Uncounted
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.protocol.verdict import Verdict


class Overridden:
    """Each use of an override: where it lets a request pass that its site forbids."""

    def __init__(
        self, config: Config, clock: Clock, stats: Stats, log: Log, *, counts: Uncounted
    ) -> None:
        self._policy = config.policy
        self._clock = clock
        self._stats = stats
        self._log = log
        self._counts = counts

    def warn_of_expired(self) -> None:
        """Name those that are void."""
        for override in self._policy.overrides.expired(self._clock.epoch()):
            self._log.warning(
                "An entry of KOSTER_OVERRIDES has expired and is void: %(site)s (%(override)s)."
                " Remove it, or give it a later date if the reason still holds",
                site=override.site,
                override=override,
            )

    def passes(self, request: Request, verdict: Verdict) -> None:
        """Count a *request* that is allowed by an override, and log it."""
        self._stats.overridden()
        self._counts.overridden(verdict)
        self._log.debug("%(request)s passes, %(verdict)s", request=request, verdict=verdict)
