"""What a new site costs: broad crawls of healthy sites beside Scrapy's own middleware.

Every figure is a ratio of two crawls of the same round, each in a process of its own, and the
sites are a third process. Memory and CPU time say something on a busy machine, too; seconds do not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import inf
from pathlib import Path
from shutil import which
from statistics import quantiles
from typing import Any, NamedTuple

from corpus import corpus
from harness.redis_server import RedisServer, redis_server
from healthy import HealthySites
from report import Table

ONE_CRAWL = Path(__file__).parent / "one_crawl.py"
PLACES = 64
SITES = 1_500
SLOW_SITES, ANSWER_SECS = 2_000, 0.3
SLOW_GOALS = {16: 0.60, PLACES: 0.75}
"""The most of the time with Scrapy's own middleware, by places. With many, the CPU is the limit."""
NETWORK: dict[str, Any] = {"answer_secs": 0.08, "spread": True}
"""How long sites take to answer. Without it, the other core of the machine answers at once."""
QUEUES = (10_000, 50_000)
QUEUE_SECS = 15.0
DOWN, DOWN_SECS = 60_000, 60.0
MB = 1_000_000
SCRAPYS, NOTHING = "Scrapy's own", "obeys nothing"
MEMORY, SQLITE, REDIS = "ours, memory", "ours, SQLite (default)", "ours, Redis"
AGAIN = "ours, every site known"
LOOPS: dict[str, dict[str, Any]] = {
    "Twisted's own reactor": {"TWISTED_REACTOR": None},
    "no reactor": {"TWISTED_REACTOR_ENABLED": False},
}


