"""What a crawl knows of a site (``SiteState``), and who waits for the site (``Waiting``).

The known facts (``facts``) come from the storage or from the site. The step (``protocol.step``)
follows from the facts, so that it cannot contradict the facts:

    Ask, Defer:   requests wait, and a task of ``Sites`` serves them
    Obey, Pass:   requests go on
    Refuse:       requests are refused

Time changes a step without an event: a copy expires, an attempt becomes due, the clock is set back.
So take the step anew whenever you look at a site (``take_step``).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from scrapy import Request
from scrapy.robotstxt import RobotParser
from scrapy.utils.asyncio import CallLaterResult
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_koster.protocol.access import CacheEntry, last_copy
from scrapy_koster.protocol.delay import Delay
from scrapy_koster.protocol.hazard import Cause, Watch
from scrapy_koster.protocol.policy import Policy
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.site_status import SiteStatus
from scrapy_koster.protocol.step import Ask, Settled, Step, next_step, waits
from scrapy_koster.protocol.usage_statements import UsageLines
from scrapy_koster.protocol.verdict import Source

_TEMPLATES = 8


class Facts(NamedTuple):
    """The facts about a site, which were learnt at the same time."""

    known: CacheEntry | None = None
    source: Source = Source.FETCHED
    parser: RobotParser | None = None
    """The parser of the copy, if the copy has rules."""
    watch: Watch | None = None
    """Finds allowed pages that RFC 9309 or a hidden line forbids.

    None if the file cannot have such pages, or if the parser is not a reading by one standard.
    """
    usage: UsageLines | None = None
    """The usage preferences in the file. None without such lines, or if the crawl ignores them."""
    defect: Failure | None = None
    """The last error of a component. It counts if ``known`` is a failure with ``is_defect``."""


@dataclass(eq=False, slots=True)
class SiteState:
    """The facts about a site, with the step that follows from the facts.

    ``step`` is valid until ``until_epoch``, in seconds since the epoch. After that time, call
    ``take_step`` for the next step.

    A field is written only by its owner, except that ``learn`` resets ``delays`` and
    ``until_epoch``:

    - ``facts``, ``digest``: ``learn``, which ``SiteRecords`` and ``Sites`` call;
    - ``step``, ``until_epoch``: ``take_step``, from the facts, the policy and the time;
    - ``in_place``: ``Sites.wait``;
    - ``delays``, ``is_delay_logged``: ``pacing.delays``;
    - ``status``, ``is_deferred``, ``hazards``: the announcer.
    """

    site: Site
    facts: Facts = field(default_factory=Facts)
    step: Step = field(default_factory=partial(Ask, None))
    until_epoch: float = 0.0
    digest: str = ""
    """The digest of the last copy, also of one that is no longer in memory."""
    in_place: int = 0
    """The number of requests in place that wait for the site, or have not gone on yet."""
    delays: dict[str, Delay | None] = field(default_factory=dict)
    """The delays in the file, by name of the robot, as far as the file was read for delays."""
    is_delay_logged: bool = False
    status: SiteStatus | None = None
    """The last announced status of the site."""
    is_deferred: bool = False
    """Whether the last announcement was that visits are deferred."""
    hazards: frozenset[Cause] = frozenset()
    """The causes of hazards that are counted for the site already."""

    @property
    def known(self) -> CacheEntry | None:
        """The copy of the robots.txt, a failure, or None before the first result."""
        return self.facts.known

    def learn(self, facts: Facts) -> None:
        """Replace the facts. The step and the delays will be taken from the new facts."""
        self.facts = facts
        if copy := last_copy(facts.known):
            self.digest = copy.digest
        self.delays = {}
        self.step = Ask(None)  # until the next step is taken
        self.until_epoch = 0.0

    def take_step(self, *, now: float, policy: Policy) -> Step:
        """Return the step for a request to the site at the time *now*."""
        if now >= self.until_epoch:
            step = self.step = next_step(self.known, now=now, policy=policy.at(self.site, now))
            self.until_epoch = 0.0 if waits(step) else step.until
        return self.step


@dataclass(eq=False, slots=True)
class Waiting:
    """The requests that wait for a site. ``Sites`` has one for each site that it serves.

    Parked requests are in the queue of the site (``ParkedRequests``).
    """

    templates: deque[Request] = field(default_factory=partial(deque, maxlen=_TEMPLATES))
    """Waiting requests with different proxies, or other meta in KOSTER_PAGE_META.

    An attempt fetches the robots.txt with the User-Agent and this meta of the last request. The
    next attempt uses another one, because a proxy may be dead.
    """
    in_place: dict[Deferred[Settled], None] = field(default_factory=dict)
    """A Deferred for each request that waits in place, in order."""
    is_fetching: bool = False
    """Whether the robots.txt is being fetched by any process, or parsed. Set by the retriever."""
    is_due: bool = False
    """Whether a request that did not wait has found the next attempt due."""
    timer: CallLaterResult | None = None
    """The timer of the next attempt. None while a task serves the site."""

    def add_template(self, request: Request, page_meta: Sequence[str]) -> None:
        """Add *request* as the last template, or replace the one with the same *page_meta*."""
        meta = [request.meta.get(key) for key in page_meta]
        for n, template in enumerate(self.templates):
            if meta == [template.meta.get(key) for key in page_meta]:
                self.templates[n] = request
                return
        self.templates.append(request)

    def next_template(self) -> Request:
        """Return the request for the next attempt. The attempt after that uses another one."""
        self.templates.rotate()
        return self.templates[0]

    def tell(self, step: Settled) -> None:
        """End the waits in place by *step*."""
        in_place, self.in_place = self.in_place, {}
        for each in in_place:
            if not each.called:  # the callback of another one may cancel it
                each.callback(step)
