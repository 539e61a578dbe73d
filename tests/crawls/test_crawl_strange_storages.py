"""Storages of strangers that hang or return what is none: a miss, said once, and nothing more.

Each is in memory, and called in a thread like one that waits for a disk.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event
from typing import Any, ClassVar

import pytest
from harness.crawling import Crawl
from harness.server import Server

from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.port import Claimed, StorageError

RULES = "User-agent: *\nCrawl-delay: 0.01\nDisallow: /secret\n"
NAN = math.nan
COPY = Copy("http://h/robots.txt", 200, b"User-agent: *\nAllow: /\n", None, None, 1e9, 9e9)
FAILURE = Failure("HTTP 503", 1, since=1e9, asked=1e9, retry=9e9, stale=None)
METHODS = ("from_settings", "put", "claim", "visit", "close")  # get is that of Strange


class Strange:
    """A storage whose *method* does something else."""

    method: ClassVar[str]
    does: ClassVar[Callable[[], Any]]
    called: ClassVar[list[str]]
    blocking = True

    def __init__(self) -> None:
        self._storage = MemoryStorage(100)

    @classmethod
    def from_settings(cls, _settings: Any) -> Strange:
        made = cls()
        return cls._call("from_settings", lambda: made)  # type: ignore[no-any-return]

    @classmethod
    def _call(cls, name: str, call: Callable[[], Any]) -> Any:
        cls.called.append(name)
        return cls.does() if name == cls.method else call()

    def get(self, site: Site) -> Any:
        return self._call("get", lambda: self._storage.get(site))

    def put(self, site: Site, known: Any, owner: str | None = None) -> None:
        self._call("put", lambda: self._storage.put(site, known))

    def sites(self) -> Iterator[Any]:
        return self._storage.sites()

    def forget(self, site: Site) -> bool:
        return self._storage.forget(site)

    def close(self) -> None:
        self._call("close", self._storage.close)


class Shared(Strange):
    """The same with claims and visits."""

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Any:
        return self._call("claim", lambda: Claimed(None, 0.0))

    def release(self, site: Site, owner: str) -> None:
        self._call("release", lambda: None)

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> Any:
        return self._call("visit", lambda: 0.0)


def strange(kind: type[Strange], method: str, does: Callable[[], Any]) -> type[Strange]:
    given = {"method": method, "does": staticmethod(does), "called": []}
    return type(f"The{kind.__name__}", (kind,), given)


async def obeyed(crawl: Crawl, server: Server, storage: type[Strange]) -> Any:
    """Crawl three sites; nothing is lost and nothing leaks. Return the result."""
    sites = [server.site(host=f"127.0.0.{n}") for n in (2, 3, 4)]
    for site in sites:
        site.robots = RULES
    urls = [site.url(path) for site in sites for path in ("/1", "/secret", "/2")]
    settings = {
        "KOSTER_STORAGE": storage,
        "KOSTER_TIMEOUT_SECS": 1,
        "KOSTER_CRAWL_DELAY": "obey",
    }
    result = await crawl(urls=urls, settings=settings)
    assert sorted(result.fetched) == sorted(url for url in urls if "secret" not in url)
    assert sorted(url for url, _ in result.refused) == [url for url in sorted(urls) if "sec" in url]
    assert all("/secret" not in site.pages_asked for site in sites)
    assert storage.method in storage.called
    return result


@pytest.mark.parametrize("method", METHODS)
async def test_that_hang(crawl: Crawl, server: Server, method: str) -> None:
    """A call, and the end of the crawl, wait for so long at most."""
    ends = Event()
    try:
        storage = strange(Shared, method, ends.wait)
        result = await obeyed(crawl, server, storage)
    finally:
        ends.set()
    assert result.seconds < 20
    said = result.logged(logging.WARNING, "scrapy_koster.crawl.fetching.storage_breaker")
    [line] = said
    assert "TheShared: StorageError: a call has not ended within" in line
    assert result.stats["koster/storage/error"] >= 1


async def test_that_hangs_with_get_alone(crawl: Crawl, server: Server) -> None:
    ends = Event()
    try:
        result = await obeyed(crawl, server, strange(Strange, "get", ends.wait))
    finally:
        ends.set()
    assert result.seconds < 20


def raising(error: BaseException) -> Callable[[], Any]:
    def call() -> Any:
        raise error

    return call


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("error", [StorageError("no"), KeyError(1), MemoryError()], ids=repr)
async def test_that_raise(crawl: Crawl, server: Server, method: str, error: BaseException) -> None:
    await obeyed(crawl, server, strange(Shared, method, raising(error)))


WRONG = {
    "a copy of text": ("get", replace(COPY, body="User-agent: *")),  # type: ignore[arg-type]
    "a copy of nothing": ("get", replace(COPY, body=None)),  # type: ignore[arg-type]
    "a copy without a URL": ("get", replace(COPY, url=b"/")),  # type: ignore[arg-type]
    "a copy of no time": ("get", replace(COPY, expires=NAN)),
    "a copy of a time in words": ("get", replace(COPY, fetched="now")),  # type: ignore[arg-type]
    "a failure without a time": ("get", replace(FAILURE, retry=None)),  # type: ignore[arg-type]
    "a failure of no time": ("get", replace(FAILURE, since=NAN)),
    "a failure with a text": ("get", replace(FAILURE, stale="x")),  # type: ignore[arg-type]
    "a pair": ("get", (1, 2)),
    "a truth": ("get", True),
    "a claim of nothing": ("claim", None),
    "a claim for no time": ("claim", Claimed(None, NAN)),
    "a claim for ever": ("claim", Claimed(None, math.inf)),
    "a claim for less than none": ("claim", Claimed(None, -1.0)),
    "a claim for words": ("claim", Claimed(None, "1")),  # type: ignore[arg-type]
    "a claim of text": ("claim", Claimed(replace(COPY, body="x"), 0.0)),  # type: ignore[arg-type]
    "a visit at no time": ("visit", NAN),
    "a visit never": ("visit", math.inf),
    "a visit in words": ("visit", "soon"),
}


@pytest.mark.parametrize(("method", "returned"), WRONG.values(), ids=WRONG)
async def test_that_return_what_is_none(
    crawl: Crawl, server: Server, method: str, returned: object
) -> None:
    kind = Strange if method == "get" else Shared
    result = await obeyed(crawl, server, strange(kind, method, lambda: returned))
    [line] = result.logged(logging.WARNING, "scrapy_koster.crawl.fetching.storage_breaker")
    assert f"The{kind.__name__}: " in line
    assert "returned" in line
