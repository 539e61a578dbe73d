"""Tests that are tested: mutmut changes the package in small ways, and each time one fails.

    python tests/mutants.py protocol [--sample 300] [--only turns] [--jobs 2]

mutmut makes the mutants; they are run here. The tests are collected once, by a process that runs
none, and each mutant gets a fork of it: the tests that reach the changed function, the fastest
first, until one fails. So a mutant costs what its tests cost, and nothing is shared between two.

Who survives is printed as a row of mutants.md, which says why where it stands there already.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import os
import pickle
import random
import shutil
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = "scrapy_koster"
COPIES = ROOT / "mutants"
"""For each part the package with its mutants, and which tests reach which function."""
REASONS = ROOT / "tests" / "mutants.md"
CPU_SECS, WALL_SECS = 2.0, 20.0
"""What a test may take with a mutant, besides five times what it takes without."""

TESTS = {
    "protocol": [
        "conformance", "robotstxt", "robotsmeta", "access", "freshness", "verdict", "site",
        "nametoken", "rewriting", "printable", "parsers_koster", "one_verdict", "parsers_strictest",
    ],
    "crawl": [
        "addon", "config", "keeper", "log", "parking", "retry_timer", "robots_request",
        "spidermiddleware", "turns", "workers", "crawl", "crawl_access", "crawl_announcer",
        "crawl_deferring", "crawl_ending", "crawl_fetch", "crawl_fleet", "crawl_floods",
        "crawl_freshness", "crawl_jobdir", "crawl_log", "crawl_meta", "crawl_redis", "crawl_replay",
        "crawl_robot", "crawl_scrapy_redis", "crawl_start", "crawl_stored", "crawl_waiting",
        "crawl_wrapped",
    ],
}  # fmt: skip
OF_THE_PARENT: list[object] = []
"""What a fork must not close."""
MARKERS = "not long and not timed"


@dataclass(frozen=True)
class Mutant:
    name: str
    """What mutmut calls it: the module, the function, a number."""
    file: str
    function: str
    change: str

    @property
    def reaches(self) -> str:
        return self.name.rpartition("__mutmut_")[0]

    @property
    def row(self) -> str:
        return f"| `{self.file}` `{self.function}` | {self.change} |"


class Reach(NamedTuple):
    """Which tests run a function, and how long each test takes."""

    tests: dict[str, set[str]]
    secs: dict[str, float]


def make(copy: Path, part: str) -> list[Mutant]:
    """Copy the package, with the mutants of one folder in it."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    shutil.rmtree(copy / PACKAGE, ignore_errors=True)
    shutil.copytree(ROOT / PACKAGE, copy / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    mutants = []
    for path in sorted((copy / PACKAGE / part).rglob("*.py")):
        module = ".".join(path.relative_to(copy).with_suffix("").parts)
        mutated = mutate_file_contents(str(path), path.read_text("utf-8"))
        path.write_text(mutated.code, "utf-8")
        lines = mutated.code.splitlines()
        source = {
            name: lines[span.start : span.end]
            for name, span in mutated.line_span_by_function_name.items()
        }
        mutants += [
            Mutant(
                f"{module}.{name}",
                str(path.relative_to(copy / PACKAGE)),
                readable(name),
                change(source[name.rpartition("_")[0] + "_orig"], source[name]),
            )
            for name in mutated.mutant_names
        ]
    return mutants


def readable(name: str) -> str:
    """What the source calls the function of a mutant."""
    function = name.rpartition("__mutmut_")[0]
    return function.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")


def change(before: Sequence[str], after: Sequence[str]) -> str:
    lines = list(difflib.ndiff(before, after))
    old, new = (
        " ".join(line[2:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )
    return f"`{old}` → `{new}`".replace("|", "\\|")


class Runner:
    """A plugin of pytest that runs the tests once for each mutant, in place of once."""

    def __init__(self, mutants: Sequence[Mutant], reached: Path, jobs: int, secs: float) -> None:
        self.outcomes: dict[Mutant, str] = {}
        self._mutants = mutants
        self._reached = reached
        self._jobs = jobs
        self._secs = secs
        self._running: dict[int, Mutant] = {}
        self._failed = False

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings  # not before pytest looks at its plugins

        # The first example that fails will do, and each run has the same ones.
        settings.register_profile(
            "mutants",
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed = self._failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        reach = self._reach(session)
        say(f"{len(reach.secs)} tests, {sum(reach.secs.values()):.0f} s")
        for count, mutant in enumerate(self._mutants, 1):
            while len(self._running) >= self._jobs:
                self._reap()
            if chosen := self._chosen(session.items, mutant, reach):
                self._start(mutant, chosen, reach)
            else:
                self.outcomes[mutant] = "no test"
            if count % 50 == 0:
                say(f"{count}: {dict(Counter(self.outcomes.values()))}")
        while self._running:
            self._reap()
        return True

    def _reach(self, session: pytest.Session) -> Reach:
        """Run each test once, unchanged. Those that fail then say nothing, and are left out."""
        reach: Reach = Reach({}, {})
        if self._reached.exists():
            reach = pickle.loads(self._reached.read_bytes())
        new = [item for item in session.items if item.nodeid not in reach.secs]
        if not new:
            return reach
        if not (child := os.fork()):
            begin(session, "stats")
            self._reached.write_bytes(pickle.dumps(self._measured(new, reach)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert not status
        measured: Reach = pickle.loads(self._reached.read_bytes())
        return measured

    def _chosen(self, items: list[pytest.Item], mutant: Mutant, reach: Reach) -> list[pytest.Item]:
        """The tests that reach it, the fastest first, as many as there is time for."""
        names = reach.tests.get(mutant.reaches, set())
        mine = [item for item in items if item.nodeid in names]
        mine.sort(key=lambda item: reach.secs[item.nodeid])
        sums = accumulate(reach.secs[item.nodeid] for item in mine)
        return [item for item, secs in zip(mine, sums, strict=True) if secs <= self._secs]

    def _measured(self, items: list[pytest.Item], reach: Reach) -> Reach:
        from mutmut.state import state

        tests = defaultdict(set, reach.tests)
        secs = dict(reach.secs)
        for item, following in pairs(items):
            start = time.monotonic()
            state()._stats.clear()
            self._failed = False
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                print("fails without a mutant:", item.nodeid, file=sys.__stderr__)
                continue
            secs[item.nodeid] = time.monotonic() - start
            for function in state()._stats:
                tests[function].add(item.nodeid)
        return Reach(dict(tests), secs)

    def _start(self, mutant: Mutant, items: list[pytest.Item], reach: Reach) -> None:
        if child := os.fork():
            self._running[child] = mutant
            return
        try:
            begin(items[0].session, mutant.name)
            for item, following in pairs(items):
                # Both end the process.
                signal.setitimer(signal.ITIMER_PROF, CPU_SECS + 5 * reach.secs[item.nodeid])
                signal.setitimer(signal.ITIMER_REAL, WALL_SECS + 5 * reach.secs[item.nodeid])
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failed:
                    os._exit(1)
        except BaseException:  # noqa: BLE001 - whatever it is, the mutant has been noticed
            os._exit(1)
        os._exit(0)

    def _reap(self) -> None:
        child, status = os.wait()
        kill_group(child)
        code = os.waitstatus_to_exitcode(status)
        outcome = "survived" if code == 0 else "time-out" if code < 0 else "killed"
        self.outcomes[self._running.pop(child)] = outcome


def begin(session: pytest.Session, mutant: str) -> None:
    """Become a process of its own: a group, a loop, a mutant, and nothing to be seen."""
    from conftest import LOOP
    from loops import BareLoop
    from mutmut.mutation.trampoline import set_mutant_under_test

    os.setsid()
    asyncio.set_event_loop(None)
    OF_THE_PARENT.append(session.config.stash[LOOP])
    session.config.stash[LOOP] = BareLoop()
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    if mutant != "stats":
        os.dup2(silence, 2)
    set_mutant_under_test(mutant)


def kill_group(leader: int) -> None:
    """End what a test has started and could not end."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def pairs(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def spread(mutants: Sequence[Mutant], size: int) -> list[Mutant]:
    """As many, by chance, of each file in the proportion of its mutants. Always the same."""
    chance, files = random.Random(0), defaultdict(list)
    for mutant in mutants:
        files[mutant.file].append(mutant)
    share = min(1.0, size / len(mutants))
    return [
        mutant
        for of_file in files.values()
        for mutant in sorted(chance.sample(of_file, round(share * len(of_file))), key=str)
    ]


def report(outcomes: dict[Mutant, str], reasons: str) -> bool:
    """Say what was killed, by file, and what survived. Whether there is a reason for all of it."""
    say("\n| file | mutants | killed | time-out | with a reason | survived |\n" + "|---" * 6 + "|")
    left = {mutant for mutant, outcome in outcomes.items() if outcome in ("survived", "no test")}
    known = {mutant for mutant in left if mutant.row in reasons}
    for file in [*sorted({mutant.file for mutant in outcomes}), ""]:
        mine = {mutant for mutant in outcomes if not file or mutant.file == file}
        count = Counter(outcomes[mutant] for mutant in mine)
        cells = [len(mine), count["killed"], count["time-out"]]
        cells += [len(mine & known), len(mine & left - known)]
        say(" | ".join(["", file or "in all", *map(str, cells), ""]).strip())
    killed = len(outcomes) - len(left)
    say(
        f"\n{killed} of {len(outcomes)} killed, {killed / len(outcomes):.1%}. Survivors, and how:\n"
    )
    for mutant in sorted(left - known, key=lambda mutant: mutant.row):
        say(f"{mutant.row} {outcomes[mutant]} |")
    return left == known


def say(line: str) -> None:
    os.write(1, (line + "\n").encode())


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=sorted(TESTS))
    parser.add_argument("--sample", type=int, help="how many mutants, in place of all")
    parser.add_argument("--only", default="", help="those whose row has this text")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--secs", type=float, default=60.0, help="of tests for each mutant")
    parser.add_argument("--go-on", action="store_true", help="measure the new tests alone")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    copy = COPIES / options.part
    copy.mkdir(parents=True, exist_ok=True)
    reached = copy / "reached"
    if not options.go_on:
        reached.unlink(missing_ok=True)
    only = options.only.splitlines() or [""]
    mutants = [each for each in make(copy, options.part) if any(text in each.row for text in only)]
    if options.sample:
        mutants = spread(mutants, options.sample)
    sys.path.insert(0, str(copy))
    sys.dont_write_bytecode = True
    runner = Runner(mutants, reached, options.jobs, options.secs)
    files = [f"tests/test_{name}.py" for name in TESTS[options.part]]
    shell = ["-q", "-s", "-p", "no:twisted", "-p", "no:cacheprovider", "-m", MARKERS, *files]
    # addopts has --reactor, which conftest.py takes without pytest-twisted.
    code = pytest.main(shell, plugins=[runner])
    if not runner.outcomes:
        return int(code) or 1
    return 0 if report(runner.outcomes, REASONS.read_text("utf-8")) else 1


if __name__ == "__main__":
    sys.exit(main())
