"""Tests that are tested: mutmut changes the package in small ways, and each time one fails.

    python tests/mutants.py protocol [--sample 300] [--only turns] [--jobs 2]

mutmut says what to change; it is run here. The tests are collected once, by a process that runs
none, and each mutant gets a fork of it. There the code of one function is replaced, and the tests
that reach that function run, the fastest first, until one fails. So a mutant costs what its tests
cost, and nothing is shared between two.

Who survives is printed as a row of mutants.md, which says why where it stands there already.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import difflib
import gc
import os
import pickle
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import _lru_cache_wrapper, cached_property
from itertools import accumulate
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeAlias

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "scrapy_koster"
REACHED = ROOT / "mutants"
"""A folder with a file for each part: which tests reach which function."""
REASONS = ROOT / "tests" / "mutants.md"
CPU_SECS, WALL_SECS = 2.0, 20.0
"""What a test may take with a mutant, besides five times what it takes without."""

TESTS = {
    "protocol": [
        "conformance", "robotstxt", "robotsmeta", "access", "freshness", "verdict", "site",
        "nametoken", "rewriting", "printable", "html_page", "parsers_koster", "one_verdict",
        "parsers_strictest", "rfc9309", "rfc9309_protego", "delay",
    ],
    "crawl": [
        "addon", "announcer", "retriever", "coding", "config", "counting", "sites", "log", "meter",
        "parked_requests", "inner", "redis_backup", "idle", "states", "report_collect",
        "report_command", "report_files", "retry_timer", "robots_request", "simulation",
        "spidermiddleware", "summary", "permits", "crawl", "crawl_access", "crawl_announcer",
        "crawl_deferring", "crawl_ending",
        "crawl_fetch", "crawl_fleet", "crawl_floods", "crawl_freshness", "crawl_jobdir",
        "crawl_log", "crawl_meta", "crawl_missing", "crawl_pacing", "crawl_projects",
        "crawl_redis", "crawl_refused", "crawl_replay", "crawl_robot", "crawl_scrapy_redis",
        "crawl_start", "crawl_stored", "crawl_survey", "crawl_waiting", "crawl_wrapped",
        "faults",
    ],
}  # fmt: skip
MARKERS = "not long and not timed"
ENDS = {0: "survived", -signal.SIGPROF: "looped", -signal.SIGALRM: "hung"}
"""How a mutant ends, by the exit code: it took CPU_SECS, or WALL_SECS, or a test failed."""
OF_THE_PARENT: list[object] = []
"""What a fork must not close."""

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Function(NamedTuple):
    """One of a module, or of a class in it."""

    path: str
    name: str
    first: int
    """The line at which its code begins: that of its decorator where it has one."""
    last: int


@dataclass(eq=False)
class Mutant:
    """One small change."""

    function: Function
    node: Any
    """The function, as libcst has it."""
    module: Any
    mutation: Any

    @property
    def file(self) -> str:
        return str(Path(self.function.path).relative_to(PACKAGE))

    @cached_property
    def row(self) -> str:
        """What changes, as mutants.md has it."""
        mutated = self.node.deep_replace(self.mutation.original_node, self.mutation.mutated_node)
        change = difference(*map(self.module.code_for_node, (self.node, mutated)))
        return f"| `{self.file}` `{self.function.name}` | {change} |"

    def put_on(self, functions: Iterable[FunctionType]) -> None:
        """Let what runs be this mutant."""
        changed = self.module.deep_replace(self.mutation.original_node, self.mutation.mutated_node)
        module = compile(changed.code, self.function.path, "exec", dont_inherit=True)
        code = next(code for code in codes(module) if code.co_firstlineno == self.function.first)
        node = defined(ast.parse(changed.code))[self.function.first]
        for function in functions:
            function.__code__ = code
            set_defaults(function, node)


def codes(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if const.co_flags & 0x2:  # of a function: a class has none of its own
                yield const
            yield from codes(const)


def defined(tree: ast.Module) -> dict[int, FunctionNode]:
    """The functions in a module, by their first lines."""
    return {first_line(node): node for node in ast.walk(tree) if isinstance(node, FunctionNode)}


def functions_of(path: Path) -> Iterator[Function]:
    """The functions of a module, and those of its classes."""
    module = ast.parse(path.read_text("utf-8"))
    for node in module.body:
        of_class = node.body if isinstance(node, ast.ClassDef) else []
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for each in [node, *of_class]:
            if isinstance(each, FunctionNode):
                yield Function(
                    str(path), prefix + each.name, first_line(each), each.end_lineno or 0
                )


def first_line(node: FunctionNode) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def set_defaults(function: FunctionType, node: FunctionNode) -> None:
    """mutmut changes those that are spelt out, and no others."""
    defaults = list(function.__defaults__ or ())
    for at, default in enumerate(node.args.defaults):
        if isinstance(default, ast.Constant):
            defaults[at] = default.value
    function.__defaults__ = tuple(defaults) or None
    for name, given in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if isinstance(given, ast.Constant) and function.__kwdefaults__:
            function.__kwdefaults__[name.arg] = given.value


def make(part: str) -> Iterator[Mutant]:
    """The mutants of one folder."""
    import libcst
    from mutmut.mutation.file_mutation import create_mutations

    for path in sorted((PACKAGE / part).rglob("*.py")):
        source = path.read_text("utf-8")
        module, mutations, *_ = create_mutations(str(path), source)
        functions = {function.name: function for function in functions_of(path)}
        classes = {
            method: f"{node.name.value}."
            for node in module.body
            if isinstance(node, libcst.ClassDef)
            for method in node.body.body
        }
        for mutation in mutations:
            node = mutation.contained_by_top_level_function
            if not isinstance(node, libcst.FunctionDef):
                continue
            name = classes.get(node, "") + node.name.value
            yield Mutant(functions[name], node, module, mutation)


def difference(before: str, after: str) -> str:
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    old, new = (
        " ".join(line[2:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )
    return f"`{old}` → `{new}`".replace("|", "\\|")


class Reach(NamedTuple):
    """Which tests run which function, by its file and name, and how long each test takes."""

    tests: dict[tuple[str, str], set[str]]
    secs: dict[str, float]

    def add(self, path: str, tests: dict[int, list[str]]) -> None:
        """Add what ran the lines of a file."""
        for function in functions_of(Path(path)):
            inside = range(function.first + 1, function.last + 1)  # the first runs with the module
            found = self.tests.setdefault((path, function.name), set())
            found.update(*(tests.get(line, ()) for line in inside))


class Runner:
    """A plugin of pytest that runs the tests once for each mutant, in place of once."""

    def __init__(
        self,
        mutants: Sequence[Mutant],
        reached: Path,
        *,
        jobs: int,
        secs: float,
        unchanged: bool = False,
    ) -> None:
        self.outcomes: dict[Mutant, str] = {}
        self._mutants = mutants
        self._reached = reached
        self._jobs = jobs
        self._secs = secs
        self._unchanged = unchanged
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
        self._functions, self._caches = alive()
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
        reach = Reach({}, {})
        if self._reached.exists():
            reach = pickle.loads(self._reached.read_bytes())
        new = [item for item in session.items if item.nodeid not in reach.secs]
        if new and not (child := os.fork()):
            begin(session)
            self._reached.write_bytes(pickle.dumps(self._measured(new, reach)))
            os._exit(0)
        if new:
            _, status = os.waitpid(child, 0)
            kill_group(child)
            assert not status
            reach = pickle.loads(self._reached.read_bytes())
        return reach

    def _measured(self, items: list[pytest.Item], reach: Reach) -> Reach:
        from coverage import Coverage

        watch = Coverage(data_file=None, config_file=False, source=[str(PACKAGE)])
        watch.start()
        for item, following in pairs(items):
            start = time.monotonic()
            self._failed = False
            self._forget()
            watch.switch_context(item.nodeid)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                print("fails without a mutant:", item.nodeid, file=sys.__stderr__)
            else:
                reach.secs[item.nodeid] = time.monotonic() - start
        watch.stop()
        data = watch.get_data()
        for path in data.measured_files():
            if path.endswith(".py"):  # and not a template
                reach.add(path, data.contexts_by_lineno(path))
        return reach

    def _chosen(self, items: list[pytest.Item], mutant: Mutant, reach: Reach) -> list[pytest.Item]:
        """The tests that reach it, as many as there is time for.

        Those of a file with its name go first, then the simulation; of others the fastest.
        """
        function = mutant.function
        names = reach.tests.get((function.path, function.name), set()) & reach.secs.keys()
        mine = [item for item in items if item.nodeid in names]
        first = [Path(function.path).stem[:5], "simulation", ""]
        rank = {
            item: next(n for n, name in enumerate(first) if name in item.nodeid) for item in mine
        }
        mine.sort(key=lambda item: (rank[item], reach.secs[item.nodeid]))
        sums = accumulate(reach.secs[item.nodeid] for item in mine)
        return [item for item, secs in zip(mine, sums, strict=True) if secs <= self._secs]

    def _forget(self) -> None:
        """What is cached hides the functions that made it."""
        for cache in self._caches:
            cache.cache_clear()

    def _start(self, mutant: Mutant, items: list[pytest.Item], reach: Reach) -> None:
        if child := os.fork():
            self._running[child] = mutant
            return
        try:
            begin(items[0].session)
            os.dup2(1, 2)
            self._forget()
            function = mutant.function
            if not self._unchanged:
                mutant.put_on(self._functions[function.path, function.first])
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
        self.outcomes[self._running.pop(child)] = ENDS.get(code, "killed")


def begin(session: pytest.Session) -> None:
    """Become a process of its own: a group, a loop, and nothing to be seen but on stderr."""
    from conftest import LOOP
    from harness.loops import BareLoop

    os.setsid()
    asyncio.set_event_loop(None)
    OF_THE_PARENT.append(session.config.stash[LOOP])
    session.config.stash[LOOP] = BareLoop()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def alive() -> tuple[dict[tuple[str, int], list[FunctionType]], list[_lru_cache_wrapper[Any]]]:
    """Return all functions, by their files and first lines, and what keeps their results."""
    functions, caches = defaultdict(list), []
    gc.unfreeze()  # what is frozen is not found
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            functions[each.__code__.co_filename, each.__code__.co_firstlineno].append(each)
        elif isinstance(each, _lru_cache_wrapper) and each.__module__.startswith(PACKAGE.name):
            caches.append(each)
    gc.freeze()
    return functions, caches


def kill_group(leader: int) -> None:
    """End what a test has started and could not end."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def pairs(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def spread(mutants: Sequence[Mutant], size: int, seed: int) -> list[Mutant]:
    """As many, by chance, of each file in the proportion of its mutants. A seed is one sample."""
    chance, files = random.Random(seed), defaultdict(list)
    for mutant in mutants:
        files[mutant.file].append(mutant)
    share = min(1.0, size / len(mutants))
    return [
        mutant
        for of_file in files.values()
        for mutant in chance.sample(of_file, round(share * len(of_file)))
    ]


