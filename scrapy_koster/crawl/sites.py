"""The sites of a crawl, and what is known of each."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING

from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, Step, next_step
from scrapy_koster.protocol.verdict import Source, permission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.robotstxt import RobotParser
    from twisted.internet.defer import Deferred

    from scrapy_koster.protocol.access import Policy
    from scrapy_koster.protocol.rfc9309 import Rfc9309
    from scrapy_koster.protocol.standing import Standing
    from scrapy_koster.protocol.verdict import Permission

# Sites that requests wait for stay; so many are passed over for each new one.
_EVICTED_AT_ONCE = 16
_SPELLINGS_KEPT = 1000
_SPELLING_CHARS = 300


def _nothing(_url: str, _robot: str | bytes) -> bool:
    return False


class SiteState:
    """What is known of one site, and what follows from it.

    ``allows(url, robot)`` answers for the site until ``until``, in seconds
    since the epoch; from then on ``take_step`` has to be asked first.

    Each field has one writer:

    - ``known``, ``source``, ``parser``, ``hazard``: ``learn``, which the asker calls;
    - ``step``, ``allows``, ``until``: ``take_step``, from the three above;
    - ``on_behalf_of``, ``waiters``: the keeper;
    - ``delay``, ``in_turn``, ``is_paced``: the pacer;
    - ``parked``, ``turns``: the scheduler;
    - ``standing``: the announcer.
    """

    __slots__ = (
        "allows",
        "delay",
        "hazard",
        "in_turn",
        "is_paced",
        "known",
        "on_behalf_of",
        "origin",
        "parked",
        "parser",
        "site",
        "source",
        "standing",
        "step",
        "turns",
        "until",
        "waiters",
    )

    def __init__(self, site: Site) -> None:
        self.site = site
        self.origin = f"{site}/"
        self.known: Known | None = None
        self.source = Source.FETCHED
        self.parser: RobotParser | None = None
        """Of the copy that is known, where that has rules."""
        self.hazard: Rfc9309 | None = None
        """What RFC 9309 says, where the parser is the draft's and wildcards make a difference."""
        self.delay: float | None = None
        """How far apart visits to it are to be, in seconds; None where that has not been read."""
        self.is_paced = False
        """Whether it was said that it asks for a delay."""
        self.step: Step = Ask(None)
        self.allows: Permission = _nothing
        self.until = 0.0
        self.on_behalf_of: Request | None = None
        """The request that the site is asked for next time."""
        self.waiters: list[Deferred[Step]] = []
        """Of the requests that wait in place."""
        self.parked = 0
        """How many requests wait in the scheduler."""
        self.turns = 0
        """How many of these wait for a turn of its host alone."""
        self.in_turn = 0
        """How many wait in place for a turn of its host."""
        self.standing: Standing | None = None
        """What the site was last announced as."""

    @property
    def wanted(self) -> int:
        """How many requests wait for the site."""
        return len(self.waiters) + self.parked

    @property
    def is_awaited(self) -> bool:
        """Whether requests wait for the site, or for a turn of its host."""
        return bool(self.wanted or self.in_turn)

    def learn(self, known: Known | None, source: Source, parser: RobotParser | None) -> None:
        """Take what is known now; *parser* is that of its copy, if that has rules."""
        self.known = known
        self.source = source
        self.parser = parser
        self.hazard = parser.rfc9309 if isinstance(parser, KosterRobotParser) else None
        self.delay = None
        self.until = 0.0

    def take_step(self, *, now: float, policy: Policy) -> Step:
        """Return what to do *now* with a request to the site."""
        if now >= self.until:
            self.step = next_step(self.known, now=now, policy=policy)
            match self.step:
                case Obey(until=until) | Pass(until=until) | Refuse(until=until):
                    # Where access is by rules, learn() was given the parser.
                    self.allows = permission(self.step, self.parser, policy)
                    self.until = until
                case Ask() | Defer():
                    self.allows, self.until = _nothing, 0.0
        return self.step


class Sites:
    """The states of *limit* sites (KOSTER_MEMORY_SITES): least recently used out first.

    A site that *is_busy* (requests wait for it, or it is being asked) stays.
    """

    def __init__(self, limit: int, is_busy: Callable[[SiteState], object]) -> None:
        self._limit = limit
        self._is_busy = is_busy
        self._states: OrderedDict[str, SiteState] = OrderedDict()
        """By origin, without a default port; the most recently used is last."""

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[SiteState]:
        return iter(list(self._states.values()))

    def state_of(self, url: str) -> SiteState | None:
        """Return the state of the site of *url*, None if robots.txt is not for it.

        Raises ValueError for an http or https URL that names no site.
        """
        end = url.find("/", 8)
        origin = url if end < 0 else url[:end]
        state = self._states.get(origin)
        if state is None:
            return self._found(origin)
        self._states.move_to_end(origin)
        return state

    def _found(self, origin: str) -> SiteState | None:
        site = _site_of(origin) if len(origin) <= _SPELLING_CHARS else site_of(origin)
        if site is None:
            return None
        name = str(site)
        state = self._states.get(name)
        if state is None:
            self._make_room()
            state = self._states[name] = SiteState(site)
        self._states.move_to_end(name)
        return state

    def _make_room(self) -> None:
        for _ in range(_EVICTED_AT_ONCE):
            if len(self._states) < self._limit:
                return
            name, state = next(iter(self._states.items()))
            if self._is_busy(state):
                self._states.move_to_end(name)
            else:
                del self._states[name]


# Links spell a site in few ways ("http://a.com:80", "HTTP://A.com").
_site_of = lru_cache(maxsize=_SPELLINGS_KEPT)(site_of)
