"""Pages that come from another URL than the one that was decided on.

Scrapy makes a request of each redirect, and that is decided on. A browser follows it by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals

from scrapy_koster.crawl.log import Log
from scrapy_koster.protocol.path import is_robots_txt

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_koster.crawl.keeper import Keeper
    from scrapy_koster.crawl.robot import Robot


class Elsewhere:
    """Warns, once, of a page that was fetched from where no robots.txt has allowed it.

    It looks only where the project has download handlers of its own choice:
    those that Scrapy has by itself follow no redirect.
    """

    def __init__(self, crawler: Crawler, keeper: Keeper, robot: Robot) -> None:
        """Look at each page that is downloaded, as the *robot* that the crawl is."""
        self._crawler = crawler
        self._log = Log(__name__, crawler)
        self._keeper = keeper
        self._robot = robot
        if any(crawler.settings.getdict("DOWNLOAD_HANDLERS").values()):
            crawler.signals.connect(self._downloaded, signal=signals.response_downloaded)

    def _downloaded(self, response: Response, request: Request) -> None:
        if response.url == request.url or request.meta.get("dont_obey_robotstxt"):
            return
        state = self._keeper.state_of(response.url)
        if state is None or is_robots_txt(response.url):
            return
        if not state.allows(response.url, self._robot.name_of(request)):
            self._warn(response, request)

    def _warn(self, response: Response, request: Request) -> None:
        self._log.warning(
            "%(request)s has ended at %(url)s, which no robots.txt has allowed: the download"
            " handler follows redirects by itself, as a browser does, and they are not decided"
            " on. See docs/ecosystem.md. There may be more of them",
            request=request,
            url=response.url,
        )
        self._crawler.signals.disconnect(self._downloaded, signal=signals.response_downloaded)
