"""The life of a site in a crawl: its state, the events, and a table of the actions.

A crawl has a ``SiteState`` for each site, with the known facts (``facts``), and with the step that
follows from the facts (``protocol.step``: Obey, Pass, Ask, Defer or Refuse). The state follows from
the step, so that it cannot contradict the facts. During an attempt, the state is FETCHING:

    UNKNOWN --- NEEDED ---> FETCHING ---+--- Obey, Pass ---> SETTLED  ---+
       ^                                +--- Refuse -------> GIVEN_UP ---+
       |                                '--- Defer --------> DEFERRED ---+
       |                                                                 |
       '--- Ask: the facts have expired, or the next attempt is due -----'

Requests wait while the site is UNKNOWN, FETCHING or DEFERRED. Time changes a step without an event:
a copy expires, an attempt becomes due, the clock is set back. So ``Sites`` takes the step anew
whenever it looks at a site. Three events come from the crawl:

- NEEDED: a request begins to wait, or still waits after a look at the site.
- IDLE: the crawl has had no other work for KOSTER_IDLE_LIMIT_SECS, and the last attempt failed. The
  site can be tried again if the crawl goes on. There is no IDLE before the end of the first
  attempt, because an answer may still come.
- CLOSING: the crawl closes. No new attempt begins.

No request waits for a site that is SETTLED or GIVEN_UP, so ``TABLE`` has no event in these states,
and raises KeyError. docs/architecture.md shows the table, which ``python -m harness.state_table``
prints, with tests/ on the path.
"""

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
from scrapy_koster.protocol.usage_statements import UsageLines
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
    IDLE = "idle"
    CLOSING = "closing"


class Action(Enum):
    """The action of ``Sites`` on an event."""

    NOTHING = "nothing"
    FETCH = "starts an attempt"
    SET_TIMER = "sets the timer of the next attempt"
    GIVE_UP = "requests are given up"
    """Requests in place are refused. Parked requests, too, unless the queue is kept (JOBDIR)."""
    HOLD = "waits in place end"
    """Requests in place are refused. ``DeferringScheduler.close`` keeps or drops the others."""


_S, _E, _A = State, Event, Action
TABLE: dict[tuple[State, Event], Action] = {
    (_S.UNKNOWN, _E.NEEDED): _A.FETCH,
    (_S.UNKNOWN, _E.IDLE): _A.GIVE_UP,
    (_S.UNKNOWN, _E.CLOSING): _A.HOLD,
    (_S.FETCHING, _E.NEEDED): _A.NOTHING,
    (_S.FETCHING, _E.IDLE): _A.GIVE_UP,
    (_S.FETCHING, _E.CLOSING): _A.HOLD,
    (_S.DEFERRED, _E.NEEDED): _A.SET_TIMER,
    (_S.DEFERRED, _E.IDLE): _A.GIVE_UP,
    (_S.DEFERRED, _E.CLOSING): _A.HOLD,
}
"""The action by state and event. A missing row is a defect (KeyError)."""
STATES: dict[type, State] = {
    Ask: _S.UNKNOWN,
    Defer: _S.DEFERRED,
    Obey: _S.SETTLED,
    Pass: _S.SETTLED,
    Refuse: _S.GIVEN_UP,
}
"""The state by the step, if no attempt is under way."""


class Facts(NamedTuple):
    """The facts about a site, which were learnt at the same time."""

    known: Known | None = None
    source: Source = Source.FETCHED
    parser: RobotParser | None = None
    """The parser of the copy, if the copy has rules."""
    watch: Watch | None = None
    """Finds allowed pages that RFC 9309 or a hidden line forbids.

    None if the file cannot have such pages, or if the parser is not a reading by one standard.
    """
    usage: UsageLines | None = None
    """The usage preferences in the file. None without such lines, or if the crawl ignores them."""
    defect: TwistedFailure | None = None
    """The last error of a component. It counts if ``known`` is a Failure with ``is_defect``."""


@dataclass(eq=False, slots=True)
class SiteState:
    """The facts about a site, with the step that follows from the facts.

    ``step`` is valid until ``until_epoch``, in seconds since the epoch. After that time, call
    ``take_step`` for the next step.

    A field is written only by its owner, except that ``learn`` resets ``delays`` and
    ``until_epoch``:

    - ``facts``: ``learn``, which the retriever calls;
    - ``step``, ``until_epoch``: ``take_step``, from the facts, the policy and the time;
    - ``page``, ``waiters``, ``timer``: ``Sites``;
    - ``delays``, ``is_delay_logged``: ``pacing.delays``;
    - ``standing``, ``is_deferred``, ``hazards``: the announcer.
    """

    site: Site
    facts: Facts = field(default_factory=Facts)
    step: Step = field(default_factory=partial(Ask, None))
    until_epoch: float = 0.0
    page: Request | None = None
    """The ``Request`` that began to wait last, or None if no request waits.

    An attempt fetches the robots.txt with the User-Agent and the proxy of this request, and with
    its other meta keys in KOSTER_PAGE_META.
    """
    waiters: dict[Deferred[Step], None] = field(default_factory=dict)
    """A Deferred for each request that waits in place, in order."""
    timer: CallLaterResult | None = None
    """The timer of the next attempt."""
    delays: dict[str, Delay | None] = field(default_factory=dict)
    """The delays in the file, by name of the robot, as far as the file was read for delays."""
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
        self.delays = {}
        self.until_epoch = 0.0

    def take_step(self, *, now: float, policy: Policy) -> Step:
        """Return the step for a request to the site at the time *now*."""
        if now >= self.until_epoch:
            step = self.step = next_step(self.known, now=now, policy=policy)
            self.until_epoch = 0.0 if waits(step) else step.until
        return self.step
