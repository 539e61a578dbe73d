"""The thread of the storage: calls gather, and are made a batch at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from threading import Event, current_thread
from typing import Any
from unittest.mock import Mock

import pytest
from harness.clocks import StillClock
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import Clock, LateError
from scrapy_koster.crawl.fetching import storage_thread
from scrapy_koster.crawl.fetching.gathering import EAGER
from scrapy_koster.crawl.fetching.storage_thread import AT_ONCE, StorageThread, all_made
from scrapy_koster.crawl.fetching.threads import Threads

pytestmark = pytest.mark.real_time  # a thread that hangs holds time still

SOON_SECS = 0.05
BOUND_SECS = 10.0


class Calls:
    """A thread, and what it has done."""

    def __init__(
        self, *, most: int = 1, secs: float = BOUND_SECS, clock: Clock | None = None
    ) -> None:
        self.batches: list[list[object]] = []
        self.made: list[object] = []
        self.hangs = 0
        self.fails: Exception | None = None
        self.given = object()
        self.thread = StorageThread(
            clock or Clock(),
            most=lambda: most,
            secs=secs,
            together=self._together,
            hung=self._hung,
        )

    @contextmanager
    def _together(self) -> Iterator[object]:
        before = len(self.made)
        yield self.given
        self.batches.append(self.made[before:])
        if self.fails is not None:
            raise self.fails

    def _hung(self) -> None:
        self.hangs += 1

    def begin(
        self,
        name: object,
        does: Callable[[], Any] = lambda: None,
        *,
        later: Sequence[Callable[[], Any]] = (),
    ) -> Deferred[Any]:
        """Have it called, and return what is to come. Each of *later* is done after the others."""

        async def call(given: object) -> object:
            assert given is self.given
            self.made.append(name)
            does()
            for rest in later:
                await all_made()
                rest()
            return name

        return deferred_from_coro(self.thread.run(call))


def outcome(of: Deferred[Any]) -> Awaitable[Any]:
    return maybe_deferred_to_future(of)


async def asked() -> None:
    """Let the calls that were begun reach the thread: each is a task of its own."""
    for _ in range(3):
        await Clock().sleep(0.0)


async def until(event: Event) -> None:
    await until_true(event.is_set)


async def until_true(condition: Callable[[], bool]) -> None:
    end = Clock().now() + BOUND_SECS
    while not condition():
        assert Clock().now() < end
        await Clock().sleep(0.001)


async def test_calls_gather_while_a_batch_is_under_way() -> None:
    calls, opened = Calls(clock=StillClock()), Event()
    first = calls.begin("first", lambda: opened.wait(BOUND_SECS))
    await asked()
    rest = [calls.begin(n) for n in range(AT_ONCE + 3)]
    await asked()
    opened.set()
    assert await outcome(first) == "first"
    assert [await outcome(each) for each in rest] == list(range(AT_ONCE + 3))
    assert [len(batch) for batch in calls.batches] == [1, AT_ONCE, 3]
    assert calls.made == ["first", *range(AT_ONCE + 3)]
    calls.thread.close()


class HandClock(StillClock):
    """Its timers are called by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: dict[Any, Callable[[], object]] = {}

    def call_later(self, secs: float, function: Callable[..., object], *args: Any) -> Any:
        if not secs:  # no time has to pass
            return super().call_later(0, function, *args)
        timer = Mock()
        timer.cancel = lambda: self.timers.pop(timer, None)
        self.timers[timer] = partial(function, *args)
        return timer

    def pass_by(self, secs: float) -> None:
        """Let so much time pass, and call what is set now."""
        self.secs += secs
        timers, self.timers = self.timers, {}
        for function in timers.values():
            function()


class Holds:
    """How often a loop was held, and whether the batch had not ended then."""

    count = 0
    in_vain = False


