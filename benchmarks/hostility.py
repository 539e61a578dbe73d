"""What the files that mean harm cost, against an ordinary one of the same size."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from statistics import median

from harness.hostile import HOSTILE, harmless
from report import Table
from timing import by_turns

from scrapy_koster.protocol.reading import RobotsTxt

SIZE = 512_000
URL = "http://www.fict.org/" + "a" * 200


def tables(rounds: int) -> Iterator[Table]:
    bodies = {"harmless": harmless(SIZE)} | {kind: make(SIZE) for kind, make in HOSTILE.items()}
    times = by_turns({kind: _first(body) for kind, body in bodies.items()}, max(3, rounds // 2))
    ordinary = times["harmless"]
    slower = {kind: ordinary.ratio(of) for kind, of in times.items()}
    rows = [
        (kind, f"{times[kind].median * 1e3:.1f}", f"{slower[kind]:.2f}", *_memory(body))
        for kind, body in bodies.items()
    ]
    worst = max(slower, key=slower.__getitem__)
    yield Table(
        f"Hostile files of {SIZE // 1000} kB: parse and first decision",
        ("", "ms", "times harmless", "peak MB", "kept MB"),
        rows,
        f"Median of the kinds: {median(slower.values()):.2f} times the harmless one.",
        [] if slower[worst] <= 20 else [f"at most 20 times: {worst} {slower[worst]:.1f}"],
    )


def _first(body: bytes) -> Callable[[], bool]:
    return lambda: RobotsTxt(body).allowed(URL, "figtree")


def _memory(body: bytes) -> tuple[str, str]:
    tracemalloc.start()
    try:
        robots = RobotsTxt(body)
        robots.allowed(URL, "figtree")
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return f"{peak / 1e6:.1f}", f"{(kept + len(body)) / 1e6:.1f}"
