"""The sitemaps of a site, out of the copy of its robots.txt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request

from scrapy_koster.crawl.decision import decide
from scrapy_koster.crawl.exceptions import RobotsUnavailable
from scrapy_koster.protocol.sitemap import sitemap_urls_in
from scrapy_koster.protocol.step import Obey, Refuse, waits

if TYPE_CHECKING:
    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.replaying.replay import Replay
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.sites import Sites
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.access import Failure
    from scrapy_koster.protocol.verdict import Verdict


class Sitemaps:
    """Returns the sitemaps of sites; one whose robots.txt is not known is asked first."""

    def __init__(
        self,
        config: Config,
        log: Log,
        clock: Clock,
        *,
        sites: Sites,
        robot: Robot,
        replay: Replay | None,
    ) -> None:
        self._config = config
        self._epoch = clock.epoch
        self._log = log
        self._sites = sites
        self._robot = robot
        self._replay = replay

    async def of(self, url: str) -> list[str]:
        """Return the URLs of the sitemaps of the site of *url*; RobotsUnavailable if not known."""
        state = self._sites.state_of(url)
        if state is None:
            raise ValueError(f"Invalid URL {url}: use an http or https URL, which has a robots.txt")
        request = Request(state.site.robots_url)
        if self._replay is not None and self._replay.is_on:  # no site is asked
            state, step = await self._replay.last_known(state, request)
            assert not waits(step)
        else:
            step = await self._sites.wait(state, request)
        if not isinstance(step, Obey):
            raise RobotsUnavailable(self._unavailable(state, step.failure))
        copy = step.copy
        if copy.cut_bytes is not None:
            self._log.warning(
                "The robots.txt of %(site)s is longer than KOSTER_MAX_BYTES = %(cut_bytes)d, and"
                " was cut. Sitemaps after the cut are unknown. To read them, raise"
                " KOSTER_MAX_BYTES",
                site=state.site,
                cut_bytes=copy.cut_bytes,
            )
        return sitemap_urls_in(copy.body, copy.url)

    def _unavailable(self, state: SiteState, failure: Failure) -> Verdict:
        """Return the verdict on the pages of a site, whatever KOSTER_UNAVAILABLE is."""
        now = self._epoch()
        return decide(
            state.origin,
            self._robot.name,
            site=state.site,
            step=Refuse(failure, now),
            parser=None,
            source=state.source,
            usage=None,
            delay=None,
            config=self._config,
            now=now,
        ).verdict