@pytest.fixture
def holds(monkeypatch: pytest.MonkeyPatch) -> Holds:
    told = Holds()

    class Holding(Threads):
        def wait(self, future: Future[Any], _secs: float) -> bool:
            told.count += 1
            # A busy machine may take longer.
            return not told.in_vain and super().wait(future, BOUND_SECS)

    monkeypatch.setattr(storage_thread, "Threads", Holding)
    return told


async def test_calls_run_beside_a_batch_that_waits_for_a_network(holds: Holds) -> None:
    holds.in_vain = True
    clock = HandClock()
    calls, opened, threads = Calls(most=3, clock=clock), Event(), []

    def waits() -> None:
        threads.append(current_thread())
        opened.wait(BOUND_SECS)

    begun = [calls.begin("first", waits)]
    await asked()
    begun += [calls.begin(n, waits) for n in range(5)]
    await asked()
    assert len(calls.thread._running) == 1  # a thread may begin late
    clock.pass_by(SOON_SECS)
    await until_true(lambda: len(threads) == 3)
    opened.set()
    assert [await outcome(each) for each in begun] == ["first", *range(5)]
    # The two that could begin have shared what waited.
    assert sorted(Counter(threads).values()) == [1, 2, 3]
    calls.thread.close()


async def test_one_thread_is_enough_for_a_storage_that_answers_quickly() -> None:
    calls, names = Calls(most=8, clock=StillClock()), []
    begun = [calls.begin(n, lambda: names.append(current_thread())) for n in range(200)]
    assert [await outcome(each) for each in begun] == list(range(200))
    assert len(set(names)) == 1
    calls.thread.close()


async def test_a_storage_that_is_far_away_gets_several_calls_at_once() -> None:
    clock = StillClock()  # after two calls no batch takes long by it
    calls, opened, threads = Calls(most=4, clock=clock), Event(), []

    def takes_long() -> None:
        clock.secs += 0.01

    def waits() -> None:
        threads.append(current_thread())
        opened.wait(BOUND_SECS)

    for name in ("first", "second"):
        await outcome(calls.begin(name, takes_long))
    begun = []
    for n in range(4):
        begun.append(calls.begin(n, waits))
        await asked()
    await until_true(lambda: len(threads) == 4)
    opened.set()
    assert [await outcome(each) for each in begun] == [*range(4)]
    assert len(set(threads)) == 4
    calls.thread.close()


async def test_the_loop_is_held_for_a_batch_and_calls_gather_after_it(holds: Holds) -> None:
    clock = HandClock()
    calls = Calls(clock=clock)
    for n in range(EAGER):  # after the first ones calls do not gather: the hand stands still
        assert await outcome(calls.begin(n)) == n
    last = calls.begin("last")
    await asked()
    assert calls.made[EAGER:] == ["last"]
    assert await outcome(last) == "last"
    rest = [calls.begin(n) for n in range(3)]
    await asked()
    assert calls.made[EAGER:] == ["last"]
    clock.pass_by(SOON_SECS)
    assert [await outcome(each) for each in rest] == [0, 1, 2]
    assert calls.batches[EAGER:] == [["last"], [0, 1, 2]]
    assert holds.count == EAGER + 2
    calls.thread.close()


async def test_calls_that_gather_begin_early_if_they_are_many(holds: Holds) -> None:
    clock = HandClock()
    calls = Calls(clock=clock)
    for n in range(EAGER + 1):
        await outcome(calls.begin(n))
    few = [calls.begin(n) for n in range(31)]
    await asked()
    assert len(calls.batches) == EAGER + 1
    clock.secs += 0.015
    many = [*few, calls.begin(31)]
    assert [await outcome(each) for each in many] == [*range(32)]
    assert calls.batches[EAGER + 1 :] == [[*range(32)]]
    # Those that come after them have their own time, whatever was left of the one before.
    later = calls.begin("later")
    clock.pass_by(0.01)
    await asked()
    assert len(calls.batches) == EAGER + 2
    clock.pass_by(0.01)
    assert await outcome(later) == "later"
    assert holds.count == EAGER + 3
    calls.thread.close()


