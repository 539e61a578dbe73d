"""Times that can be compared: taken in one process, by turns."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import process_time


@dataclass(frozen=True)
class Times:
    """The CPU seconds of each round."""

    secs: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.secs)

    @property
    def spread(self) -> float:
        """The distance of the quartiles, as a part of the median."""
        ordered = sorted(self.secs)
        quarter = len(ordered) // 4
        return (ordered[-1 - quarter] - ordered[quarter]) / self.median

    def ratio(self, other: Times) -> float:
        """How many times as long the other takes: the median over the rounds."""
        return median(b / a for a, b in zip(self.secs, other.secs, strict=True))


def by_turns(jobs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Run each job once a round, in an order that changes from round to round."""
    secs: dict[str, list[float]] = {name: [] for name in jobs}
    names = list(jobs)
    for job in jobs.values():
        job()
    gc.collect()
    gc.freeze()
    try:
        for n in range(rounds):
            turn = n % len(names)
            for name in names[turn:] + names[:turn]:
                start = process_time()
                jobs[name]()
                secs[name].append(process_time() - start)
    finally:
        gc.unfreeze()
    return {name: Times(tuple(taken)) for name, taken in secs.items()}


def micros(secs: float) -> str:
    value = secs * 1e6
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
