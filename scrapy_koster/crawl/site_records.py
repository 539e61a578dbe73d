"""The states of sites by URL. Their files have bounded memory, and are loaded again if needed."""

from collections import Counter, OrderedDict
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, replace

from scrapy_koster.crawl.engine.private import Engine
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
from scrapy_koster.crawl.states import Facts, SiteState
from scrapy_koster.protocol.access import CachedRobots, FetchFailure, last_copy
from scrapy_koster.protocol.site import Site, site_of

# The number of sites that are tried for eviction at once. Sites that are needed stay.
_EVICTED_AT_ONCE = 16
# A state without a file has less than 1 kB. Beyond this number, the oldest are forgotten.
_STATES_MAX = 50_000
# The memory of a file: its text, its parsed rules (``test_large_files.py``), its objects.
_FILE_FACTOR, _FILE_BYTES = 7, 4_000


@dataclass(kw_only=True, eq=False)
class SiteRecords:
    """The states of sites, and the copies and parsed files of at most *most* bytes.

    Beyond *most* (KOSTER_MEMORY_BYTES), the least recently used file is unloaded: its site is
    unknown again, and the next request loads the copy from the storage. Sites with the same file
    share one. A file stays while it is needed: while requests wait for its site (*waiting*) or for
    the next visit to its host, come out of the scheduler (*parked*), or are in the downloader.
    So a crawl of more sites than its memory has room for goes on: it takes no new sites until the
    loaded ones have made room, but for *least* sites. Hosts that rest may rest for hours, and sites
    that have failed wait: they delay no other site, and their files come on top.
    """

    most: int
    least: int
    engine: Engine
    parked: ParkedRequests
    waiting: Container[SiteState]

    def __post_init__(self) -> None:
        """Begin without sites."""
        self._left = self.most
        self._states: dict[str, SiteState] = {}
        """The states by origin, without a default port, the oldest first."""
        self._loaded: OrderedDict[SiteState, bytes] = OrderedDict()
        """The text of the file of each loaded site. The most recently used is last."""
        self._users: Counter[bytes] = Counter()
        """The number of loaded sites by the text of their file."""
        self._facts: dict[bytes, Facts] = {}
        """The facts of the first site with this text."""

    def state_of(self, url: str) -> SiteState | None:
        """Return the state of the site of *url*, or None if the scheme has no robots.txt.

        If there is no state yet, a state is added. Raises ValueError for an http or https URL
        without a valid site.
        """
        origin = _origin_of(url)
        state = self._states.get(origin)
        if state is None and (site := site_of(origin)) is not None:
            state = self._states.get(str(site)) or self._added(site)
        return state

    def in_memory(self, url: str) -> SiteState | None:
        """Return the state of the site of *url* if it is in memory, or None."""
        origin = _origin_of(url)
        with suppress(ValueError):  # no valid site
            return self._states.get(origin) or self._states.get(str(site_of(origin)))
        return None

    def _added(self, site: Site) -> SiteState:
        """Return a new state of *site*, for which the oldest may have been forgotten."""
        if len(self._states) >= _STATES_MAX:
            name, state = next(iter(self._states.items()))
            del self._states[name]
            if state in self.waiting or state in self._loaded:  # it is not forgotten
                self._states[name] = state
        added = self._states[str(site)] = SiteState(site)
        return added

    # The files.

    def shared(self, copy: CachedRobots) -> tuple[CachedRobots, Facts | None]:
        """Return *copy*, and the facts in its file. None if no loaded site has the same file.

        The copies of loaded sites share the text of a file.
        """
        facts = self._facts.get(copy.body)
        if facts is None or facts.parser is None:
            return copy, None
        loaded = last_copy(facts.known)
        return replace(copy, body=loaded.body if loaded else copy.body), facts

    def learn(self, state: SiteState, facts: Facts) -> None:
        """Replace the facts about a site, and keep its file in memory."""
        self._unload(state)
        state.learn(facts)
        copy = last_copy(facts.known)
        if copy and copy.body:
            self._evict()  # before it is loaded: its request has not been decided yet
            text = self._loaded[state] = copy.body
            self._users[text] += 1
            if self._users[text] == 1:
                self._facts[text] = facts
                self._left -= _size_of(text)

    def use(self, state: SiteState) -> None:
        """Note that a request was decided by the file of a site."""
        if self._left < 0:
            self.engine.wake()  # the scheduler waits for room, which there may be now
        if state in self._loaded:
            self._loaded.move_to_end(state)

    def has_room(self) -> bool:
        """Return whether files of more sites can be loaded, after an eviction if necessary."""
        is_used = self._left < 0 and self._evict()
        return self._left >= 0 or len(self._loaded) < self.least or not is_used

    def _evict(self) -> bool:
        """Unload the least recently used files until there is room. A few are tried.

        Returns whether one of these will make room soon: its requests come out, or are under way.
        """
        is_used = False
        origins: set[str] | None = None
        for _ in range(min(_EVICTED_AT_ONCE, len(self._loaded))):
            if self._left >= 0:
                break
            state = next(iter(self._loaded))
            if origins is None:
                origins = {_origin_of(each.url) for each in self.engine.active}
            name = str(state.site)
            is_soon_free = name in origins or self.parked.comes_out(name)
            is_needed = state in self.waiting or self.parked.waiting_in(state.site.host)
            if is_soon_free or is_needed or state.in_place:
                is_used = is_used or is_soon_free
                self._loaded.move_to_end(state)
            else:
                self._unload(state)
                known = state.known
                failed = replace(known, stale=None) if isinstance(known, FetchFailure) else None
                state.learn(state.facts._replace(known=failed, parser=None, watch=None, usage=None))

        return is_used

    def _unload(self, state: SiteState) -> None:
        text = self._loaded.pop(state, None)
        if text is None:
            return
        self._users[text] -= 1
        if not self._users[text]:
            del self._users[text], self._facts[text]
            self._left += _size_of(text)


def _size_of(text: bytes) -> int:
    return _FILE_FACTOR * len(text) + _FILE_BYTES


def _origin_of(url: str) -> str:
    end = url.find("/", 8)
    return url if end < 0 else url[:end]