def report(outcomes: dict[Mutant, str], reasons: str) -> bool:
    """Say what was killed, by file, and what survived. Whether there is a reason for all of it."""
    say(
        "\n| file | mutants | killed | looped | hung | with a reason | survived |\n"
        + "|---" * 7
        + "|"
    )
    left = {mutant for mutant, outcome in outcomes.items() if outcome in ("survived", "no test")}
    known = {mutant for mutant in left if mutant.row in reasons}
    for file in [*sorted({mutant.file for mutant in outcomes}), ""]:
        mine = {mutant for mutant in outcomes if not file or mutant.file == file}
        count = Counter(outcomes[mutant] for mutant in mine)
        cells = [len(mine), count["killed"], count["looped"], count["hung"]]
        cells += [len(mine & known), len(mine & left - known)]
        say(" | ".join(["", file or "in all", *map(str, cells), ""]).strip())
    killed = len(outcomes) - len(left)
    say(f"\n{killed} of {len(outcomes)} killed, {killed / len(outcomes):.1%}.")
    hung = {mutant for mutant, outcome in outcomes.items() if outcome == "hung"}
    for title, which in {
        "Survivors, and how": left - known,
        "Killed because they hung, as a busy machine may": hung,
    }.items():
        say(f"\n{title}:\n")
        for mutant in sorted(which, key=lambda mutant: mutant.row):
            say(f"{mutant.row} {outcomes[mutant]} |")
    return left == known


