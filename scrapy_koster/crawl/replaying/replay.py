"""A crawl out of Scrapy's HTTP cache alone, which asks no site for its robots.txt either.

With HTTPCACHE_IGNORE_MISSING a page that is not in the cache is not fetched. Of one that is there
nothing is fetched from its site, so the last copy of its robots.txt decides, however old it is.

What the cache passes on to the network (dont_cache in the meta, HTTPCACHE_IGNORE_SCHEMES, a page
that its policy wants to validate) is subject to robots.txt as always. So nothing is foretold: the
cache is asked for the answer, before any other middleware can see a request that was not decided.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcache import HttpCacheMiddleware
from scrapy.http import Response

from scrapy_koster.crawl.fetching.fetcher import Fetcher
from scrapy_koster.crawl.fetching.storage_calls import StorageCalls
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import Answer, Copy, NoAnswer, last_copy
from scrapy_koster.protocol.policy import Unavailable
from scrapy_koster.protocol.step import Pass
from scrapy_koster.storage.port import Claimed

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.sites import Sites
    from scrapy_koster.protocol.access import Known
    from scrapy_koster.protocol.policy import Policy
    from scrapy_koster.protocol.site import Site
    from scrapy_koster.protocol.step import Step


class Replay:
    """Answers requests out of the HTTP cache, and knows the last copies."""

    def __init__(
        self, crawler: Crawler, log: Log, clock: Clock, *, policy: Policy, sites: Sites
    ) -> None:
        """*policy* and *sites* are as ``policy_of_replay`` and ``LastCopies`` have them."""
        self._crawler = crawler
        self._log = log
        self._clock = clock
        self._policy = policy
        self._sites = sites
        self._said = False

    @property
    def is_on(self) -> bool:
        """Whether pages come out of the HTTP cache alone, and no site need be asked."""
        return self.cache is not None

    @property
    def cache(self) -> HttpCacheMiddleware | None:
        """The HTTP cache, None where it is not in the crawl, or another in its place."""
        cache = self._crawler.get_downloader_middleware(HttpCacheMiddleware)
        if cache is None or type(cache).process_request is not HttpCacheMiddleware.process_request:
            return None
        return cache

    def answer(self, request: Request) -> Response | None:
        """Return the page out of the cache, None where the network would be asked for it.

        Raises IgnoreRequest where it is not there.
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

    async def last_known(self, state: SiteState, request: Request) -> tuple[SiteState, Step]:
        """Return what decides on *request*: the last copy for the site of *state*."""
        now = self._clock.epoch()
        if (copy := last_copy(state.known)) is not None:
            last = SiteState(state.site)
            last.learn(state.facts._replace(known=_without_end(copy, now), watch=None))
            return last, last.take_step(now=now, policy=self._policy)
        stored = self._sites.state_of(state.origin)
        assert stored is not None  # it has a site
        if now < stored.until_epoch:
            return stored, stored.step
        return stored, await self._sites.wait(stored, request)

    async def close(self) -> None:
        """Close the storage."""
        await self._sites.close()


def is_replay(settings: BaseSettings) -> bool:
    """Return whether the settings say that what is not cached is ignored."""
    get = settings.getbool
    return get("HTTPCACHE_ENABLED") and get("HTTPCACHE_IGNORE_MISSING")


def policy_of_replay(policy: Policy) -> Policy:
    """Return *policy* for a crawl that asks no site: without a copy a page passes."""
    return replace(
        policy, unavailable=Unavailable.ALLOW, defer_first_secs=math.inf, defer_max_secs=math.inf
    )


def _without_end(copy: Copy, now: float) -> Copy:
    return replace(copy, fetched=min(copy.fetched, now), expires=math.inf)


class QuietAnnouncer(Announcer):
    """Does not say of each site that it was not asked: that is said once, of all."""

    def send(self, signal: object, **named: object) -> None:
        """Send nothing: these sites are not those of the crawl."""

    def announce(self, state: SiteState, step: Step, waiting: int) -> None:
        if not isinstance(step, Pass):
            super().announce(state, step, waiting)


class NoFetch(Fetcher):
    """Requests no robots.txt."""

    async def fetch(self, *_: object, **__: object) -> Answer | NoAnswer:
        """Return that no site is asked."""
        return NoAnswer("HTTPCACHE_IGNORE_MISSING: no site is asked")


class LastCopies(StorageCalls):
    """The last copies in a storage, which never expire. Nothing is claimed or written."""

    async def get(self, site: Site) -> Known | None:
        """Return the last copy of *site*."""
        copy = last_copy(await super().get(site))
        return None if copy is None else _without_end(copy, self._clock.epoch())

    async def claim(self, site: Site, *, secs: float, unless_known: bool) -> Claimed:  # noqa: ARG002
        """Return the last copy of *site*. Nothing is claimed."""
        known = await self.get(site)
        if unless_known and known is not None:
            self._stats.inc_value("koster/storage/hit")
        return Claimed(known if unless_known else None, 0.0)

    async def put(self, site: Site, known: Known) -> None:
        """Write nothing."""
