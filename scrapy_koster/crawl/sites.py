"""The sites of a crawl, and what is known of each."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from scrapy_koster.crawl.decision import rules_of
from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.step import Ask, Step, next_step, waits
from scrapy_koster.protocol.verdict import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy.robotstxt import RobotParser
    from twisted.python.failure import Failure

    from scrapy_koster.protocol.defect import Permission
    from scrapy_koster.protocol.hazard import Cause, Watch
    from scrapy_koster.protocol.policy import Policy
    from scrapy_koster.protocol.standing import Standing
    from scrapy_koster.protocol.usage_lines import UsageLines

# Sites that requests wait for stay; so many are passed over for each new one.
_EVICTED_AT_ONCE = 16
_SPELLINGS_KEPT = 1000
_SPELLING_CHARS = 300


def _nothing(_url: str, _robot: str | bytes) -> bool:
    return False


class Facts(NamedTuple):
    """What is known of a site, learnt at one moment."""

    known: Known | None = None
    source: Source = Source.FETCHED
    parser: RobotParser | None = None
    """The parser of the copy that is known, if that has rules."""
    watch: Watch | None = None
    """Finds pages that RFC 9309 forbids, if the draft decides and allows such pages."""
    usage: UsageLines | None = None
    """The statements in the file of what its pages may be used for, if there may be any."""
    defect: Failure | None = None
    """The error of a component of the crawl, if that made the last attempt fail."""


class SiteState:
    """What is known of one site, and what follows from it.

    ``allows(url, robot)`` answers for the site until ``until_epoch``, in seconds since the
    epoch; from then on ``take_step`` has to be called first.

    Each field has one writer:

    - ``facts``: ``learn``, which the retriever calls;
    - ``step``, ``allows``, ``until_epoch``: ``take_step``, from the facts, the policy and the time;
    - ``delay``: ``pacing.delays``;
    - ``standing``, ``is_deferred``, ``hazards``: the announcer.
    """

    __slots__ = (
        "allows", "delay", "facts", "hazards", "is_deferred", "origin", "site",
        "standing", "step", "until_epoch",
    )  # fmt: skip

    def __init__(self, site: Site) -> None:
        self.site = site
        self.origin = f"{site}/"
        self.facts = Facts()
        self.step: Step = Ask(None)
        self.allows: Permission = _nothing
        self.until_epoch = 0.0
        self.delay: float | None = None
        """How far apart visits are to be, in seconds; None if the file has not been read for it."""
        self.standing: Standing | None = None
        """What the site was last announced as."""
        self.is_deferred = False
        """Whether it was announced that visits to it are deferred, and nothing else since."""
        self.hazards: frozenset[Cause] = frozenset()
        """Why RFC 9309 forbids pages of it that were let through."""

    @property
    def known(self) -> Known | None:
        """What is known of the site: a copy of its robots.txt, a failure, or nothing."""
        return self.facts.known

    @property
    def source(self) -> Source:
        """Where that was learnt from."""
        return self.facts.source

    @property
    def parser(self) -> RobotParser | None:
        """The parser of the copy that is known, if that has rules."""
        return self.facts.parser

    def learn(self, facts: Facts) -> None:
        """Take what is known now."""
        self.facts = facts
        self.delay = None
        self.until_epoch = 0.0

    def take_step(self, *, now: float, policy: Policy) -> Step:
        """Return what to do *now* with a request to the site."""
        if now >= self.until_epoch:
            step = self.step = next_step(self.known, now=now, policy=policy)
            if waits(step):
                self.allows, self.until_epoch = _nothing, 0.0
            else:
                self.allows, self.until_epoch = rules_of(
                    self.site, step, self.parser, policy=policy, now=now
                )
        return self.step


class Sites:
    """The states of *limit* sites (KOSTER_MEMORY_SITES): least recently used out first.

    *forget* is told of a site that is to go, and says whether it may: one that is busy stays.
    """

    def __init__(self, limit: int, forget: Callable[[SiteState], bool]) -> None:
        self._limit = limit
        self._forget = forget
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

    def in_memory(self, url: str) -> SiteState | None:
        """Return the state of the site of *url* if there is one; nothing is made or moved."""
        end = url.find("/", 8)
        origin = url if end < 0 else url[:end]
        return self._states.get(origin) or self._states.get(str(site_of(origin)))

    def met(self, url: str) -> SiteState | None:
        """Return what ``in_memory`` does, and None for a URL that names no site."""
        try:
            return self.in_memory(url)
        except ValueError:
            return None

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
            if self._forget(state):
                del self._states[name]
            else:
                self._states.move_to_end(name)


# Links spell a site in few ways ("http://a.com:80", "HTTP://A.com").
_site_of = lru_cache(maxsize=_SPELLINGS_KEPT)(site_of)
