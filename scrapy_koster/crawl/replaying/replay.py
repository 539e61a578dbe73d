"""Crawls from the HTTP cache (HTTPCACHE_IGNORE_MISSING).

A page that is missing in the cache is not fetched. For a page in the cache, no request is sent to
the site, not even for the robots.txt: the last copy decides, even if expired.

The cache passes some requests on to the network: with dont_cache in the meta, with a scheme in
HTTPCACHE_IGNORE_SCHEMES, and for pages that the policy validates. These requests obey robots.txt as
always. So KosterMiddleware reads the cache itself, before a request is decided.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcache import HttpCacheMiddleware
from scrapy.http import Response
from scrapy.utils.misc import build_from_crawler

from scrapy_koster.crawl.clock import clock_of
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.site_records import SiteRecords
from scrapy_koster.crawl.states import Facts
from scrapy_koster.protocol.access import Failure, last_copy, standing_of, why_not_obeyed
from scrapy_koster.protocol.defect import checked_parser, guarded
from scrapy_koster.protocol.policy import Unavailable
from scrapy_koster.protocol.standing import Access
from scrapy_koster.protocol.step import standing_by, waits
from scrapy_koster.protocol.usage_lines import usage_lines

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.fetching.storage_calls import StorageCalls
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.step import Step


class Replay:
    """Reads pages from the HTTP cache, and the last copies from the storage."""

    def __init__(self, crawler: Crawler, config: Config, store: StorageCalls) -> None:
        self._crawler = crawler
        self._config = config
        self._stats = crawler.stats
        self._log = Log(__name__, crawler)
        self._clock = clock_of(crawler)
        self._store = store
        self._policy = replace(config.policy, unavailable=Unavailable.ALLOW)
        """Without a copy a page passes."""
        self._records = SiteRecords(config.memory_sites, lambda _: True)
        """The sites of pages in the cache."""
        self._said = False

    @property
    def is_on(self) -> bool:
        """Whether pages come from the HTTP cache only."""
        return self.cache is not None

    @property
    def cache(self) -> HttpCacheMiddleware | None:
        """Scrapy's HTTP cache, or None if the crawl does not use this cache."""
        cache = self._crawler.get_downloader_middleware(HttpCacheMiddleware)
        if cache is None or type(cache).process_request is not HttpCacheMiddleware.process_request:
            return None
        return cache

    def answer(self, request: Request) -> Response | None:
        """Return the page in the cache, or None if the cache would send *request*.

        Raises IgnoreRequest if the page is missing.
        """
        cache = self.cache
        found = None if cache is None else cache.process_request(request)
        if not isinstance(found, Response):
            return None
        if not self._said:
            self._said = True
            self._log.info(
                "HTTPCACHE_IGNORE_MISSING is set: pages come from the HTTP cache, and no robots.txt"
                " is fetched. The last stored copy decides, even if it has expired. Pages of a site"
                " without a copy are allowed"
            )
        return found

    async def last_known(self, state: SiteState) -> tuple[SiteState, Step]:
        """Return a state with the last copy for the site of *state*, and the step of this state.

        The copy is in memory or in the storage. Raises ParserDefectError if KOSTER_PARSER fails.
        """
        last = self._records.state_of(state.origin)
        assert last is not None  # the origin is a site
        now = self._clock.epoch()
        if last_copy(state.known) is not None:
            last.learn(self._without_end(state.facts, now))
        elif last.known is None:
            last.learn(self._without_end(await self._stored(state), now))
        step = last.take_step(now=now, policy=self._policy)
        assert not waits(step)  # the copy does not expire
        last.standing = standing_by(step, self._policy)
        return last, step

    def _without_end(self, facts: Facts, now: float) -> Facts:
        """Return *facts* whose copy decides from now on."""
        copy = last_copy(facts.known)
        if copy is None or why_not_obeyed(copy, self._policy):
            why = "HTTPCACHE_IGNORE_MISSING: no site is asked"
            return Facts(Failure(why, 1, since=now, asked=now, retry=math.inf, stale=None))
        known = replace(copy, fetched=min(copy.fetched, now), expires=math.inf)
        return facts._replace(known=known, watch=None)

    async def _stored(self, state: SiteState) -> Facts:
        copy, source = last_copy(await self._store.get(state.site)), self._store.source
        if copy is None:
            return Facts()
        self._stats.inc_value("koster/storage/hit")
        if standing_of(copy, self._policy).access is not Access.BY_RULES:
            return Facts(copy, source)
        kind, body, usage = self._config.parser, copy.in_utf8, self._config.usage
        build = partial(build_from_crawler, kind, self._crawler, body)
        parser = checked_parser(kind, guarded(kind, "from_crawler", build))
        lines = usage_lines(body, parser, labels=usage.labels) if usage.is_on else None
        return Facts(copy, source, parser, usage=lines)


def is_replay(settings: BaseSettings) -> bool:
    """Return whether the settings let the crawl ignore pages that are not in the cache."""
    get = settings.getbool
    return get("HTTPCACHE_ENABLED") and get("HTTPCACHE_IGNORE_MISSING")