def say(line: str) -> None:
    os.write(1, (line + "\n").encode())


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=sorted(TESTS))
    parser.add_argument("--sample", type=int, help="how many mutants, in place of all")
    parser.add_argument("--seed", type=int, default=0, help="which sample")
    parser.add_argument("--only", default="", help="those whose row has this text")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--secs", type=float, default=10.0, help="of tests for each mutant")
    parser.add_argument("--go-on", action="store_true", help="measure the new tests alone")
    parser.add_argument(
        "--unchanged", action="store_true", help="change nothing: who is killed then is by mistake"
    )
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    REACHED.mkdir(exist_ok=True)
    reached = REACHED / options.part
    if not options.go_on:
        reached.unlink(missing_ok=True)
    mutants = list(make(options.part))
    if only := options.only.splitlines():
        mutants = [each for each in mutants if any(text in each.row for text in only)]
    if options.sample:
        mutants = spread(mutants, options.sample, options.seed)
    runner = Runner(
        mutants, reached, jobs=options.jobs, secs=options.secs, unchanged=options.unchanged
    )
    files = [
        str(path.relative_to(ROOT))
        for name in TESTS[options.part]
        for path in (ROOT / "tests").glob(f"*/test_{name}.py")
    ]
    shell = ["-q", "-s", "-p", "no:twisted", "-p", "no:cacheprovider", "-m", MARKERS]
    # Some tests ignore what Scrapy leaves open. Here it may be found in the middle of others.
    shell += ["-W", "ignore::pytest.PytestUnraisableExceptionWarning", *files]
    # addopts has --reactor, which conftest.py takes without pytest-twisted.
    code = pytest.main(shell, plugins=[runner])
    if not runner.outcomes:
        return int(code) or 1
    return 0 if report(runner.outcomes, REASONS.read_text("utf-8")) else 1


if __name__ == "__main__":
    sys.exit(main())
