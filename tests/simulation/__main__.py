"""python -m simulation --seed N prints one history; --seeds A-B runs many."""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

from simulation.history import History
from simulation.machine import machine

_AT_ONCE = 50


def told(history: History) -> str:
    lines = [f"{when:9.3f} {who:3} {what} {of}" for when, who, what, of in history.told]
    said = history.watch.found or "every invariant holds"
    return "\n".join([history.described(), *lines, f"seed {history.seed}: {said}"])


def run(seeds: Iterable[int]) -> tuple[list[tuple[int, str, str]], Counter[str], float]:
    """Run histories; return those with a broken invariant, what there was, and CPU seconds."""
    began = time.process_time()
    broken, seen = [], Counter[str]()
    with machine() as simulated:
        for seed in seeds:
            history = simulated.run(seed)
            seen.update(history.counts())
            if (found := history.watch.found) is not None:
                broken.append((seed, found.invariant, str(found)))
            if not seed % 20:
                gc.collect()
    return broken, seen, time.process_time() - began


def _span(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="print the history of this seed")
    parser.add_argument("--seeds", type=_span, default=range(100_000), help="FIRST-LAST")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.seed is not None:
        with machine() as simulated:
            history = simulated.run(options.seed)
        print(told(history))
        return history.watch.found is not None
    began, cpu = time.monotonic(), 0.0
    chunks = [options.seeds[at : at + _AT_ONCE] for at in range(0, len(options.seeds), _AT_ONCE)]
    kinds: Counter[str] = Counter()
    total: Counter[str] = Counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for broken, seen, secs in pool.map(run, chunks):
            cpu += secs
            total += seen
            for seed, invariant, said in broken:
                kinds[invariant] += 1
                if kinds[invariant] <= 10:
                    print(f"seed {seed}: {said[:1000]}", flush=True)
    for what, many in sorted(total.items()):
        print(f"{many:10} {what}")
    for invariant, many in kinds.items():
        print(f"BROKEN in {many} histories: {invariant}")
    print(
        f"{len(options.seeds)} histories, {kinds.total()} broken: {time.monotonic() - began:.0f} s,"
        f" {cpu:.0f} s CPU, {1000 * cpu / len(options.seeds):.1f} ms a history"
    )
    return bool(kinds)


if __name__ == "__main__":
    sys.exit(main())
