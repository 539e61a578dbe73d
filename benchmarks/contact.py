"""(f): what the first contact with a site costs: to claim it, and to store it."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any

from corpus import corpus
from harness.redis_server import RedisServer, redis_server
from harness.storages import Place
from real_files import CORPUS
from report import Table

from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage import Claiming, Storage

CONTACTS = 2_000
AT_ONCE = 8
SITES = 100_000
CPU_MAX_US = 500
SITE_MAX_BYTES = 850
NAMES = {"memory": "memory", "sqlite": "one SQLite file", "redis": "Redis"}
LIFE_SECS = 604_800.0


def tables(rounds: int) -> Iterator[Table]:
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory())
        server = opened.enter_context(redis_server()) if which("redis-server") else None
        yield _contacts(max(3, rounds // 5), Path(folder), server)
        if server is not None:
            yield _sizes(server)


def _contacts(rounds: int, folder: Path, server: RedisServer | None) -> Table:
    known = _copies()
    rows, unmet = [], []
    for name in NAMES if server else [name for name in NAMES if name != "redis"]:
        place = Place(name, str(folder / "robots.sqlite3"), memory_bytes=64_000_000)
        if server is not None:
            place = replace(place, redis_url=server.url())
        with closing(place.open()) as storage:
            found = [_contact(storage, known, number) for number in range(rounds)]
        cpu, secs = (median(each) for each in zip(*found, strict=True))
        rows.append([NAMES[name], f"{cpu:,.0f}", f"{secs:,.0f}"])
        if cpu > CPU_MAX_US:
            unmet.append(f"{NAMES[name]}: {cpu:,.0f} µs of CPU, at most {CPU_MAX_US}")
    return Table(
        title=f"The first contact with a site: claimed and stored, {AT_ONCE} at a time",
        head=["storage", "µs of CPU", "µs that pass"],
        rows=rows,
        note=f"Of the process that crawls, its threads included: median of {rounds} rounds of"
        f" {CONTACTS:,} sites. At most {CPU_MAX_US} µs of CPU is the goal.",
        unmet=unmet,
    )


def _contact(storage: Storage, known: list[CachedRobots], number: int) -> tuple[float, float]:
    """Return the CPU and the time of one contact, in microseconds."""
    sites = [Site("http", f"{number}-{n}.example", 80) for n in range(CONTACTS)]
    began, cpu = time.perf_counter(), time.process_time()
    asyncio.run(_all(storage, sites, known))
    used, passed = time.process_time() - cpu, time.perf_counter() - began
    return used / CONTACTS * 1e6, passed / CONTACTS * 1e6


async def _all(storage: Storage, sites: list[Site], known: list[CachedRobots]) -> None:
    async def use(call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        if storage.blocking:
            await asyncio.to_thread(call, *arguments, **named)
        else:
            call(*arguments, **named)

    async def some(first: int) -> None:
        for n in range(first, len(sites), AT_ONCE):
            copy = known[n % len(known)]
            if isinstance(storage, Claiming):
                claim = {"now": time.time(), "secs": 35.0, "unless_known": True}
                await use(storage.claim, sites[n], "worker", **claim)
                await use(storage.put, sites[n], copy, "worker")
            else:
                await use(storage.get, sites[n])
                await use(storage.put, sites[n], copy)

    await asyncio.gather(*(some(first) for first in range(AT_ONCE)))


def _sizes(server: RedisServer) -> Table:
    with server.client() as client:
        client.flushall()
        place = Place("redis", "", redis_url=server.url())
        before = client.info("memory")["used_memory"]
        known, files = _copies(), corpus()
        with closing(place.open()) as storage:
            for n in range(SITES):
                copy = known[n % len(known)]
                storage.put(Site("https", f"www.site-{n}.example", 443), copy)
        size = (client.info("memory")["used_memory"] - before) / SITES
    raw = sum(len(file.body) for file in files.files) / len(files.files)
    return Table(
        title=f"{SITES:,} sites in Redis",
        head=["", "octets of a site"],
        rows=[
            ["its robots.txt", f"{raw:,.0f}"],
            ["in the memory of Redis, keys and all", f"{size:,.0f}"],
        ],
        note=f"Each with one of {files.name}. Of real files: at most {SITE_MAX_BYTES}.",
        # Files that are made of words by chance have less to compress.
        unmet=[f"{size:,.0f} octets"] if size > SITE_MAX_BYTES and CORPUS.exists() else [],
    )


def _copies() -> list[CachedRobots]:
    now = time.time()
    return [
        CachedRobots(
            url="https://www.site-1.example/robots.txt",
            status=200,
            body=file.body,
            etag='"5f3a-5e0b2c8d4a1c0"',
            last_modified="Tue, 15 Nov 2022 12:45:26 GMT",
            fetched=now + n,
            expires=now + n + LIFE_SECS,
        )
        for n, file in enumerate(corpus().files)
    ]
