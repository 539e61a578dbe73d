"""For how long a storage that has failed is let alone."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from threading import Event
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from harness.clocks import StillClock
from harness.virtual import TestClock
from scrapy import Spider
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.test import get_crawler

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.fetching.storage_breaker import StorageBreaker
from scrapy_koster.protocol.access import Copy, Known
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.port import GRANTED, Claimed, Settings

SITE = Site("http", "a.example", 80)
STEP_SECS = 0.25


class Failing(MemoryStorage):
    """Notes when it is called, and fails for as long as it is told to."""

    clock: ClassVar[StillClock]
    called: ClassVar[list[float]]
    fails: ClassVar[bool]

    def get(self, site: Site) -> Any:
        self.called.append(self.clock.secs)
        if self.fails:
            raise OSError("it is away")
        return super().get(site)


@pytest.fixture
def storage() -> type[Failing]:
    members = {"clock": StillClock(0.0), "called": [], "fails": True}
    return type("Storage", (Failing,), members)


@pytest.fixture
def breaker(storage: type[Failing]) -> Iterator[StorageBreaker]:
    with breaker_of(storage) as breaker:
        yield breaker


@contextmanager
def breaker_of(storage: type[Failing], **settings: Any) -> Iterator[StorageBreaker]:
    crawler = get_crawler(Spider, {"KOSTER_STORAGE": storage, **settings})
    crawler.spider = Spider("x")
    silent: Any = SimpleNamespace(warning=lambda *_, **__: None, info=lambda *_, **__: None)
    counts: Any = SimpleNamespace(
        storage_error=lambda: None, storage_hit=lambda: None, storage_miss=lambda: None
    )
    breaker = StorageBreaker(Config.from_crawler(crawler), counts, silent, storage.clock)
    with closing(breaker._thread):
        yield breaker


async def asked_for(secs: float, breaker: StorageBreaker, storage: type[Failing]) -> list[float]:
    """Ask it again and again for so long; return when it was called, from the beginning of that."""
    storage.called.clear()
    began = storage.clock.secs
    while storage.clock.secs < began + secs:
        await breaker.get(SITE)
        storage.clock.secs += STEP_SECS
    return [at - began for at in storage.called]


async def test_the_first_rest_is_short_and_each_is_longer_up_to_30_seconds(
    breaker: StorageBreaker, storage: type[Failing]
) -> None:
    assert await asked_for(100, breaker, storage) == [0, 1, 3, 7, 15, 31, 61, 91]


async def test_one_that_is_back_is_called_at_once(
    breaker: StorageBreaker, storage: type[Failing]
) -> None:
    """A failover of less than a second."""
    await breaker.get(SITE)
    storage.fails = False
    [first, *others] = await asked_for(10, breaker, storage)
    assert first == 1
    assert len(others) == (10 - 1) / STEP_SECS - 1


async def test_one_that_fails_again_soon_rests_for_longer_and_later_as_at_first(
    breaker: StorageBreaker, storage: type[Failing]
) -> None:
    await asked_for(20, breaker, storage)  # it rests until 31
    storage.fails = False
    await asked_for(20, breaker, storage)
    storage.fails = True
    assert await asked_for(40, breaker, storage) == [0, 30]
    storage.fails = False
    await asked_for(65, breaker, storage)
    storage.fails = True
    assert await asked_for(5, breaker, storage) == [0, 1, 3]


class Counted(Failing):
    """Notes when it is opened."""

    opened: ClassVar[list[float]]

    @classmethod
    def from_settings(cls, settings: Settings) -> MemoryStorage:
        cls.opened.append(cls.clock.secs)
        return super().from_settings(settings)


@pytest.mark.parametrize("blocking", [False, True])
async def test_it_can_be_opened_before_it_is_needed(blocking: bool) -> None:
    members = {"clock": StillClock(0.0), "called": [], "opened": [], "fails": False}
    storage: type[Counted] = type("Storage", (Counted,), members | {"blocking": blocking})
    with breaker_of(storage) as breaker:
        await breaker.open()
        assert (storage.opened, storage.called) == ([0], [])
        storage.clock.secs = 5.0
        await breaker.get(SITE)
        assert (storage.opened, storage.called) == ([0], [5])


class Hanging(Failing):
    """Hangs in each call until it is let go, and notes when it is called."""

    blocking = True
    let_go: ClassVar[Event]

    def get(self, site: Site) -> Any:
        self.called.append(self.clock.secs)
        self.let_go.wait(30)


@pytest.mark.real_time  # a thread that hangs holds time still
async def test_one_that_hangs_is_called_again_once_it_has_come_back() -> None:
    """As a Redis that stalls now and then during a crawl of days."""
    let_go = Event()
    members = {"clock": StillClock(0.0), "called": [], "let_go": let_go}
    storage: type[Hanging] = type("Storage", (Hanging,), members)
    with breaker_of(storage, KOSTER_TIMEOUT_SECS=0.05) as breaker:
        try:
            assert await asked_for(200, breaker, storage) == [0, 30]
        finally:
            let_go.set()
        storage.called.clear()
        for _ in range(1000):
            await breaker.get(SITE)
            if storage.called:
                break
            await TestClock().sleep(0.01)
        assert storage.called == [200]


GAP_SECS = 10.0


async def visited_for(secs: float, breaker: StorageBreaker, storage: type[Failing]) -> list[float]:
    """Want to visit a host for so long; return when that was let begin, from the beginning."""
    began, visits = storage.clock.secs, []
    while (at := storage.clock.secs - began) < secs:
        left = await breaker.visit("a.example", GAP_SECS)
        assert 0 <= left <= GAP_SECS
        if not left:
            visits.append(at)
        storage.clock.secs += left or GAP_SECS
    return visits


class Away(Failing):
    """Others share it, and may visit the host while it is away from here."""

    def claim(self, site: Site, owner: str, **how: Any) -> Claimed:
        if self.fails:
            raise OSError("it is away")
        return GRANTED

    def release(self, site: Site, owner: str) -> None:
        pass

    def visit(self, host: str, **how: Any) -> float:
        if self.fails:
            raise OSError("it is away")
        return super().visit(host, **how)


@pytest.fixture
def shared() -> type[Away]:
    return type("Storage", (Away,), {"clock": StillClock(0.0), "called": [], "fails": False})


async def test_no_visit_begins_while_the_storage_that_keeps_them_is_away(
    shared: type[Away],
) -> None:
    with breaker_of(shared) as breaker:
        assert await visited_for(20, breaker, shared) == [0, 10]
        shared.fails = True
        assert await visited_for(100, breaker, shared) == []
        shared.fails = False
        [first, *_] = await visited_for(100, breaker, shared)
        assert first <= 30  # its rest is over by then


async def test_visits_are_held_for_the_limit_and_no_longer(shared: type[Away]) -> None:
    with breaker_of(shared, KOSTER_DEFER_LIMIT_SECS=60) as breaker:
        await visited_for(10, breaker, shared)
        shared.fails = True
        assert await visited_for(100, breaker, shared) == [60, 70, 80, 90]


async def test_nobody_waits_for_a_storage_that_never_kept_a_visit(shared: type[Away]) -> None:
    with breaker_of(shared) as breaker:
        await breaker.open()
        shared.fails = True
        assert await visited_for(30, breaker, shared) == [0, 10, 20]


class PassingClock(StillClock):
    """Whoever sleeps has slept at once."""

    async def sleep(self, secs: float) -> None:
        self.secs += secs


@pytest.mark.parametrize(
    ("settings", "is_known", "secs"),
    [
        ({"KOSTER_CRAWL_DELAY": "obey"}, False, 1 + 2 + 4 + 8 + 16),
        ({"KOSTER_CRAWL_DELAY": "obey"}, True, 0),  # whether it asks for a delay
        ({"KOSTER_CRAWL_DELAY": "ignore"}, False, 0),
    ],
)
async def test_a_new_site_may_ask_for_a_delay_and_waits_for_a_storage_that_just_failed(
    shared: type[Away], settings: dict[str, Any], *, is_known: bool, secs: float
) -> None:
    shared.clock = PassingClock(0.0)
    with breaker_of(shared, **settings) as breaker:
        await breaker.claim(SITE, secs=60, unless_known=True)
        shared.fails = True
        began = shared.clock.secs
        claimed = await breaker.claim(SITE, secs=60, unless_known=not is_known)
        assert (claimed, shared.clock.secs - began) == (GRANTED, secs)


async def test_once_it_has_failed_for_long_no_new_site_waits_for_it(shared: type[Away]) -> None:
    shared.clock = PassingClock(0.0)
    with breaker_of(shared, KOSTER_CRAWL_DELAY="obey") as breaker:
        for shared.fails in (False, True):
            await breaker.claim(SITE, secs=60, unless_known=True)
        began = shared.clock.secs
        await breaker.claim(Site("http", "b.example", 80), secs=60, unless_known=True)
        assert shared.clock.secs == began


async def test_no_new_site_waits_for_a_storage_that_never_answered(shared: type[Away]) -> None:
    shared.clock = PassingClock(0.0)
    shared.fails = True
    with breaker_of(shared, KOSTER_CRAWL_DELAY="obey") as breaker:
        assert await breaker.claim(SITE, secs=60, unless_known=True) == GRANTED
        assert shared.clock.secs == 0


class Pipelined(Away):
    """Logs what is called of it. It has what is in *known*, and raises what is in *wrong*."""

    blocking = True
    let_go: ClassVar[Event]
    log: ClassVar[list[str]]
    known: ClassVar[Known | None]
    wrong: ClassVar[dict[str, Exception]]

    @contextmanager
    def pipeline(self) -> Iterator[Any]:
        self.let_go.wait(30)
        self._called("pipeline")

        def method(name: str) -> Any:
            def call(*args: Any, **how: Any) -> Any:
                self.log.append(name)
                return SimpleNamespace(result=partial(result, name, *args, **how))

            return call

        def result(name: str, *args: Any, **how: Any) -> Any:
            self._called(f"result of {name}")
            return getattr(self, name)(*args, **how)

        yield SimpleNamespace(**{name: method(name) for name in NAMES})

    def _called(self, name: str) -> None:
        self.log.append(name)
        if name in self.wrong:
            raise self.wrong[name]

    def get(self, site: Site) -> Known | None:
        return self.known

    def claim(self, site: Site, owner: str, **how: Any) -> Claimed:
        return Claimed(self.known, 0.0)

    def put(self, site: Site, copy: Known, owner: str = "") -> None:
        pass

    def release(self, site: Site, owner: str) -> None:
        self.log.append(f"{site} is released")

    def close(self) -> None:
        self._called("close")


FIRST = ["pipeline", "get", "result of get"]
"""What the call logs that the calls of a batch wait for."""
NAMES = ("get", "claim", "visit", "put", "release")
OTHER = Site("http", "b.example", 80)
COPY = Copy("http://a.example/robots.txt", 200, b"", None, None, 0.0, 10.0, life_stated=True)


@pytest.fixture
def piped() -> type[Pipelined]:
    members = {
        "clock": StillClock(0.0),
        "called": [],
        "fails": False,
        "let_go": Event(),
        "log": [],
        "known": None,
        "wrong": {},
    }
    return type("Storage", (Pipelined,), members)


async def batch(
    breaker: StorageBreaker, storage: type[Pipelined], *calls: Coroutine[Any, Any, Any]
) -> list[Any]:
    """Have these calls wait for another, so that they are one batch. Return their results."""
    storage.let_go.clear()
    first = deferred_from_coro(breaker.get(SITE))
    waiting = [deferred_from_coro(call) for call in calls]
    for _ in range(3):
        await TestClock().sleep(0.0)
    storage.let_go.set()
    await maybe_deferred_to_future(first)
    return [await maybe_deferred_to_future(each) for each in waiting]


pipelines = pytest.mark.real_time  # a thread holds time still


@pipelines
async def test_all_calls_of_a_batch_are_made_before_the_first_result(
    piped: type[Pipelined],
) -> None:
    with breaker_of(piped) as breaker:
        results = await batch(
            breaker,
            piped,
            breaker.claim(SITE, secs=60, unless_known=True),
            breaker.visit("a.example", 10.0),
            breaker.put(OTHER, COPY),
            breaker.get(OTHER),
        )
    assert results == [GRANTED, 0.0, None, None]
    made = ["claim", "visit", "put", "get"]
    assert piped.log == [*FIRST, "pipeline", *made, *(f"result of {name}" for name in made)]


@pipelines
async def test_a_call_of_a_batch_that_fails_fails_alone(piped: type[Pipelined]) -> None:
    piped.known = COPY
    piped.wrong = {"result of visit": OSError("it is away")}
    with breaker_of(piped) as breaker:
        results = await batch(
            breaker,
            piped,
            breaker.claim(SITE, secs=60, unless_known=True),
            breaker.visit("a.example", 10.0),
            breaker.get(OTHER),
        )
        assert results == [Claimed(COPY, 0.0), 10.0, COPY]
        piped.log.clear()
        assert await breaker.get(SITE) is None  # it has its rest
        assert piped.log == []


@pipelines
async def test_a_pipeline_that_fails_fails_for_all_calls(piped: type[Pipelined]) -> None:
    piped.let_go.set()
    with breaker_of(piped) as breaker:
        await breaker.get(SITE)
        piped.known = COPY
        piped.wrong = {"pipeline": OSError("it is away")}
        results = await batch(
            breaker,
            piped,
            breaker.claim(SITE, secs=60, unless_known=True),
            breaker.visit("a.example", 10.0),
        )
    assert results == [GRANTED, 10.0]


@pipelines
async def test_copies_that_are_of_no_use_are_claimed_together(piped: type[Pipelined]) -> None:
    piped.known = replace(COPY, cut_bytes=100)  # by a crawl that kept less
    with breaker_of(piped) as breaker:
        claims = [breaker.claim(site, secs=60, unless_known=True) for site in (SITE, OTHER)]
        assert await batch(breaker, piped, *claims) == [GRANTED] * 2
    again = ["result of claim", "claim"] * 2
    assert piped.log == [*FIRST, "pipeline", "claim", "claim", *again, *["result of claim"] * 2]


@pipelines
async def test_the_last_call_is_not_piped(piped: type[Pipelined]) -> None:
    piped.let_go.set()
    with breaker_of(piped) as breaker:
        await breaker.claim(SITE, secs=60, unless_known=True)
        piped.log.clear()
        await breaker.close()
    assert piped.log == [f"{SITE} is released", "close"]