async def test_a_loop_that_was_held_in_vain_is_not_held_at_once_again(holds: Holds) -> None:
    clock = StillClock()
    calls = Calls(clock=clock)
    holds.in_vain = True
    await outcome(calls.begin("long"))
    holds.in_vain = False
    await outcome(calls.begin("next"))
    assert holds.count == 1
    clock.secs += 1.0
    await outcome(calls.begin("later"))
    assert holds.count == 2
    calls.thread.close()


@pytest.mark.parametrize(
    ("secs", "held"),
    [
        pytest.param(0.0009, EAGER + 2, id="on this machine"),
        pytest.param(0.002, 2, id="far away, which the second one shows"),
    ],
)
async def test_the_loop_is_not_held_for_calls_that_take_long(
    holds: Holds, secs: float, held: int
) -> None:
    clock = StillClock()
    calls = Calls(clock=clock)

    def takes_long() -> None:
        clock.secs += secs

    for number in range(EAGER + 2):
        await outcome(calls.begin(number, takes_long))
        clock.secs += 1.0
    assert holds.count == held
    calls.thread.close()


async def test_the_first_call_says_nothing_about_the_others(holds: Holds) -> None:
    """It opens the storage. SQLite also has to read its statements once."""
    clock = StillClock()
    calls = Calls(clock=clock)

    def takes_long() -> None:
        clock.secs += 0.5

    await outcome(calls.begin("first", takes_long))
    for number in range(3):
        clock.secs += 1.0
        await outcome(calls.begin(number))
    assert holds.count == 4
    calls.thread.close()


async def test_all_calls_are_made_in_one_thread_that_is_not_the_loops() -> None:
    calls, names = Calls(), []
    for n in range(3):
        await outcome(calls.begin(n, lambda: names.append(current_thread())))
    assert len(set(names)) == 1
    assert names[0] is not current_thread()
    assert names[0].daemon
    calls.thread.close()


async def test_a_call_that_fails_fails_alone() -> None:
    calls, opened = Calls(clock=StillClock()), Event()
    first = calls.begin("first", lambda: opened.wait(BOUND_SECS))
    await asked()
    good, bad = calls.begin("good"), calls.begin("bad", lambda: int("x"))
    await asked()
    opened.set()
    assert await outcome(good) == "good"
    with pytest.raises(ValueError, match="invalid literal"):
        await outcome(bad)
    assert calls.batches[-1] == ["good", "bad"]
    await outcome(first)
    calls.thread.close()


async def batch_of(calls: Calls, begin: Callable[[], list[Deferred[Any]]]) -> list[Deferred[Any]]:
    """Begin these calls while another is under way, so that they are one batch."""
    opened = Event()
    first = calls.begin("first", lambda: opened.wait(BOUND_SECS))
    await asked()
    batch = begin()
    await asked()
    opened.set()
    await outcome(first)
    return batch


async def test_calls_that_wait_for_the_others_go_on_when_all_are_made() -> None:
    calls = Calls(clock=StillClock())
    done: list[str] = []

    def begin() -> list[Deferred[Any]]:
        lasts = [partial(done.append, step) for step in ("c1", "c2")]
        return [
            calls.begin("a", later=[partial(done.append, "a")]),
            calls.begin("b", partial(done.append, "b")),
            calls.begin("c", later=lasts),
        ]

    batch = await batch_of(calls, begin)
    assert [await outcome(each) for each in batch] == ["a", "b", "c"]
    assert calls.made == ["first", "a", "b", "c"]
    assert done == ["b", "a", "c1", "c2"]
    calls.thread.close()


async def test_a_call_that_fails_later_fails_alone() -> None:
    calls = Calls(clock=StillClock())

    def begin() -> list[Deferred[Any]]:
        wrong = partial(int, "x")
        return [
            calls.begin("bad", later=[wrong]),
            calls.begin("worse", wrong, later=[wrong]),
            calls.begin("good", later=[lambda: None]),
        ]

    *failed, good = await batch_of(calls, begin)
    assert await outcome(good) == "good"
    for each in failed:
        with pytest.raises(ValueError, match="invalid literal"):
            await outcome(each)
    calls.thread.close()