class Crawls:
    """Runs crawls, each with a storage that nobody used before."""

    def __init__(self, folder: Path, server: RedisServer | None) -> None:
        self._folder = folder
        self._server = server
        self._count = 0

    @property
    def ours(self) -> list[str]:
        return [MEMORY, SQLITE] if self._server is None else [MEMORY, SQLITE, REDIS]

    def settings(self, name: str) -> dict[str, Any]:
        """Return those of one kind of crawl."""
        self._count += 1
        if name in (SCRAPYS, NOTHING):
            return {"ROBOTSTXT_OBEY": name == SCRAPYS}
        settings: dict[str, Any] = {"ADDONS": {"scrapy_koster.Addon": 500}}
        if name == MEMORY:
            settings["KOSTER_STORAGE"] = "scrapy_koster.storage.memory.MemoryStorage"
        elif name == REDIS:
            assert self._server is not None
            settings["KOSTER_STORAGE"] = "scrapy_koster.storage.redis.RedisStorage"
            settings["KOSTER_REDIS_URL"] = self._server.url()
            settings["KOSTER_REDIS_PREFIX"] = f"bench-{self._count}"
        else:
            settings["KOSTER_SQLITE_PATH"] = str(self._folder / f"{self._count}.sqlite3")
        return settings

    def run(
        self,
        web: HealthySites,
        urls: Sequence[str],
        settings: Mapping[str, Any],
        *,
        counts: bool = False,
        **how: Any,
    ) -> dict[str, Any]:
        """Return what one crawl cost, and what the sites saw of it.

        With *counts* its instructions are counted, which needs valgrind.
        """
        common = {
            "LOG_LEVEL": "CRITICAL",
            "TELNETCONSOLE_ENABLED": False,
            "CONCURRENT_REQUESTS": PLACES,
            "CONCURRENT_ITEMS": 1,
        }
        arguments = {"queued": False, "cpu_secs": None, "watched": False, **how}
        arguments |= {"urls": urls, "settings": {**common, **settings}}
        web.counts()
        out = self._folder / "counted"
        # With bytecode, as an installed package has: else each crawl compiles this one.
        environ = {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(
            [*(_counting(out) if counts else ()), sys.executable, str(ONE_CRAWL)],
            input=json.dumps(arguments),
            capture_output=True,
            text=True,
            check=True,
            env=environ,
        )
        found: dict[str, Any] = json.loads(done.stdout)
        if counts:
            found["instructions"] = int(out.read_text().rpartition("summary: ")[2])
        return found | web.counts()


def _counting(out: Path) -> list[str]:
    # The hashes of names are the same each time, and so are the dictionaries with them.
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no"]
    return ["env", "PYTHONHASHSEED=0", *valgrind, f"--cachegrind-out-file={out}"]


class Ratios(NamedTuple):
    """The quartiles of the ratios of paired rounds."""

    lower: float
    middle: float
    upper: float

    def __str__(self) -> str:
        return f"{self.middle:.2f} ({self.lower:.2f} to {self.upper:.2f})"


Rounds = Mapping[str, Sequence[Mapping[str, Any]]]


def ratios(rounds: Rounds, name: str, beside: str, key: str) -> Ratios:
    """Of each round that of *name*, with that of *beside* for 1."""
    pairs = zip(rounds[name], rounds[beside], strict=True)
    # A crawl that had no page in its time has none for the first.
    found = [inf if one[key] is None else one[key] / two[key] for one, two in pairs if two[key]]
    if len(found) < 2:
        return Ratios(*(found or [inf]) * 3)
    return Ratios(*quantiles(found, n=4, method="inclusive"))


def tables(rounds: int) -> Iterator[Table]:
    few = max(3, rounds // 3)
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        server = opened.enter_context(redis_server()) if which("redis-server") else None
        crawls = Crawls(folder, server)
        yield _healthy(crawls, rounds, "HTTP", network=True)
        yield _healthy(crawls, rounds, "HTTP")
        yield _healthy(crawls, rounds, "HTTP", real=False)
        yield _healthy(crawls, few, "HTTPS")
        for loop in LOOPS:
            yield _healthy(crawls, few, "HTTP", loop)
        for places, goal in SLOW_GOALS.items():
            yield _slow(crawls, few, places, goal)
        for sites in QUEUES:
            yield _queue(crawls, few, sites)
        yield _outage(crawls, 1)
        for pages in (2.5, 50.0):
            yield _known(crawls, few, pages, 1.10)


def _by_turns(names: Sequence[str], rounds: int, run: Callable[[str], dict[str, Any]]) -> Rounds:
    """Run each once a round, in an order that changes from round to round."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for number in range(rounds):
        turn = number // 2 % len(names)
        order = (*names[turn:], *names[:turn])
        for name in reversed(order) if number % 2 else order:
            found[name].append(run(name))
    return found


def _there_and_back(
    names: Sequence[str], rounds: int, run: Callable[[str], dict[str, Any]]
) -> Rounds:
    """Run each twice a round, in one order and in the reverse: a drift concerns all alike."""
    runs = _by_turns(names, 2 * rounds, run)
    return {
        name: [_mean(there, back) for there, back in zip(found[::2], found[1::2], strict=True)]
        for name, found in runs.items()
    }


def _mean(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    # Without a time-out every crawl has all pages, so nothing is None.
    return {name: (one[name] + two[name]) / 2 for name in one}


def _healthy(
    crawls: Crawls,
    rounds: int,
    protocol: str,
    loop: str = "asyncio",
    *,
    real: bool = True,
    network: bool = False,
) -> Table:
    names = [SCRAPYS, *crawls.ours]
    of_loop = LOOPS.get(loop, {})
    answers = NETWORK if network else {}
    with HealthySites(tls=protocol == "HTTPS", real=real, **answers) as web:
        urls = [web.url(site) for site in range(SITES)]
        found = _there_and_back(
            names,
            rounds,
            lambda name: crawls.run(web, urls, crawls.settings(name) | of_loop),
        )
    limits = {MEMORY: 1.10, SQLITE: 1.10, REDIS: 1.50}
    rows, unmet = [], []
    for name in names:
        cpu = ratios(found, name, SCRAPYS, "cpu_secs")
        first = ratios(found, name, SCRAPYS, "first_secs")
        first_cpu = ratios(found, name, SCRAPYS, "first_cpu_secs")
        connections = max(each["connections"] for each in found[name]) / SITES
        rows.append((name, str(cpu), str(first), str(first_cpu), f"{connections:.1f}"))
        if name != SCRAPYS and cpu.upper > limits[name]:
            unmet.append(f"{name}: at most {limits[name]} times the CPU time")
        if connections > 1:
            unmet.append(f"{name}: one connection a site")
    return Table(
        f"{SITES:,} healthy sites, a page each: {protocol}, {loop}"
        f"{'' if real else ', a robots.txt of four rules'}"
        f"{', answers as over a network' if network else ', answers at once'}",
        ("robots.txt", "CPU", "first page", "CPU until then", "connections a site"),
        rows,
        f"Times Scrapy's own middleware in the same round: the median of {rounds} rounds of two"
        f" crawls, and the quartiles. {PLACES} places; nothing is known of any site. Each has"
        f" {f'one of {corpus().name}' if real else 'the same short robots.txt'}.",
        unmet,
    )


def _slow(crawls: Crawls, rounds: int, places: int, goal: float) -> Table:
    names, common = [SCRAPYS, NOTHING, SQLITE], {"CONCURRENT_REQUESTS": places}
    with HealthySites(answer_secs=ANSWER_SECS) as web:
        urls = [web.url(site) for site in range(SLOW_SITES)]
        found = _by_turns(
            names, rounds, lambda name: crawls.run(web, urls, crawls.settings(name) | common)
        )
    rows = [
        (name, str(ratios(found, name, SCRAPYS, "secs")), str(ratios(found, name, NOTHING, "secs")))
        for name in names
    ]
    unmet = ratios(found, SQLITE, SCRAPYS, "secs").upper > goal
    return Table(
        f"{SLOW_SITES:,} sites that answer after {ANSWER_SECS} s, a page each, {places} places",
        ("robots.txt", "time, Scrapy's own = 1", "time, obeys nothing = 1"),
        rows,
        f"The median of {rounds} rounds, and the quartiles. A robots.txt takes no place.",
        [f"at most {goal} of Scrapy's own time"] if unmet else [],
    )


def _queue(crawls: Crawls, rounds: int, sites: int) -> Table:
    names = [SCRAPYS, MEMORY, SQLITE]
    with HealthySites() as web:
        urls = [web.url(site) for site in range(sites)]
        found = _by_turns(
            names,
            rounds,
            lambda name: crawls.run(
                web, urls, crawls.settings(name), queued=True, cpu_secs=QUEUE_SECS, watched=True
            ),
        )
    rows, unmet = [], []
    for name in names:
        first = ratios(found, name, SCRAPYS, "first_cpu_secs")
        pages = ratios(found, name, SCRAPYS, "pages")
        memory = ratios(found, name, SCRAPYS, "memory")
        ours = max(each["ours_held_secs"] for each in found[name])
        whole = max(each["scheduler_held_secs"] for each in found[name])
        longest = max(each["held_secs"] for each in found[name])
        rows.append(
            (
                *(name, str(first), str(pages), str(memory)),
                *(f"{secs * 1e3:.0f}" for secs in (ours, whole, longest)),
            )
        )
        if name == SCRAPYS:
            continue
        checks = {
            "the first page within 1.5 times": first.upper <= 1.5,
            "at least 0.65 of the pages": pages.lower >= 0.65,
            "never holds the loop for 100 ms": ours <= 0.1,
            "memory within 1.2 times": memory.upper <= 1.2,
        }
        unmet += [f"{name}: {goal}" for goal, met in checks.items() if not met]
    return Table(
        f"A queue of {sites:,} sites, enqueued before the start",
        (
            *("robots.txt", "CPU until the first page", f"pages in {QUEUE_SECS:.0f} s of CPU"),
            *("memory", "ours, ms", "next_request, ms", "loop held, ms"),
        ),
        rows,
        f"Times Scrapy's own middleware in the same round: the median of {rounds} rounds, and the"
        " quartiles. Milliseconds are of CPU time of the loop's thread, the longest of all rounds:"
        " of our code in one call of next_request, without garbage collections, which fall to"
        " whoever allocates next; of the call with Scrapy's queue; and of what the loop did in one"
        " go.",
        unmet,
    )


def _outage(crawls: Crawls, rounds: int) -> Table:
    kinds = {"healthy": HealthySites.url, "refuse connections": HealthySites.refused}
    with HealthySites() as web:
        found = _by_turns(
            list(kinds),
            rounds,
            lambda kind: crawls.run(
                web,
                [kinds[kind](web, site) for site in range(DOWN)],
                crawls.settings(SQLITE),
                queued=True,
                cpu_secs=DOWN_SECS,
                watched=True,
            ),
        )
    rows = [
        (
            kind,
            str(ratios(found, kind, "healthy", "memory")),
            f"{max(each['memory'] for each in found[kind]) / MB:,.0f}",
            f"{max(each['attempts'] for each in found[kind]):,}",
        )
        for kind in kinds
    ]
    unmet = ratios(found, "refuse connections", "healthy", "memory").upper > 1.5
    return Table(
        f"A queue of {DOWN:,} sites in an outage, after {DOWN_SECS:.0f} s of CPU time",
        ("the sites", "memory, healthy = 1", "MB", "attempts at once"),
        rows,
        "The default settings: KOSTER_MEMORY_BYTES is 64 MB.",
        ["memory within 1.5 times that with healthy sites"] if unmet else [],
    )


def _known(crawls: Crawls, rounds: int, pages: float, limit: float) -> Table:
    sites = round(5_000 / pages)
    with HealthySites(**NETWORK) as web:
        urls = [web.url(number % sites, number) for number in range(5_000)]
        known = crawls.settings(SQLITE)
        crawls.run(web, urls, known)
        settings = {NOTHING: crawls.settings(NOTHING), AGAIN: known}
        found = _there_and_back(
            [NOTHING, AGAIN], rounds, lambda name: crawls.run(web, urls, settings[name])
        )
    cpu = ratios(found, AGAIN, NOTHING, "cpu_secs")
    return Table(
        f"A second run: {len(urls):,} pages of {sites:,} sites, every robots.txt in the storage",
        ("robots.txt", "CPU"),
        [(NOTHING, "1.00"), (AGAIN, str(cpu))],
        f"Times a crawl that obeys nothing in the same round: the median of {rounds} rounds of two"
        " crawls, and the quartiles.",
        [f"at most {limit} times the CPU time"] if cpu.upper > limit else [],
    )
