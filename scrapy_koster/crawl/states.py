"""The life of a site in a crawl: states, events, and a table of the moves.

A crawl has a ``SiteState`` for each site, with the known facts (``facts``), the step that follows
from the facts (``protocol.step``: Obey, Pass, Ask, Defer or Refuse), and one of these states:

    UNKNOWN --- NEEDED ---> FETCHING ---+--- Obey, Pass ---> SETTLED  ---+
       ^                                +--- Refuse -------> GIVEN_UP ---+
       |                                '--- Defer --------> DEFERRED ---+
       |                                                                 |
       '--- Ask: the facts have expired, or the next attempt is due -----'

Requests wait while the site is UNKNOWN, FETCHING or DEFERRED. Only ``Sites`` moves a site.

The state follows from the step (``moved_by``), so that the state cannot contradict the facts. Time
changes a step without an event: a copy expires, or an attempt becomes due. ``Sites`` takes the new
step when it looks at the site. So a step can move a site from any state, for example after the
clock was set back. During an attempt, only the end of the attempt moves the site.

An event without a move in ``TABLE`` raises KeyError. Three events come from the crawl:

- NEEDED: a request begins to wait, or still waits after a look at the site. This starts an attempt
  or the timer of the next attempt, unless an attempt is under way. A request to a site that is
  settled or given up is decided at once, so there is no NEEDED in these states.
- IDLE: the crawl has had no other work for KOSTER_IDLE_LIMIT_SECS, and the last attempt failed. The
  site does not move, and can be tried again if the crawl goes on. There is no IDLE before the end
  of the first attempt, because an answer may still come.
- CLOSING: the crawl closes. No new attempt begins.

An action decides the waiting requests, depending on where they wait (``Fates``). When the crawl
closes, a request that waits in place, inside the downloader, is refused, because the crawl cannot
end while the request waits. A request in the scheduler stays parked until
``DeferringScheduler.close`` keeps or drops the request. If the queue is kept for the next run
(JOBDIR, scrapy-redis), IDLE refuses only parked requests that are not in the file of the JOBDIR.

docs/architecture.md shows ``TABLE`` and ``FATES``. ``python -m harness.state_tables`` prints both,
with tests/ on the path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import NamedTuple

from scrapy import Request
from scrapy.robotstxt import RobotParser
from scrapy.utils.asyncio import CallLaterResult
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure as TwistedFailure

from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.delay import Delay
from scrapy_koster.protocol.hazard import Cause, Watch
from scrapy_koster.protocol.policy import Policy
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.standing import Standing
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, Step, next_step, waits
from scrapy_koster.protocol.usage_lines import UsageLines
from scrapy_koster.protocol.verdict import Source


class State(Enum):
    """The state of a site, and of requests to the site."""

    UNKNOWN = "unknown"
    """There are no valid facts, and no attempt is under way."""
    FETCHING = "fetching"
    """An attempt is under way. If the storage has a valid copy, the attempt needs no fetch."""
    DEFERRED = "deferred"
    """The last attempt failed. The time of the next attempt is known."""
    SETTLED = "settled"
    """Requests do not wait. The copy decides, or requests pass (KOSTER_UNAVAILABLE)."""
    GIVEN_UP = "given up"
    """Requests are refused.

    Attempts failed for KOSTER_DEFER_LIMIT_SECS, the host does not exist, or KOSTER_UNAVAILABLE
    refuses requests after a failed attempt.
    """


class Event(Enum):
    """An event in the life of a site."""

    NEEDED = "needed"
    """A request waits for the site."""
    IDLE = "idle"
    """The crawl has had no other work for KOSTER_IDLE_LIMIT_SECS, and the last attempt failed."""
    CLOSING = "closing"
    """The crawl closes."""


class Action(Enum):
    """An action when a site moves."""

    NOTHING = "nothing"
    FETCH = "starts an attempt"
    SET_TIMER = "sets the timer of the next attempt"
    LET_GO = "requests go on"
    REFUSE = "requests are refused"
    GIVE_UP = "requests are given up"
    HOLD = "waits in place end"


class Fate(Enum):
    """The fate of a waiting request."""

    WAIT = "waits"
    GO = "goes on"
    """The copy decides the request, or the request passes (KOSTER_UNAVAILABLE = "allow")."""
    GIVE_UP = "is refused"
    """The request ends with RobotsUnavailable."""
    KEEP = "stays parked"
    """The request stays parked until ``DeferringScheduler.close`` keeps or drops the request."""


class Fates(NamedTuple):
    """The fates of waiting requests, depending on where they wait."""

    in_place: Fate
    """The fate of a request that waits inside the downloader, such as one of a media pipeline."""
    parked: Fate
    """The fate of a request in the scheduler, if the queue is not kept for the next run."""
    kept: Fate
    """The fate of a request in the scheduler, if the queue is kept for the next run."""


_S, _E, _A = State, Event, Action
TABLE: dict[tuple[State, Event], tuple[State, Action]] = {
    (_S.UNKNOWN, _E.NEEDED): (_S.FETCHING, _A.FETCH),
    (_S.UNKNOWN, _E.IDLE): (_S.UNKNOWN, _A.GIVE_UP),
    (_S.UNKNOWN, _E.CLOSING): (_S.UNKNOWN, _A.HOLD),
    (_S.FETCHING, _E.NEEDED): (_S.FETCHING, _A.NOTHING),
    (_S.FETCHING, _E.IDLE): (_S.FETCHING, _A.GIVE_UP),
    (_S.FETCHING, _E.CLOSING): (_S.FETCHING, _A.HOLD),
    (_S.DEFERRED, _E.NEEDED): (_S.DEFERRED, _A.SET_TIMER),
    (_S.DEFERRED, _E.IDLE): (_S.DEFERRED, _A.GIVE_UP),
    (_S.DEFERRED, _E.CLOSING): (_S.DEFERRED, _A.HOLD),
}
"""The next state and the action, by state and event. A missing move is a defect (KeyError)."""

_WAIT = Fates(Fate.WAIT, Fate.WAIT, Fate.WAIT)
FATES: dict[Action, Fates] = {
    _A.NOTHING: _WAIT,
    _A.FETCH: _WAIT,
    _A.SET_TIMER: _WAIT,
    _A.LET_GO: Fates(Fate.GO, Fate.GO, Fate.GO),
    _A.REFUSE: Fates(Fate.GIVE_UP, Fate.GIVE_UP, Fate.GIVE_UP),
    _A.GIVE_UP: Fates(Fate.GIVE_UP, Fate.GIVE_UP, Fate.KEEP),
    _A.HOLD: Fates(Fate.GIVE_UP, Fate.KEEP, Fate.KEEP),
}


def moved_by(step: Step) -> tuple[State, Action]:
    """Return the state that follows from a step of the protocol, and the action."""
    match step:
        case Obey() | Pass():
            return State.SETTLED, Action.LET_GO
        case Defer():
            return State.DEFERRED, Action.NOTHING
        case Refuse():
            return State.GIVEN_UP, Action.REFUSE
        case Ask():  # pragma: no branch
            return State.UNKNOWN, Action.NOTHING


class Facts(NamedTuple):
    """The facts about a site, which were learnt at the same time."""

    known: Known | None = None
    source: Source = Source.FETCHED
    parser: RobotParser | None = None
    """The parser of the copy, if the copy has rules."""
    watch: Watch | None = None
    """Finds allowed pages that RFC 9309 or a hidden line forbids.

    None if the file cannot have such pages, or if the parser has no ``watch``.
    """
    usage: UsageLines | None = None
    """The usage preferences in the file. None without such lines, or if the crawl ignores them."""
    defect: TwistedFailure | None = None
    """The last error of a component. It counts if ``known`` is a Failure with ``is_defect``."""


@dataclass(eq=False, slots=True)
class SiteState:
    """The facts about a site, with the step and the state that follow from the facts.

    ``step`` is valid until ``until_epoch``, in seconds since the epoch. After that time, call
    ``take_step`` for the next step.

    A field is written only by its owner, except that ``learn`` resets ``delays`` and
    ``until_epoch``:

    - ``facts``: ``learn``, which the retriever calls;
    - ``step``, ``until_epoch``: ``take_step``, from the facts, the policy and the time;
    - ``state``, ``page``, ``waiters``, ``timer``: ``Sites``;
    - ``delays``, ``is_delay_logged``: ``pacing.delays``;
    - ``standing``, ``is_deferred``, ``hazards``: the announcer.
    """

    site: Site
    facts: Facts = field(default_factory=Facts)
    step: Step = field(default_factory=partial(Ask, None))
    until_epoch: float = 0.0
    state: State = State.UNKNOWN
    page: Request | None = None
    """A waiting ``Request``, or None if no request waits.

    An attempt fetches the robots.txt with the User-Agent and the proxy of this request, and with
    its other meta keys in KOSTER_PAGE_META.
    """
    waiters: tuple[Deferred[Step], ...] = ()
    """A Deferred for each request that waits in place."""
    timer: CallLaterResult | None = None
    """The timer of the next attempt."""
    delays: dict[str, Delay | None] | None = None
    """The delays in the file, by name of the robot. None until the file is read for delays."""
    is_delay_logged: bool = False
    standing: Standing | None = None
    """The last announced status of the site."""
    is_deferred: bool = False
    """Whether the last announcement was that visits are deferred."""
    hazards: frozenset[Cause] = frozenset()
    """The causes of hazards that are counted for the site already."""

    @property
    def known(self) -> Known | None:
        """The copy of the robots.txt, a failure, or None before the first result."""
        return self.facts.known

    def learn(self, facts: Facts) -> None:
        """Replace the facts. The step and the delays will be taken from the new facts."""
        self.facts = facts
        self.delays = None
        self.until_epoch = 0.0

    def take_step(self, *, now: float, policy: Policy) -> Step:
        """Return the step for a request to the site at the time *now*."""
        if now >= self.until_epoch:
            step = self.step = next_step(self.known, now=now, policy=policy)
            self.until_epoch = 0.0 if waits(step) else step.until
        return self.step