async def test_no_call_goes_on_after_the_batch_was_given_up() -> None:
    calls, opened = Calls(clock=HandClock()), Event()
    threads: list[Any] = []
    done: list[str] = []

    def hangs() -> None:
        threads.append(current_thread())
        opened.wait(BOUND_SECS)

    def begin() -> list[Deferred[Any]]:
        return [
            calls.begin("hangs", later=[hangs]),
            calls.begin("with it", later=[partial(done.append, "with it")]),
        ]

    batch = await batch_of(calls, begin)
    await until_true(lambda: bool(threads))
    calls.thread.close()
    for each in batch:
        with pytest.raises(LateError):
            await outcome(each)
    opened.set()
    threads[0].join(BOUND_SECS)
    assert not threads[0].is_alive()
    assert (calls.made, done) == (["first", "hangs", "with it"], [])
    assert calls.batches == [["first"]]  # the context of the other has seen an error


async def test_calls_that_wait_for_the_others_take_as_long_as_their_batch(holds: Holds) -> None:
    """As those to a server that is 10 ms away: the loop is not held for it."""
    clock = StillClock()
    calls = Calls(clock=clock)

    def answers_come() -> None:
        clock.secs += 0.01

    for number in range(EAGER + 2):
        await outcome(calls.begin(number, later=[answers_come]))
        clock.secs += 1.0
    assert holds.count == 2  # that it is far away, the second batch shows
    calls.thread.close()


async def test_a_call_that_finds_its_answer_has_taken_as_long_as_the_others(holds: Holds) -> None:
    clock, opened = StillClock(), Event()
    calls = Calls(clock=clock)

    def answers_come() -> None:
        opened.wait(BOUND_SECS)
        clock.secs += 0.01

    await outcome(calls.begin("opens"))
    holds.in_vain = True
    first = calls.begin("first", later=[answers_come])
    await asked()
    batch = [
        calls.begin("waits", later=[answers_come]),
        calls.begin("finds its answer", later=[lambda: None]),
    ]
    await asked()
    opened.set()
    assert [await outcome(each) for each in (first, *batch)] == [
        *("first", "waits", "finds its answer")
    ]
    holds.count = 0
    clock.secs += 1.0
    await outcome(calls.begin("last", later=[answers_come]))
    assert holds.count == 0
    calls.thread.close()


async def test_a_batch_that_is_not_kept_fails_all_its_calls() -> None:
    calls = Calls()
    calls.fails = OSError("full")
    with pytest.raises(OSError, match="full"):
        await outcome(calls.begin("lost"))
    calls.fails = None
    assert await outcome(calls.begin("kept")) == "kept"
    calls.thread.close()


async def test_a_call_whose_caller_is_gone_is_not_made() -> None:
    calls, opened = Calls(), Event()
    first = calls.begin("first", lambda: opened.wait(BOUND_SECS))
    await asked()
    gone, stays = calls.begin("gone"), calls.begin("stays")
    await asked()
    gone.addErrback(lambda _: None)
    gone.cancel()
    await outcome(gone)
    opened.set()
    assert await outcome(stays) == "stays"
    assert calls.made == ["first", "stays"]
    await outcome(first)
    calls.thread.close()


async def test_a_call_whose_caller_is_gone_later_is_made() -> None:
    calls, opened, begun = Calls(), Event(), Event()

    def does() -> None:
        begun.set()
        opened.wait(BOUND_SECS)

    gone = calls.begin("gone", does)
    await until(begun)
    gone.addErrback(lambda _: None)
    gone.cancel()
    await outcome(gone)
    opened.set()
    await outcome(calls.begin("next"))
    assert calls.made == ["gone", "next"]
    calls.thread.close()


