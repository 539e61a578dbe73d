"""Storages of strangers that hang or return what is none: a miss, said once, and nothing more.

Each is in memory, and called in a thread like one that waits for a disk.
"""

from __future__ import annotations

import asyncio
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
from scrapy_koster.storage.port import Claimed

RULES = "User-agent: *\nCrawl-delay: 0.01\nDisallow: /secret\n"
NAN = math.nan
MANY = 10**400
"""No float is as large."""
COPY = Copy("http://h/robots.txt", 200, b"User-agent: *\nAllow: /\n", None, None, 1e9, 9e9)
FAILURE = Failure("HTTP 503", 1, since=1e9, asked=1e9, retry=9e9, stale=None)
METHODS = ("from_settings", "get", "put", "claim", "release", "visit", "close")
"""All that a crawl calls; `get` of Strange, since Shared is asked by its `claim`."""


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

    def put(self, site: Site, known: Any, owner: str | None = None) -> Any:
        return self._call("put", lambda: self._storage.put(site, known))

    def sites(self) -> Iterator[Any]:
        return self._storage.sites()

    def robots(self) -> list[str]:
        return self._storage.robots()

    def forget(self, site: Site) -> bool:
        return self._storage.forget(site)

    def close(self) -> Any:
        return self._call("close", self._storage.close)


class Shared(Strange):
    """The same with claims and visits."""

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Any:
        return self._call("claim", lambda: Claimed(None, 0.0))

    def release(self, site: Site, owner: str) -> Any:
        return self._call("release", lambda: None)

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> Any:
        return self._call("visit", lambda: 0.0)


class Released(Shared):
    """Another process learns each site between two claims of this one, which releases it."""

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Any:
        fetched = now - 100 if unless_known else now
        url = f"{site}/robots.txt"
        copy = Copy(url, 200, RULES.encode(), None, None, fetched, fetched + 50)
        return Claimed(copy, 0.0)


def kind_of(method: str) -> type[Strange]:
    """Return one of which a crawl calls *method*."""
    return {"get": Strange, "release": Released}.get(method, Shared)


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
        "KOSTER_DEFER_LIMIT_SECS": 2,
    }
    result = await crawl(urls=urls, settings=settings)
    assert sorted(result.fetched) == sorted(url for url in urls if "secret" not in url)
    assert sorted(url for url, _ in result.refused) == [url for url in sorted(urls) if "sec" in url]
    assert all("/secret" not in site.pages_asked for site in sites)
    assert storage.method in storage.called
    return result


def the_warning(result: Any) -> str:
    """Return the one that there is."""
    [line] = result.logged(logging.WARNING, "scrapy_koster.crawl.fetching.storage_calls")
    assert result.stats["koster/storage/error"] >= 1
    return str(line)


@pytest.mark.promise("docs/storage.md", "a storage that hangs is a miss and one warning")
@pytest.mark.real_time  # a thread that hangs holds time still
@pytest.mark.parametrize(
    "method",
    ["from_settings", "claim", pytest.param("visit", marks=pytest.mark.long), "close"],
)
async def test_that_hang(crawl: Crawl, server: Server, method: str) -> None:
    """A call, and the end of the crawl, wait for so long at most."""
    ends = Event()
    try:
        result = await obeyed(crawl, server, strange(kind_of(method), method, ends.wait))
    finally:
        ends.set()
    assert result.seconds < 20
    name = f"The{kind_of(method).__name__}"
    assert f"{name}: StorageError: a call has not ended within" in the_warning(result)


def raising(error: BaseException) -> Callable[[], Any]:
    def call() -> Any:
        raise error

    return call


@pytest.mark.parametrize(
    ("method", "error"),
    [
        *((method, KeyError(1)) for method in METHODS),
        ("claim", SystemExit()),
        ("claim", asyncio.CancelledError()),
    ],
)
async def test_that_raise(crawl: Crawl, server: Server, method: str, error: BaseException) -> None:
    result = await obeyed(crawl, server, strange(kind_of(method), method, raising(error)))
    assert f"The{kind_of(method).__name__}: " in the_warning(result)
    assert type(error).__name__ in the_warning(result)


WRONG = {
    "a copy of text": ("get", replace(COPY, body="User-agent: *")),  # type: ignore[arg-type]
    "a copy of no time": ("get", replace(COPY, expires=NAN)),
    "a failure without a time": ("get", replace(FAILURE, retry=None)),  # type: ignore[arg-type]
    "a copy of a number too long": ("get", replace(COPY, expires=MANY)),
    "a failure of a copy without end": ("get", replace(FAILURE, stale=replace(COPY, expires=MANY))),
    "a pair": ("get", (1, 2)),
    "a claim of nothing": ("claim", None),
    "a claim for no time": ("claim", Claimed(None, NAN)),
    "a claim of text": ("claim", Claimed(replace(COPY, body="x"), 0.0)),  # type: ignore[arg-type]
    "a visit at no time": ("visit", NAN),
    "a visit in words": ("visit", "soon"),
}


@pytest.mark.promise("docs/storage.md", "a storage that returns another type is a miss")
@pytest.mark.parametrize(("method", "returned"), WRONG.values(), ids=WRONG)
async def test_that_return_what_is_none(
    crawl: Crawl, server: Server, method: str, returned: object
) -> None:
    result = await obeyed(crawl, server, strange(kind_of(method), method, lambda: returned))
    assert f"The{kind_of(method).__name__}: " in the_warning(result)
    assert "returned" in the_warning(result)
