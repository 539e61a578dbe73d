"""Random crawls by seed: `make random-crawl`, or `python -m random_crawls --help` in tests/."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import asdict
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from random_crawls.checks import faults
from random_crawls.plan import draw
from random_crawls.run import Course, Forks, crawl
from random_crawls.seeds import BROKE


def tell(course: Course) -> None:
    """Print the plan, and then, by time, what the server, the spiders and the log saw."""
    for name, value in asdict(course.plan).items():
        for each in value if name in {"sites", "pages", "runs"} else [value]:
            print(f"{name}: {json.dumps(each)}")
    lines = [(at, f"event of run {run}") for run, at in course.signals.items()]
    for visit in course.visits:
        took = f"{visit.status} at +{visit.ended - visit.at:.3f}" if visit.ended else "no answer"
        lines.append((visit.at, f"server  site {visit.site} {visit.path}: {took}"))
    for worker in course.workers:
        lines.append((worker.ended, f"run {worker.run} ended: {worker.status}"))
        lines += [(each.pop("at"), f"spider  {json.dumps(each)}") for each in worker.events]
    for at, line in sorted(lines):
        print(f"{at - min(lines)[0]:8.3f} {line}")
    print(*(f"log of run {worker.run}:\n{worker.text}" for worker in course.workers))


async def one(seed: int, forks: Forks, *, told: bool = False) -> list[str]:
    """Run one seed, print which promises broke, and return them."""
    plan, began = draw(seed), time.monotonic()
    for _ in range(3):  # if the machine was too busy, again
        with TemporaryDirectory(prefix="random-crawl-") as folder:
            course = await crawl(plan, Path(folder), forks)
        found, unsure = faults(course)
        if found or not unsure:
            break
    if told:
        tell(course)
    secs = time.monotonic() - began
    unsure = [f"no verdict, this machine is too busy: {name}" for name in unsure]
    print(
        f"{seed} {plan.shape} {secs:.1f} s", *(found + unsure or ["ok"]), sep="\n    ", flush=True
    )
    return found


async def many(seeds: list[int], forks: Forks, jobs: int) -> bool:
    """Run these seeds, so many at a time, and those that broke once more, one at a time.

    Returns whether one broke twice.
    """
    places, broken = asyncio.Semaphore(jobs), list[int]()

    async def run(seed: int) -> None:
        async with places:
            if await one(seed, forks):
                broken.append(seed)

    await asyncio.gather(*map(run, seeds))
    print(f"{len(broken)} of {len(seeds)} seeds broke:", *sorted(broken))
    twice = [seed for seed in sorted(broken) if await one(seed, forks)]
    print(f"{len(twice)} of them broke twice:", *twice)
    return bool(twice)


def seeds_of(text: str) -> list[int]:
    """Return the seeds of "0-99", of "3,5", or of "today": 200, and all that broke before."""
    day = f"{date.today():%Y%m%d}"  # noqa: DTZ011
    parts = [f"{day}000-{day}199", *map(str, BROKE)] if text == "today" else text.split(",")
    print("seeds", ",".join(parts))
    ends = [[int(end) for end in part.split("-")] for part in parts]
    return [seed for each in ends for seed in range(each[0], each[-1] + 1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed, and tell it step by step")
    parser.add_argument("--seeds", default="today", help=seeds_of.__doc__)
    parser.add_argument("--jobs", type=int, default=4, help="how many at a time")
    options = parser.parse_args()
    with Forks() as forks:
        if options.seed is not None:
            return bool(asyncio.run(one(options.seed, forks, told=True)))
        return asyncio.run(many(seeds_of(options.seeds), forks, options.jobs))


if __name__ == "__main__":
    sys.exit(main())
