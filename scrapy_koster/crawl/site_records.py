"""The states of sites by URL, in bounded memory."""

from collections import OrderedDict
from collections.abc import Container, Iterator
from contextlib import suppress

from scrapy_koster.crawl.engine.private import Engine
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.site import Site, site_of

# The number of sites that are tried for eviction when a new site comes. Busy sites stay.
_EVICTED_AT_ONCE = 16


class SiteRecords:
    """The states of sites: *limit* sites (KOSTER_MEMORY_SITES), or more while sites are busy.

    The least recently used site is evicted first. A site is busy if requests wait for it
    (*waiting*), or if a request to it is in the downloader.
    """

    def __init__(self, limit: int, engine: Engine, waiting: Container[SiteState]) -> None:
        self._limit = limit
        self._engine = engine
        self._waiting = waiting
        self._states: OrderedDict[str, SiteState] = OrderedDict()
        """The states by origin, without a default port. The most recently used state is last."""

    def __iter__(self) -> Iterator[SiteState]:
        return iter(list(self._states.values()))

    def state_of(self, url: str) -> SiteState | None:
        """Return the state of the site of *url*, or None if the scheme has no robots.txt.

        If there is no state yet, a state is added. Raises ValueError for an http or https URL
        without a valid site.
        """
        origin = _origin_of(url)
        state = self._states.get(origin)
        if state is None and (site := site_of(origin)) is not None:
            state = self._states.get(str(site)) or self._added(site)
        if state is not None:
            self._states.move_to_end(str(state.site))
        return state

    def in_memory(self, url: str) -> SiteState | None:
        """Return the state of the site of *url* if it is in memory, or None."""
        origin = _origin_of(url)
        with suppress(ValueError):  # no valid site
            return self._states.get(origin) or self._states.get(str(site_of(origin)))
        return None

    def _added(self, site: Site) -> SiteState:
        """Return a new state of *site*, for which another site may have been evicted."""
        for _ in range(_EVICTED_AT_ONCE):
            if len(self._states) < self._limit:
                break
            name, state = next(iter(self._states.items()))
            if self._is_busy(state):
                self._states.move_to_end(name)
            else:
                del self._states[name]
        added = self._states[str(site)] = SiteState(site)
        return added

    def _is_busy(self, state: SiteState) -> bool:
        # A request in the downloader needs the state for the check before it is sent.
        hooks = self._engine.hooks
        requests = (*self._engine.under_way, *hooks.in_place, *hooks.paced)
        return state in self._waiting or any(self.in_memory(each.url) is state for each in requests)


def _origin_of(url: str) -> str:
    end = url.find("/", 8)
    return url if end < 0 else url[:end]
