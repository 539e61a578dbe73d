"""A request is looked at once more when it is sent, which may be long after it was decided on.

It has waited for the delay of its slot by then, and all downloader middlewares have seen it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals

from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.rewriting import is_plain
from scrapy_koster.protocol.step import Refuse, waits
from scrapy_koster.protocol.verdict import forbidden_spelling

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.keeping.keeper import Keeper
    from scrapy_koster.crawl.pages.stated import Stated
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.sites import SiteState
    from scrapy_koster.protocol.step import Step


class Sending:
    """Refuses what may not be sent any more, or would reach another site than has decided."""

    def __init__(
        self,
        crawler: Crawler,
        clock: Clock,
        around_downloads: Callable[[Callable[[Request], None]], None],
        *,
        keeper: Keeper,
        robot: Robot,
        stated: Stated,
        decide: Callable[[Request, SiteState, str, Step, str | None], None],
    ) -> None:
        """*decide* raises IgnoreRequest for a request that its site does not allow to the robot."""
        self._crawler = crawler
        self._epoch = clock.epoch
        self._around_downloads = around_downloads
        self._keeper = keeper
        self._robot = robot
        self._stated = stated
        self._decide = decide
        self._has_begun = False
        crawler.signals.connect(self.begin, signal=signals.request_reached_downloader)

    def begin(self) -> None:
        """Begin, when the spider opens or with the first request: there was no engine before.

        What else is around downloads later is outside of this.
        """
        if not self._has_begun:
            self._has_begun = True
            self._crawler.signals.disconnect(self.begin, signal=signals.request_reached_downloader)
            self._around_downloads(self._look_again)

    def _look_again(self, request: Request) -> None:
        if request.meta.get("dont_obey_robotstxt"):
            return
        url = request.url
        state = self._keeper.in_memory(url)
        if state is None:
            return
        robot, now = self._robot.sends(request), self._epoch()
        for host in dict.get(request.headers, b"Host") or ():
            if not state.site.is_named_by(host.decode("latin-1")):
                self._decide(request, state, robot, _of_another_site(host, now), None)
        allowed = now < state.until_epoch and state.allows(url, robot)
        if not (allowed and is_plain(url.removeprefix(state.origin))):
            if not isinstance(state.known, Copy) or is_robots_txt(url):
                return
            if now >= state.until_epoch and waits(self._keeper.current_step(state)):
                return
            forbidden = forbidden_spelling(url, robot, state.allows)
            if forbidden is not None:
                self._decide(request, state, robot, state.step, forbidden)
        if (state.facts.usage is not None or self._stated.has_any) and self._stated.look(
            request, state, robot, state.step
        ):
            self._decide(request, state, robot, state.step, None)


def _of_another_site(host: bytes, now: float) -> Refuse:
    """Return the step of a request whose Host header names another site than its URL."""
    reason = (
        f"the Host header of the request names {printable(host.decode('latin-1'))}, a site with a"
        " robots.txt of its own: put that name into the URL, and the address that it is to go to"
        " into a proxy or the DNS"
    )
    return Refuse(Failure(reason, 0, now, now, now, None), now)
