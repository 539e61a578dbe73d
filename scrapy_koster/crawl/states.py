"""The life of a site in a crawl: states, events, and one table of what leads from one to another.

A site is known to a crawl by a ``SiteState``. It holds what was learnt (``facts``), the step that
follows from it (``protocol.step``: Obey, Pass, Ask, Defer or Refuse), and the state in which the
requests to it are:

    UNKNOWN --- a request needs it ---> FETCHING --- the attempt ends ---> SETTLED   Obey, Pass
       ^                                   ^                               GIVEN_UP  Refuse
       |                                   '-- the time has come -- DEFERRED         Defer
       '------------ what is known is not valid any more ----------'

Requests wait while it is UNKNOWN, FETCHING or DEFERRED. Only ``Sites`` moves a site, by
``Sites.happens``. A move that is not in ``TABLE`` raises.

Four events follow from the step, so that the state cannot contradict what is known: ANSWERED,
FAILED, LIMIT, DUE (``event_of``). Time alone changes a step, without any event: a copy expires, the
time of an attempt comes. Whoever looks at the site next finds out. That is why all four may come in
each state, also after somebody has put a clock back. While an attempt is under way only its end
moves the site.

Three events come from the crawl:

- NEEDED: a request begins to wait, or still waits after the site was looked at. It starts an
  attempt, or the timer of the next one. No request needs a site that is settled or given up: the
  request is decided at once.
- IDLE: the crawl has had nothing else to do for KOSTER_IDLE_LIMIT_SECS, and the last attempt
  failed. It does not move the site, which may be tried again if the crawl goes on. A site that was
  never asked does not become idle: its answer is still expected.
- CLOSING: the crawl closes. Nothing begins any more.

An action says what becomes of the requests that wait, by the place where they wait (``Fates``). A
request that waits in place, inside the downloader, has to end before the crawl can. A request that
is parked in the scheduler is handed back to the queue when the crawl closes, and if that queue is
kept for the next run (JOBDIR, scrapy-redis) it need not be refused either.

docs/architecture.md shows both tables. ``python -m harness.state_tables`` writes them from here.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from scrapy_koster.crawl.decision import rules_of
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, next_step, waits
from scrapy_koster.protocol.verdict import Source

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.robotstxt import RobotParser
    from scrapy.utils.asyncio import CallLaterResult
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure as TwistedFailure

    from scrapy_koster.protocol.access import Known
    from scrapy_koster.protocol.defect import Permission
    from scrapy_koster.protocol.delay import Delay
    from scrapy_koster.protocol.hazard import Cause, Watch
    from scrapy_koster.protocol.policy import Policy
    from scrapy_koster.protocol.site import Site
    from scrapy_koster.protocol.standing import Standing
    from scrapy_koster.protocol.step import Step
    from scrapy_koster.protocol.usage_lines import UsageLines


class State(Enum):
    """What the requests to a site wait for."""

    UNKNOWN = "unknown"
    """Nothing valid is known, and no attempt is under way."""
    FETCHING = "fetching"
    """An attempt is under way: the storage or the site is asked."""
    DEFERRED = "deferred"
    """The last attempt failed. The site is asked again later."""
    SETTLED = "settled"
    """Requests do not wait: the copy decides, or they pass (KOSTER_UNAVAILABLE)."""
    GIVEN_UP = "given up"
    """Requests do not wait: they are refused."""


class Event(Enum):
    """What happens to a site."""

    NEEDED = "needed"
    """A request waits for it."""
    ANSWERED = "answered"
    """Its requests can be decided: step Obey or Pass."""
    FAILED = "failed"
    """It failed, and is asked again later: step Defer."""
    LIMIT = "limit"
    """It failed for KOSTER_DEFER_LIMIT_SECS or for good: step Refuse."""
    DUE = "due"
    """Nothing is known, what is known is not valid any more, or the time of the next attempt has
    come: step Ask.
    """
    IDLE = "idle"
    """The crawl has had nothing else to do for KOSTER_IDLE_LIMIT_SECS, and the site has failed."""
    CLOSING = "closing"
    """The crawl closes."""


class Action(Enum):
    """What is done when a site moves."""

    NOTHING = "nothing"
    FETCH = "starts an attempt"
    SET_TIMER = "sets the timer of the next attempt"
    LET_GO = "requests go on"
    REFUSE = "requests are refused"
    GIVE_UP = "requests are given up"
    HOLD = "requests are handed back"


class Fate(Enum):
    """What becomes of a request that waits."""

    WAIT = "waits"
    GO = "goes on"
    """It is decided by the copy, or passes (KOSTER_UNAVAILABLE = "allow")."""
    GIVE_UP = "is refused"
    """It ends with RobotsUnavailable."""
    KEEP = "stays parked"
    """It is there for the next run, or until the scheduler hands it back."""


class Fates(NamedTuple):
    """What becomes of the requests that wait, by the place where they do."""

    in_place: Fate
    """Inside the downloader: they never passed a scheduler that holds requests back."""
    parked: Fate
    """In the scheduler, in a crawl whose requests end with it."""
    kept: Fate
    """In the scheduler, in a crawl whose queue is kept for the next run."""


_S, _E, _A = State, Event, Action
_FROM_STEPS = {
    _E.ANSWERED: (_S.SETTLED, _A.LET_GO),
    _E.FAILED: (_S.DEFERRED, _A.NOTHING),
    _E.LIMIT: (_S.GIVEN_UP, _A.REFUSE),
    _E.DUE: (_S.UNKNOWN, _A.NOTHING),
}
"""The same from each state: the step decides, whatever the state was."""

TABLE: dict[tuple[State, Event], tuple[State, Action]] = {
    **{(state, event): then for state in State for event, then in _FROM_STEPS.items()},
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
"""The next state, and what is done. Whatever is not in it cannot happen: a KeyError is a defect."""

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


def event_of(step: Step) -> Event:
    """Return the event that follows from a step of the protocol."""
    match step:
        case Obey() | Pass():
            return Event.ANSWERED
        case Defer():
            return Event.FAILED
        case Refuse():
            return Event.LIMIT
        case Ask():  # pragma: no branch
            return Event.DUE


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
    defect: TwistedFailure | None = None
    """The error of a component of the crawl, if that made the last attempt fail."""


class SiteState:
    """What is known of one site, and what follows from it.

    ``allows(url, robot)`` answers for the site until ``until_epoch``, in seconds since the
    epoch; from then on ``take_step`` has to be called first.

    Each field has one writer:

    - ``facts``: ``learn``, which the retriever calls;
    - ``step``, ``allows``, ``until_epoch``: ``take_step``, from the facts, the policy and the time;
    - ``state``, ``page``, ``waiters``, ``timer``: ``Sites``;
    - ``delays``: ``pacing.delays``;
    - ``standing``, ``is_deferred``, ``hazards``: the announcer.
    """

    __slots__ = (
        "allows", "delays", "facts", "hazards", "is_deferred", "origin", "page", "site", "standing",
        "state", "step", "timer", "until_epoch", "waiters",
    )  # fmt: skip

    def __init__(self, site: Site) -> None:
        self.site = site
        self.origin = f"{site}/"
        self.facts = Facts()
        self.step: Step = Ask(None)
        self.allows: Permission = _nothing
        self.until_epoch = 0.0
        self.state = State.UNKNOWN
        self.page: Request | None = None
        """The request on whose behalf the site is asked; None if no request waits for it."""
        self.waiters: tuple[Deferred[Step], ...] = ()
        """Of the requests that wait in place."""
        self.timer: CallLaterResult | None = None
        """Of the next attempt."""
        self.delays: dict[str, Delay | None] | None = None
        """The delay that the file requests for each name; None if it has not been read for it."""
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
        self.delays = None
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
