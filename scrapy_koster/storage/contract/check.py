"""A check of the contract, and what all of them use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from threading import Barrier
from typing import Any, TypeVar

from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.port import Storage, StorageError

_F = TypeVar("_F", bound=Callable[..., None])
_T = TypeVar("_T")

A = Site("http", "a.example", 80)
B = Site("http", "b.example", 80)
COPY = Copy(
    url="http://www.a.example/robots.txt",
    status=200,
    body=b"User-agent: *\nDisallow: /\n",
    etag='W/"1"',
    last_modified="Tue, 15 Nov 1994 12:45:26 GMT",
    fetched=1000.25,
    expires=605800.25,
)
NEWER = replace(COPY, body=b"", fetched=1001.25)
FAILURE = Failure(
    reason="503 Service Unavailable",
    attempts=3,
    since=2000.0,
    asked=2030.5,
    retry=2070.75,
    stale=None,
)
THREADS = 8
ROUNDS = 25
SECS = 30.0
BOUND_SECS = 60.0
SLOW_SECS = 5.0
"""What a slow machine may take between two calls."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a storage promises: call it with what opens the storage."""

    run: Callable[..., None]
    """Takes two storages of one place, and the case."""
    case: tuple[Any, ...] = ()

    def __call__(self, opens: Callable[[], Storage]) -> None:
        """Run it; raises AssertionError if the promise is not kept."""
        with ExitStack() as opened:
            one, two = (opened.enter_context(closing(opens())) for _ in range(2))
            self.run(one, two, *self.case)


class Checks(dict[str, Check]):
    """Checks by name."""

    def add(self, run: _F) -> _F:
        """Add a check that is a function of two storages."""
        self[run.__name__] = Check(run)
        return run

    def each(self, cases: Mapping[str, Any]) -> Callable[[_F], _F]:
        """Add a check for each of the *cases*, which is the third argument."""

        def add(run: _F) -> _F:
            self.update({f"{run.__name__}: {name}": Check(run, (cases[name],)) for name in cases})
            return run

        return add


def fails(call: Callable[[], object]) -> None:
    """Raise AssertionError unless it raises StorageError."""
    try:
        call()
    except StorageError:
        return
    raise AssertionError("no StorageError was raised")


def in_threads(call: Callable[[int, Barrier], _T]) -> list[_T]:
    """Call *call* in eight threads, each with its number and a barrier for all."""
    together = Barrier(THREADS, timeout=BOUND_SECS)
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(call, thread, together) for thread in range(THREADS)]
        return [future.result(timeout=BOUND_SECS) for future in futures]
