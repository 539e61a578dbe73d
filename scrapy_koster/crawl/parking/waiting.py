"""The requests that wait in the scheduler: for their site to be known, or a turn of its host."""

from __future__ import annotations

from operator import setitem
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy_koster.crawl.states import Fate
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.step import Refuse

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from scrapy import Request

    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.pacing.pacer import NoPacer, Pacer
    from scrapy_koster.crawl.parking.parking import Parking
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.step import Step

    AskFor: TypeAlias = Callable[[SiteState, Request], None]


class Waiting:
    """Puts requests into the parking, and lets them out when what they wait for has come.

    Until a scheduler opens it, in a crawl that has another one, nothing waits here.
    """

    def __init__(
        self, parking: Parking, *, engine: Engine, pacer: Pacer | NoPacer, ask_for: AskFor
    ) -> None:
        """*ask_for* has a site retrieved for which a request begins to wait."""
        self._parking = parking
        self._engine = engine
        self._pacer = pacer
        self._ask_for = ask_for
        self.is_open = False
        self.is_kept = False
        self.is_paced = pacer.is_on
        """Whether requests may wait for a turn of their host."""
        self.given_up: WeakKeyDictionary[Request, Failure] = WeakKeyDictionary()
        """Requests that waited in vain: refused when they come out, though the site may be due."""
        self.has_given_up = False
        """Whether there was any such request so far."""

    def open(self, *, is_kept: bool) -> None:
        """Begin; *is_kept*: what is parked when the crawl ends is there for the next run."""
        self.is_open, self.is_kept = True, is_kept

    def count(self, state: SiteState) -> int:
        """Return how many requests wait for the site."""
        return self._parking.waiting_for(str(state.site))

    def park(self, state: SiteState, request: Request) -> None:
        """Have *request* wait until its site is known."""
        has_failed = isinstance(state.known, Failure)
        self._parking.push(str(state.site), request, for_long=has_failed)
        self._ask_for(state, request)

    def holds(self, request: Request) -> bool:
        """Have *request* wait for a turn of its host, if it needs one and there is none now."""
        if (held := self._pacer.holds(request)) is None:
            return False
        state, host = held
        self._parking.push(str(state.site), request, for_turn=True)
        self._ask_for(state, request)  # when its copy is not fresh any more
        self._pacer.want(host)
        return True

    @property
    def has_turn(self) -> bool:
        """Whether one that waits for a turn may come out."""
        if not self.is_open or self._parking.is_held:
            return False
        return self._pacer.open_site() is not None

    def next_for_turn(self) -> Request | None:
        """Return one whose host has a turn for it, None if there is none."""
        while self.is_open and (state := self._pacer.open_site()) is not None:
            if self._parking.is_held:
                break
            if (request := self._parking.take(str(state.site))) is not None:
                return request
        return None

    def settled(self, state: SiteState, fate: Fate, step: Step) -> None:
        """Let those of a site go on, be refused or stay; *step* is what they are decided by."""
        if self.count(state):
            match fate, step:
                case Fate.GO, _:
                    self._let_out(state)
                case Fate.GIVE_UP, Refuse(failure):
                    self._parking.give_up(str(state.site), self._marker(failure))
                case Fate.KEEP, Refuse(failure):
                    self._parking.give_up_unwritten(str(state.site), self._marker(failure))
                case _:
                    pass
        if self.is_open:
            self._engine.wake()

    def _marker(self, failure: Failure) -> Callable[[Request], None]:
        self.has_given_up = True
        return lambda request: setitem(self.given_up, request, failure)

    def _let_out(self, state: SiteState) -> None:
        """If a site asks for no delay any more, those who wait for a turn come out at once."""
        site = str(state.site)
        host = self._pacer.paces(state) if self._parking.waiting_for_turn(site) else None
        self._parking.open(site, turns=host is None)
        if host is not None:
            self._pacer.want(host)
