"""Crawls from the HTTP cache (HTTPCACHE_IGNORE_MISSING).

For a page that comes from the cache, no request is sent to the site, not even for the robots.txt:
the last copy decides, even if expired. A page that is missing in the cache is not fetched.

Some requests still go to the network: with dont_cache in the meta, with a scheme in
HTTPCACHE_IGNORE_SCHEMES, or for pages that HTTPCACHE_POLICY revalidates. These requests obey
robots.txt as always. To tell them apart, KosterMiddleware reads the cache before the decision.
"""

from __future__ import annotations

from functools import cached_property

from scrapy import Request
from scrapy.downloadermiddlewares.httpcache import HttpCacheMiddleware
from scrapy.http import Response

from scrapy_koster.crawl.fetching.retriever import Retriever
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import Failure, last_copy, why_not_obeyed
from scrapy_koster.protocol.step import Obey, Pass


class Replay:
    """Reads pages from the HTTP cache, and returns the steps of their sites."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self._log = Log(__name__, retriever.crawler)

    @cached_property
    def cache(self) -> HttpCacheMiddleware | None:
        """Scrapy's HTTP cache, or None if this is no crawl from the HTTP cache.

        None without HTTPCACHE_IGNORE_MISSING, if the cache is disabled, or if a subclass replaces
        ``process_request``.
        """
        crawler = self._retriever.crawler
        if not crawler.settings.getbool("HTTPCACHE_IGNORE_MISSING"):
            return None
        cache = crawler.get_downloader_middleware(HttpCacheMiddleware)
        if cache is None or type(cache).process_request is not HttpCacheMiddleware.process_request:
            return None
        return cache

    def answer(self, request: Request) -> Response | None:
        """Return the page in the cache, or None if *request* goes to the network.

        Raises IgnoreRequest if the page is missing in the cache.
        """
        cache = self.cache
        found = None if cache is None else cache.process_request(request)
        if not isinstance(found, Response):
            return None
        if self._log.is_first("replay"):
            self._log.info(
                "HTTPCACHE_IGNORE_MISSING is set: pages come from the HTTP cache, and no robots.txt"
                " is fetched. The last stored copy decides, even if it has expired. Pages of a site"
                " without a copy are allowed"
            )
        return found

    async def step(self, state: SiteState, page: Request) -> Obey | Pass:
        """Return Obey with the last copy of a site, or Pass if there is no copy to obey.

        The copy comes from memory or from the storage: no request is sent. Raises ParserDefectError
        if KOSTER_PARSER fails.
        """
        if state.known is None:
            await self._retriever.take_last(state, page)
        now, copy = self._retriever.clock.epoch(), last_copy(state.known)
        if copy is not None and not why_not_obeyed(copy, self._retriever.config.policy):
            step: Obey | Pass = Obey(copy, now)
        else:
            why = "HTTPCACHE_IGNORE_MISSING: no site is asked"
            step = Pass(Failure(why, 1, since=now, asked=now, retry=now, stale=None), now)
        self._retriever.announcer.replays(state, step)
        return step
