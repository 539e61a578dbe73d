"""Pages that come from another URL than the one that was decided on.

Scrapy makes a request of each redirect, and that is decided on. A browser follows it by itself.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import ensure_awaitable

from scrapy_koster.protocol.path import is_robots_txt

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.enforcement import Enforcement
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.pages.stated import Stated
    from scrapy_koster.crawl.replaying.replay import Replay
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.sites import Sites


def may_end_elsewhere(crawler: Crawler) -> bool:
    """Whether the project has download handlers of its own choice.

    Those that Scrapy has by itself follow no redirect.
    """
    return any(crawler.settings.getdict("DOWNLOAD_HANDLERS").values())


class Elsewhere:
    """Decides on where a page has ended, and keeps what is forbidden from the callback.

    It has been fetched by then: the first time a warning says so.
    """

    def __init__(
        self,
        log: Log,
        clock: Clock,
        *,
        keeper: Sites,
        robot: Robot,
        replay: Replay | None,
        stated: Stated,
        enforcement: Enforcement,
    ) -> None:
        self._log = log
        self._clock = clock
        self._keeper = keeper
        self._robot = robot
        self._replay = replay
        self._stated = stated
        self._enforcement = enforcement
        self._warned = False

    def before(self, own: Callable[..., Any] | None) -> Callable[..., Any]:
        """Return ``process_response``, followed by *own*, the method of a subclass, if any."""
        if own is None:
            return self.process_response

        @wraps(own)  # Scrapy gives it the arguments that *own* takes
        async def both(request: Request, response: Response, **named: Any) -> Any:
            response = await self.process_response(request, response)
            return await ensure_awaitable(own(request=request, response=response, **named))

        return both

    async def process_response(self, request: Request, response: Response) -> Response:
        """Return *response* if the robot may visit its URL; ask its site first if need be."""
        if response.url == request.url or request.meta.get("dont_obey_robotstxt"):
            return response
        state = self._keeper.state_of(response.url)
        if state is None or is_robots_txt(response.url):
            return response
        ended, step = request.replace(url=response.url), state.step
        if self._replay is not None and self._replay.is_on:  # no site is asked
            state, step = await self._replay.last_known(state, ended)
        elif self._clock.epoch() >= state.until_epoch:
            step = await self._keeper.wait(state, request)
        try:
            self._enforcement.enforce(ended, state, self._robot.name_of(request), step)
        except IgnoreRequest:
            self._warn(response, request)
            raise
        self._stated.ended_elsewhere(request, ended)
        return response

    def _warn(self, response: Response, request: Request) -> None:
        if self._warned:
            return
        self._warned = True
        self._log.warning(
            "%(request)s ended at %(url)s, which its robots.txt does not allow. The page was"
            " fetched, because the download handler follows redirects by itself, as a browser"
            " does. Its response is refused. This is logged once. See docs/ecosystem.md",
            request=request,
            url=response.url,
        )