async def test_a_call_that_hangs_is_left_with_its_thread() -> None:
    """What waits behind it is made by another thread, and what was in its batch by none."""
    clock = HandClock()
    calls, opened = Calls(clock=clock), Event()
    threads = []
    first = calls.begin("first", lambda: threads.append(current_thread()))
    await outcome(first)
    try:
        hangs, with_it = calls.begin("hangs", lambda: opened.wait(BOUND_SECS)), None
        await asked()
        clock.pass_by(SOON_SECS)  # calls have gathered
        await until_true(lambda: "hangs" in calls.made)
        for _ in range(2):  # there is a moment after it for what has just ended
            clock.pass_by(BOUND_SECS)
        with pytest.raises(LateError):
            await outcome(hangs)
        assert calls.hangs == 1
        with_it = calls.begin("next", lambda: threads.append(current_thread()))
        assert await outcome(with_it) == "next"
    finally:
        opened.set()
    assert threads[0] is not threads[1]
    threads[0].join(BOUND_SECS)
    assert not threads[0].is_alive()
    calls.thread.close()


async def test_what_was_late_before_it_began_hangs_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no thread that it could keep, and is not made when one takes it up after all."""
    submitted: list[Callable[[], object]] = []

    class Busy(Threads):
        def submit(self, call: Callable[[], Any]) -> Future[Any]:
            submitted.append(call)
            return Future()

    monkeypatch.setattr(storage_thread, "Threads", Busy)
    calls = Calls(secs=SOON_SECS)
    with pytest.raises(LateError):
        await outcome(calls.begin("late"))
    assert calls.hangs == 1
    assert calls.thread.hanging == 0
    [begin] = submitted
    begin()
    assert calls.made == []
    assert calls.thread.hanging == 0
    calls.thread.close()


async def test_the_rest_of_a_batch_that_hangs_is_not_made() -> None:
    clock = HandClock()
    calls, opened, hung = Calls(clock=clock), Event(), Event()
    threads = []
    first = calls.begin("first", lambda: opened.wait(BOUND_SECS))
    await asked()

    def hangs() -> None:
        threads.append(current_thread())
        hung.wait(BOUND_SECS)

    batch = [calls.begin("hangs", hangs), calls.begin("never")]
    await asked()
    opened.set()
    await until_true(lambda: "hangs" in calls.made)
    for _ in range(2):
        clock.pass_by(BOUND_SECS)
    for each in batch:
        with pytest.raises(LateError):
            await outcome(each)
    hung.set()
    threads[0].join(BOUND_SECS)
    assert not threads[0].is_alive()
    assert calls.made == ["first", "hangs"]
    assert calls.hangs == 1
    await outcome(first)
    calls.thread.close()


async def test_a_batch_that_takes_long_is_cut() -> None:
    """Other processes wait for the lock that it may hold."""
    calls, opened = Calls(), Event()
    first = calls.begin("first", lambda: opened.wait(BOUND_SECS))
    await asked()
    slow = [calls.begin(n, lambda: Event().wait(0.06)) for n in range(5)]
    await asked()
    opened.set()
    assert [await outcome(each) for each in slow] == list(range(5))
    assert len(calls.batches) >= 3
    assert calls.made == ["first", *range(5)]
    await outcome(first)
    calls.thread.close()


@pytest.mark.parametrize("most", [1, 2])  # with two, what waits has a timer
async def test_after_close_nobody_waits(most: int) -> None:
    clock, opened, threads = HandClock(), Event(), []
    calls = Calls(most=most, clock=clock)

    def hangs() -> None:
        threads.append(current_thread())
        opened.wait(BOUND_SECS)

    under_way = calls.begin("under way", hangs)
    await until_true(lambda: bool(threads))
    waits = calls.begin("waits")
    await asked()
    assert clock.timers
    calls.thread.close()
    assert not clock.timers
    for each in (waits, under_way):
        with pytest.raises(LateError):
            await outcome(each)
    opened.set()
    threads[0].join(BOUND_SECS)
    assert not threads[0].is_alive()
    assert calls.made == ["under way"]
