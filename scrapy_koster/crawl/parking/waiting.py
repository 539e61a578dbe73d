"""The requests that wait in the scheduler: for their site to be known, or a turn of its host."""

from __future__ import annotations

from operator import setitem
from typing import TYPE_CHECKING

from scrapy_koster.crawl.engine.private import wake
from scrapy_koster.protocol.step import Refuse, waits

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.keeping.keeper import Keeper
    from scrapy_koster.crawl.pacing.pacer import Pacer
    from scrapy_koster.crawl.parking.memory import Parking
    from scrapy_koster.crawl.sites import SiteState
    from scrapy_koster.protocol.access import Failure
    from scrapy_koster.protocol.step import Step


class Waiting:
    """Puts requests into the parking, and lets them out when what they wait for has come."""

    def __init__(self, crawler: Crawler, parking: Parking) -> None:
        self._crawler = crawler
        self._parking = parking
        self.keeper: Keeper | None = None
        """None where nothing is asked, and so nothing waits."""

    @property
    def _pacer(self) -> Pacer | None:
        return None if self.keeper is None else self.keeper.pacer

    def park(self, state: SiteState, request: Request) -> None:
        """Have *request* wait until its site is known."""
        assert self.keeper is not None  # it held the request back
        state.parked = self._parking.push(str(state.site), request)
        self.keeper.ask_for(state, request)

    def holds(self, request: Request) -> bool:
        """Have *request* wait for a turn of its host, if it needs one and there is none now."""
        pacer = self._pacer
        if pacer is None or (held := pacer.holds(request)) is None:
            return False
        state, host = held
        self._parking.push(str(state.site), request, for_turn=True)
        self._count(state)
        assert self.keeper is not None  # the pacer is its own
        self.keeper.ask_for(state, request)  # when its copy is not fresh any more
        pacer.want(host)
        return True

    @property
    def has_turn(self) -> bool:
        """Whether one that waits for a turn may come out."""
        return self._pacer is not None and self._pacer.free_site() is not None

    def next_for_turn(self) -> Request | None:
        """Return one whose host has a turn for it, None if there is none."""
        pacer = self._pacer
        while pacer is not None and (state := pacer.free_site()) is not None:
            request = self._parking.take(str(state.site))
            self._count(state)
            if request is not None:
                return request
        return None

    def on_change(self, state: SiteState, step: Step) -> None:
        """Let those of a site go on, whose step may have become another."""
        if state.parked and not waits(step):
            match step:
                case Refuse(failure):
                    self._give_up(state, failure)
                case _:
                    self._open(state)
        wake(self._crawler)

    def _give_up(self, state: SiteState, failure: Failure) -> None:
        assert self.keeper is not None  # it told
        given_up, kept = self.keeper.given_up, waits(state.step) and self.keeper.keeps_parked
        give_up = self._parking.give_up_unwritten if kept else self._parking.give_up
        give_up(str(state.site), lambda request: setitem(given_up, request, failure))
        self._count(state)

    def _open(self, state: SiteState) -> None:
        """Where a site asks for no delay any more, who waits for a turn comes out at once."""
        pacer = self._pacer
        host = pacer.paces(state) if pacer is not None and state.turns else None
        self._parking.open(str(state.site), turns=host is None)
        self._count(state)
        if pacer is not None and host is not None:
            pacer.want(host)

    def _count(self, state: SiteState) -> None:
        state.turns = self._parking.waiting_for_turn(str(state.site))
        state.parked = self._parking.waiting_for(str(state.site))
