"""A crawl that decides on URLs by robots.txt, and fetches no page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any, Protocol

from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from scrapy_koster.crawl.clock import clock_of
from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.engine.private import is_for_robots_txt
from scrapy_koster.crawl.report import RobotsReport
from scrapy_koster.protocol.verdict import Verdict

# More than the number of robots.txt files that are fetched at once (``socket_limit``), so that the
# next fetch can always begin.
URLS_AT_ONCE = 2000
_LOOK_SECS = 0.05
_SCHEDULER = "scrapy.core.scheduler.Scheduler"

SURVEY_SETTINGS: dict[str, Any] = {
    "ROBOTSTXT_OBEY": True,
    "KOSTER_DRY_RUN": False,
    "KOSTER_CRAWL_DELAY": "ignore",  # no page is visited
    # No retry: a hanging site takes KOSTER_TIMEOUT_SECS.
    "KOSTER_DEFER_LIMIT_SECS": 0,
    # The survey decides on the given URLs, and does not use the queue and the cache of a project.
    "SPIDER_MIDDLEWARES": {},
    "URLLENGTH_LIMIT": 0,
    "SCHEDULER": _SCHEDULER,
    "KOSTER_FALLBACK_SCHEDULER": _SCHEDULER,
    "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter",
    "HTTPCACHE_ENABLED": False,
    "CLOSESPIDER_TIMEOUT_NO_ITEM": 0,
    "CONCURRENT_ITEMS": 1,  # Scrapy starts this number of tasks for each response
}
"""Settings of a survey, used instead of the settings of a project."""


class SurveyAddon:
    """Enables RobotsReport, and SurveyMiddleware directly after KosterMiddleware.

    This add-on must be the last, because other add-ons may add KosterMiddleware.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Enable the components. Raises ValueError if KosterMiddleware is not enabled."""
        name = "DOWNLOADER_MIDDLEWARES"
        enabled = settings.get_component_priority_dict_with_base(name)
        places = [
            place
            for path, place in enabled.items()
            if place is not None and issubclass(load_object(path), KosterMiddleware)
        ]
        if not places:
            raise ValueError("a survey needs a KosterMiddleware in DOWNLOADER_MIDDLEWARES")
        place: Any = math.nextafter(max(places), math.inf)
        settings.setdefault_in_component_priority_dict(name, SurveyMiddleware, place)
        settings.set_in_component_priority_dict("EXTENSIONS", RobotsReport, 100)


def survey_addons(settings: BaseSettings) -> dict[Any, Any]:
    """Return the ADDONS of *settings*, with scrapy-koster and SurveyAddon."""
    addons = settings.getdict("ADDONS").items()
    given = {load_object(path): place for path, place in addons if place is not None}
    return {load_object("scrapy_koster.Addon"): 500, **given, SurveyAddon: math.inf}


class PageNotFetched(IgnoreRequest):
    """The page is allowed, but not fetched in a survey."""


class SurveyMiddleware:
    """Ends requests for pages; only requests for a robots.txt are sent."""

    def process_request(self, request: Request) -> None:
        """Raise PageNotFetched for a page."""
        if not is_for_robots_txt(request):
            raise PageNotFetched(request.url)


class SeedUrls(Protocol):
    """The URLs of a survey, without duplicates."""

    def __len__(self) -> int:
        """Return the number of URLs."""

    def firsts(self) -> Iterator[tuple[int, str]]:
        """Return an iterator over the sites: the number and the first URL of each site."""

    def rest(self, site: int, first: str) -> Iterator[str]:
        """Return an iterator over the URLs of the site number *site*, except *first*."""


class SurveySpider(Spider):
    """Spider that requests the URLs of *seeds*, so that KosterMiddleware decides on each URL.

    The other URLs of a site are requested after the decision on its first URL. So a hanging site
    with many URLs does not delay the other sites.
    """

    name = "survey"
    is_survey = True
    """A survey has a report without KOSTER_REPORT, and its log does not list closed sites."""

    def __init__(
        self,
        *,
        seeds: SeedUrls,
        progress: Callable[..., object],
        verdicts: Callable[[str, Verdict | str | None], object] | None = None,
        **kwargs: Any,
    ) -> None:
        """*progress* is called with three numbers: ``decided`` URLs, ``refused`` URLs, ``sites``.

        *verdicts* is called with a URL and its outcome: a ``Verdict`` if the URL is refused, None
        if allowed, or the reason as a text if undecided.
        """
        super().__init__(**kwargs)
        self.report_title = f"Survey of {len(seeds)} URLs"
        self.began = False
        self.decided = 0
        """Number of decided URLs."""
        self.undecided: Counter[str] = Counter()
        """Numbers of URLs without a decision, by reason."""
        self._seeds = seeds
        self._progress = progress
        self._verdicts = verdicts
        self._sites = self._refused = self._under_way = 0
        self._settled: list[tuple[int, str]] = []
        """Sites whose other URLs can be requested now: the number and the first URL."""

    async def start(self) -> AsyncIterator[Request]:
        """Yield the requests. URLS_AT_ONCE requests at most are under way, to bound the memory."""
        self.began = True
        firsts, clock = self._seeds.firsts(), clock_of(self.crawler)
        rest: Iterator[str] = iter(())
        # Without asyncio, the engine would log the CancelledError that ends start().
        with suppress(CancelledError):
            while True:
                if self._under_way >= URLS_AT_ONCE:
                    await clock.sleep(_LOOK_SECS)
                elif url := next(rest, None):
                    yield self._request(url)
                elif self._settled:
                    rest = self._seeds.rest(*self._settled.pop())
                elif seed := next(firsts, None):
                    yield self._request(seed[1], seed=seed)
                elif self._under_way:
                    await clock.sleep(_LOOK_SECS)
                else:
                    return

    def _request(self, url: str, **seed: tuple[int, str]) -> Request:
        """Return the request for *url*. *seed* is empty, or has a site and its first URL."""
        self._under_way += 1
        # The URLs have no duplicates, so the dupefilter need not remember the URL.
        return Request(url, self.parse, errback=self.not_fetched, cb_kwargs=seed, dont_filter=True)

    def parse(self, response: Response, **_: Any) -> None:
        """Count a URL as undecided: a middleware of the project answered before the decision."""
        assert response.request is not None  # set by Scrapy
        self._ended(response.request, "a downloader middleware answered it")

    def not_fetched(self, failure: Failure) -> None:
        """Count a URL as decided if allowed or refused, or as undecided after any other error."""
        request: Request = failure.request  # type: ignore[attr-defined]  # set by Scrapy
        error = failure.value
        decided = None if isinstance(error, PageNotFetched) else type(error).__name__
        self._ended(request, getattr(error, "verdict", decided))

    def _ended(self, request: Request, outcome: Verdict | str | None) -> None:
        """Count the URL of *request* by *outcome*, and call ``verdicts`` with both."""
        if self._verdicts is not None:
            self._verdicts(request.url, outcome)
        self._under_way -= 1
        if isinstance(outcome, str):
            self.undecided[outcome] += 1
        else:
            self.decided += 1
            self._refused += outcome is not None
        if seed := request.cb_kwargs.get("seed"):
            self._sites += 1
            self._settled.append(seed)
        self._progress(decided=self.decided, sites=self._sites, refused=self._refused)
