"""A history: processes that crawl a simulated web, and what befalls them."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from random import Random
from typing import Any

from simulation.ledger import Ledger
from simulation.loop import Clock
from simulation.plan import Plan, settings
from simulation.process import Process
from simulation.store import Disk
from simulation.watch import Watch
from simulation.web import Web

# Until then things happen; after that each crawl has so long to end.
_TROUBLE_SECS = 100.0
_CALM_SECS = 1000.0
_STEPS = 200_000
# By chance a process gets no time for so long, at most.
_STALL_CHANCE = 0.03
_STALL_SECS = 10.0

_JUMPS = (-7 * 86400.0, -300.0, -30.0, 30.0, 300.0, 7 * 86400.0)


class History:
    """All that follows from one seed."""

    burying = _is_in_step = False
    clocks_are_right = True

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = chance = Random(seed)
        self.clock = Clock()
        self.told: list[tuple[float, str, str, str]] = []
        self.watch = Watch(self)
        self.ledger = Ledger(self)
        self.defers = chance.random() < 0.85
        """Whether the scheduler is ours; without it requests wait in place."""
        workers = chance.choice((1, 2, 2, 3))
        self.shares = workers > 1 or chance.random() < 0.6
        """Whether the storage is shared, and in a thread."""
        self.settings, self.koster = settings(chance)
        self.sockets = chance.choice((2, 3, 8))
        self.disk = Disk(self.clock, chance, own_clock=chance.random() < 0.5)
        # Each has a chance of its own.
        self.paced = seed % 4 == 3 and self.defers
        delays = Random(f"{seed} delays") if self.paced else None
        if self.paced:
            self.koster["KOSTER_CRAWL_DELAY"] = "obey"
            self.koster["KOSTER_CRAWL_DELAY_MAX_SECS"] = delays.choice((1, 60)) if delays else 60
        self.slots = Random(f"{seed} slots") if seed % 8 == 7 else None
        """Makes up for how long a page waits in its slot before it is sent."""
        self.user = Random(f"{seed} user") if seed % 10 in (3, 8) else None
        """Makes up when somebody pauses a crawl."""
        self._stalls = Random(f"{seed} stalls") if seed % 10 in (1, 7) else None
        self._troubles = chance.choice((0, 0, 1, 2, 4))
        ahead = Random(f"{seed} ahead")
        self.first, self.waiting = ahead.choice((1, 3, 100)), ahead.choice((2, 100, 100))
        """How many sites may wait for their first answer, and for any, before more are taken."""
        self.web = Web(chance, sites=chance.randrange(3, 11), until=_TROUBLE_SECS, delays=delays)
        self.plan = Plan(chance, list(self.web.sites), chance.randrange(8, 40))
        self.processes: list[Process] = []
        self._numbers = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._steps = 0
        self._horizon = _TROUBLE_SECS + _CALM_SECS
        self._workers = workers

    @property
    def stands_still(self) -> bool:
        """Whether time may pass between two readings of the clock."""
        return self._stalls is not None

    @property
    def is_troubled(self) -> bool:
        """Whether something befalls the storage or a process."""
        return self._troubles > 0 or self.stands_still

    @property
    def is_quiet_fleet(self) -> bool:
        """Whether all processes always know what the storage has."""
        return self.shares and not self.is_troubled

    # Running.

    def run(self) -> None:
        """Run until all has ended. Broken if an invariant does not hold."""
        before = asyncio._get_running_loop()
        try:
            self._begin()
            while self._go_on():
                pass
            self.ledger.sum_up()
        finally:
            for process in self.processes:
                self._bury(process)
            asyncio._set_running_loop(before)
        self._check()

    def _check(self) -> None:
        if self.watch.found is not None:
            raise self.watch.found

    def _begin(self) -> None:
        for number in range(self._workers):
            wait = self.chance.choice((0.0, 0.0, 1.0, 10.0))
            self.at(wait, partial(self._spawn, number))
        self._trouble()

    def _spawn(self, share: int) -> None:
        start = self.plan.start(share, self._workers)
        process = Process(self, f"p{len(self.processes)}", start=start)
        self.processes.append(process)
        self.tell(process, "begins", "")
        asyncio._set_running_loop(process.loop)
        process.begin()

    def _go_on(self) -> bool:
        """Do the next thing; return whether there is more."""
        clock = self.clock
        while self._events and self._events[0][0] <= clock.now:
            heapq.heappop(self._events)[2]()
        due = [each for each in self.processes if self._is_due(each)]
        if due:
            self._step(self.chance.choice(due) if len(due) > 1 else due[0], alone=len(due) == 1)
            return True
        self._rest()
        when = self._next()
        if when is None or when > self._horizon:
            names = [each.name for each in self.processes if not each.ended]
            if names or when is not None:
                said = f"{names} after {clock.now} s; next at {when}"
                self.watch.broken("each crawl ends", None, said)
                self._check()
            return False
        clock.now = when
        return True

    def _is_due(self, process: Process) -> bool:
        if process.paused_until > self.clock.now or process.dead:
            return False
        due = process.loop.due()
        return due is not None and due <= self.clock.now

    def _step(self, process: Process, *, alone: bool) -> None:
        asyncio._set_running_loop(process.loop)
        process.ran = True
        for _ in range(50 if alone else self.chance.randrange(1, 6)):
            if process.doomed is not None:
                if process.doomed <= 0:
                    self._kill(process)
                    break
                process.doomed -= 1
            self._is_in_step = True
            process.loop.run_one()
            self._is_in_step = False
            self._steps += 1
            if self._steps > _STEPS:
                self.watch.broken("each crawl ends", process, f"after {_STEPS} steps")
            self._check()
            if not self._is_due(process):
                break

    def _rest(self) -> None:
        for process in self.processes:
            if process.ran and process.paused_until <= self.clock.now:
                process.ran = False
                asyncio._set_running_loop(process.loop)
                if not self.is_troubled and process.is_open and not process.is_paused_by_user:
                    self.watch.rest(process, self.ledger.waiting(process))
                if process.ended and not process.dead and not process.checked:
                    self._crawl_ended(process)
        self._check()

    def _crawl_ended(self, process: Process) -> None:
        process.checked = True
        self.tell(process, "has ended", "")
        assert process.main is not None
        if process.main.exception() is not None:
            self.watch.broken("each crawl ends", process, repr(process.main.exception()))
        self.watch.ended(process)
        if self.watch.found is None:
            self.ledger.gone(process, "the crawl was stopped" if process.stopped else "")

    def _next(self) -> float | None:
        times = [self._events[0][0]] if self._events else []
        for process in self.processes:
            if not process.dead:
                due = process.loop.due()
                if due is not None:
                    times.append(max(due, process.paused_until))
        return min(times, default=None)

    # What befalls them.

    def at(self, when: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), action))

    def _trouble(self) -> None:
        chance = self.chance
        for _ in range(self._troubles):
            when = chance.random() * chance.choice((2.0, 10.0, 30.0, _TROUBLE_SECS))
            what = chance.choice((self._fault, self._fault, self._attack))
            self.at(when, what)
        if (user := self.user) is not None:
            for _ in range(user.choice((1, 2, 4))):
                when = user.random() * user.choice((5.0, 30.0, _TROUBLE_SECS))
                self.at(when, self._pause_by_user)

    def _fault(self) -> None:
        """Something befalls the storage."""
        chance = self.chance
        secs = chance.choice((0.5, 5.0, 40.0))
        match chance.choice(("fail", "fail", "lag", "forget")):
            case "fail":
                self._set(self.disk, "failing", True, secs, False)
            case "lag":
                self._set(self.disk, "lag", chance.choice((0.5, 2.0, 15.0)), secs, 0.0)
            case "forget":
                self.tell(None, "the storage forgets", "")
                self.disk.forget()

    def _pause_by_user(self) -> None:
        """Somebody pauses a crawl, and has it go on later."""
        assert self.user is not None
        running = [each for each in self.processes if not each.ended and each.is_open]
        if running:
            process, secs = self.user.choice(running), self.user.choice((1.0, 6.0, 40.0, 100.0))
            self.tell(process, f"is paused by its user for {secs} s", "")
            asyncio._set_running_loop(process.loop)
            process.crawler.engine.pause()
            self.at(self.clock.now + secs, partial(self._go_on_by_user, process))

    def _go_on_by_user(self, process: Process) -> None:
        if not process.ended:
            self.tell(process, "goes on", "")
            asyncio._set_running_loop(process.loop)
            process.resumed_at = self.clock.now
            process.crawler.engine.unpause()

    def stand_still(self, process: Process) -> None:
        """Sometimes time passes between two readings of the clock, and may decide something."""
        stalls = self._stalls
        if stalls is None or not self._is_in_step or stalls.random() >= _STALL_CHANCE:
            return
        secs = stalls.choice((0.001, 0.03, _STALL_SECS * stalls.random()))
        self.tell(process, f"stands still for {secs} s", "")
        self.clock.now += secs

    def _set(self, where: Any, name: str, value: Any, secs: float, after: Any) -> None:
        self.tell(None, f"the storage: {name} = {value} for {secs} s", "")
        setattr(where, name, value)
        self.at(self.clock.now + secs, lambda: setattr(where, name, after))

    def _attack(self) -> None:
        """Something befalls one of the processes."""
        chance = self.chance
        running = [each for each in self.processes if not each.ended and each.is_open]
        if not running:
            return
        process = chance.choice(running)
        match chance.choice(("kill", "kill", "stop", "pause", "pause", "jump")):
            case "kill":
                process.doomed = chance.choice((0, 0, 1, 5, 30))
            case "stop":
                self.tell(process, "is stopped", "")
                process.stopped = True
                asyncio._set_running_loop(process.loop)
                process.loop.create_task(process.crawler.stop())
            case "pause":
                secs = chance.choice((2.0, 12.0, 40.0, 90.0))
                self.tell(process, f"is paused for {secs} s", "")
                process.paused_until = self.clock.now + secs
                # It may go on between what it allowed and what it sends.
                self.clocks_are_right = False
            case "jump":
                process.offset += chance.choice(_JUMPS)
                self.clocks_are_right = False
                self.tell(process, f"has its clock at {process.offset:+}", "")

    def _kill(self, process: Process) -> None:
        if process.ended:
            return
        self.tell(process, "is killed", "")
        process.die()
        self.ledger.gone(process, f"it was in the memory of {process.name}")
        self._bury(process)

    # Looking back.

    def _bury(self, process: Process) -> None:
        """End what is left of a process, so that nothing of it stirs any more."""
        asyncio._set_running_loop(process.loop)
        process.die()
        self.burying = True
        for _ in range(20):
            tasks = process.loop.tasks()
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            process.loop.clear()
            while process.loop.due() == self.clock.now:
                process.loop.run_one()
        self.burying = False
        process.loop.clear()

    def went_wrong(self, said: str) -> None:
        """An error was logged."""
        if not self.burying:
            self.watch.broken("nothing goes wrong", None, said)

    # The events.

    def tell(self, process: Process | None, what: str, of: Any) -> None:
        self.told.append((self.clock.now, process.name if process else "", what, of))

    def counts(self) -> Counter[str]:
        """Return how many of what there was."""
        return Counter(what.split(" for ")[0] for _, _, what, _ in self.told)

    def described(self) -> str:
        return (
            f"workers: {self._workers}, defers: {self.defers}, storage"
            f" shared: {self.shares}, {self.settings} {self.koster}"
        )
