"""The sitemaps of a site, out of the copy of its robots.txt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request

from scrapy_koster.crawl.exceptions import RobotsUnavailable
from scrapy_koster.crawl.replaying.replay import Replay
from scrapy_koster.protocol.sitemap import sitemap_urls_in
from scrapy_koster.protocol.step import Obey, waits
from scrapy_koster.protocol.verdict import verdict_on

if TYPE_CHECKING:
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.keeping.keeper import Keeper
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.replaying.replay import NoReplay
    from scrapy_koster.crawl.robot import Robot


class Sitemaps:
    """Returns the sitemaps of sites; one whose robots.txt is not known is asked first."""

    def __init__(
        self,
        config: Config,
        log: Log,
        *,
        keeper: Keeper,
        robot: Robot,
        replay: Replay | NoReplay,
    ) -> None:
        self._policy = config.policy
        self._log = log
        self._keeper = keeper
        self._robot = robot
        self._replay = replay

    async def of(self, url: str) -> list[str]:
        """Return the URLs of the sitemaps of the site of *url*; RobotsUnavailable if not known."""
        state = self._keeper.state_of(url)
        if state is None:
            raise ValueError(f"Invalid URL {url}: use an http or https URL, which has a robots.txt")
        request = Request(state.site.robots_url)
        if isinstance(self._replay, Replay) and self._replay.is_on:  # no site is asked
            state, step = await self._replay.last_known(state, request)
            assert not waits(step)
        else:
            step = await self._keeper.wait(state, request)
        if not isinstance(step, Obey):
            raise RobotsUnavailable(
                verdict_on(
                    request.url,
                    self._robot.name,
                    site=state.site,
                    step=step,
                    parser=state.parser,
                    source=state.source,
                    policy=self._policy,
                    forbidden=request.url,
                )
            )
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
