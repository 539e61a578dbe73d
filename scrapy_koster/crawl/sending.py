"""Checks a request again when it is sent, which may be long after it was decided on.

It has waited for the delay of its slot by then, and all downloader middlewares have seen it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals

from scrapy_koster.crawl.decision import host_refusal
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.step import waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.enforcement import Enforcement
    from scrapy_koster.crawl.pages.stated import Stated
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.sites import Sites


class Sending:
    """Refuses a request if a newer file forbids it, or if its Host header names another site."""

    def __init__(
        self,
        crawler: Crawler,
        clock: Clock,
        around_downloads: Callable[[Callable[[Request], None]], None],
        *,
        keeper: Sites,
        robot: Robot,
        stated: Stated,
        enforcement: Enforcement,
    ) -> None:
        self._crawler = crawler
        self._epoch = clock.epoch
        self._around_downloads = around_downloads
        self._keeper = keeper
        self._robot = robot
        self._stated = stated
        self._enforcement = enforcement
        self._has_begun = False
        crawler.signals.connect(self.begin, signal=signals.request_reached_downloader)

    def begin(self) -> None:
        """Begin, when the spider opens or with the first request: there was no engine before.

        What else is around downloads later is outside of this.
        """
        if not self._has_begun:
            self._has_begun = True
            self._crawler.signals.disconnect(self.begin, signal=signals.request_reached_downloader)
            self._around_downloads(self.check)

    def check(self, request: Request) -> None:
        """Raise IgnoreRequest if *request* may not be sent."""
        if request.meta.get("dont_obey_robotstxt"):
            return
        state = self._keeper.in_memory(request.url)
        if state is None:
            return
        enforcement, robot, now = self._enforcement, self._robot.sends(request), self._epoch()
        if b"Host" in request.headers:
            refusal = host_refusal(request.headers.getlist(b"Host"), state.site, now)
            if refusal is not None:
                enforcement.enforce(request, state, robot, refusal)
        if now >= state.until_epoch:
            # A file that has expired since decides no more; that of the decision was valid.
            if waits(self._keeper.current_step(state)):
                return
        elif enforcement.is_plainly_allowed(request, state, robot) and not self._stated.has_any:
            return
        if isinstance(state.known, Copy) and not is_robots_txt(request.url):
            enforcement.check(request, state, robot)
