"""Faults of what a crawl stands on: disk, storage, clock, Redis, code of others."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from scrapy import Request, signals
from scrapy.exceptions import NotConfigured, StopDownload
from scrapy.robotstxt import RobotParser

from harness.redis_server import RedisServer, redis_server
from harness.server import Server, Site
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.redis import RedisStorage
from scrapy_koster.storage.sqlite import SQLiteStorage


@dataclass
class Stage:
    """Where a fault takes place."""

    server: Server
    sites: list[Site]
    folder: Path
    meanwhile: Callable[[], object] = lambda: None
    """What is done once all sites have been asked, before they answer."""
    at_end: ExitStack = field(default_factory=ExitStack)
    """What is done at the end."""

    @property
    def path(self) -> Path:
        return self.folder / "koster" / "robots.sqlite3"


Given: TypeAlias = Callable[[Stage], Mapping[str, Any]]


@dataclass(frozen=True)
class AroundFault:
    group: str
    name: str
    given: Given
    """The settings of a crawl that meets the fault."""
    warnings: int = 0
    """How many are logged at most; at least one where there may be any, unless `silent`."""
    silent: bool = False
    closed: bool = False
    """Whether no site can be visited."""

    @property
    def warned(self) -> str:
        if self.closed:
            return "no page is fetched; an error is logged"
        if not self.warnings:
            return "no warning"
        return "at most one warning" if self.silent else "one warning"


# The disk and the storage.


def _with(**settings: Any) -> Given:
    return lambda _stage: settings


def _sqlite(stage: Stage) -> Mapping[str, Any]:
    return {"KOSTER_SQLITE_PATH": str(stage.path)}


def _garbage(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is no database" * 1000)


def _file_of_garbage(stage: Stage) -> Mapping[str, Any]:
    _garbage(stage.path)
    return _sqlite(stage)


def _deleted(stage: Stage) -> Mapping[str, Any]:
    def delete() -> None:
        for each in stage.path.parent.iterdir():
            each.unlink()

    stage.meanwhile = delete
    return _sqlite(stage)


def _job_of_garbage(stage: Stage) -> Mapping[str, Any]:
    job = stage.folder / "job"
    _garbage(job / "koster-parked.sqlite3")
    return {"JOBDIR": str(job)}


class Full(SQLiteStorage):
    """There is no room for a long robots.txt in the file."""

    @classmethod
    def from_settings(cls, settings: Any) -> Any:
        storage = super().from_settings(settings)
        storage._connection.execute("PRAGMA max_page_count = 1")
        return storage


class Unconfigured(MemoryStorage):
    @classmethod
    def from_settings(cls, settings: Any) -> Any:
        raise NotConfigured("no luck")


# Redis.


def _redis(url: str) -> Mapping[str, Any]:
    return {"KOSTER_STORAGE": RedisStorage, "KOSTER_REDIS_URL": url}


def _redis_down(stage: Stage) -> Mapping[str, Any]:
    return _redis(f"redis://127.0.0.1:{stage.server.down().port}/0")


def _redis_hangs(stage: Stage) -> Mapping[str, Any]:
    own = stage.at_end.enter_context(redis_server())
    own.send(signal.SIGSTOP)
    stage.at_end.callback(own.send, signal.SIGCONT)
    return _redis(own.url())


def _redis_that_evicts(stage: Stage) -> Mapping[str, Any]:
    own = stage.at_end.enter_context(redis_server("--maxmemory-policy", "volatile-lru"))
    return {**_redis(own.url()), "KOSTER_CRAWL_DELAY": "obey"}


def _redis_meanwhile(harm: Callable[[RedisServer], object]) -> Given:
    def given(stage: Stage) -> Mapping[str, Any]:
        own = stage.at_end.enter_context(redis_server())
        stage.meanwhile = lambda: harm(own)
        return _redis(own.url())

    return given


def _flush(own: RedisServer) -> None:
    with own.client() as client:
        client.flushall()
        client.script_flush()


# The code of others.


class NoFile(RobotParser):
    """Takes the empty file that it is tried with at the start, and no other."""

    def __init__(self, body: bytes) -> None:
        if body:
            raise NotConfigured("this file is too odd")

    @classmethod
    def from_crawler(cls, crawler: object, robotstxt_body: bytes) -> NoFile:
        return cls(robotstxt_body)

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return True


class NoUrl(NoFile):
    """Reads any file, and cannot decide on any URL."""

    def __init__(self, body: bytes) -> None:
        pass

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        raise ZeroDivisionError


class RaisesOfRobots:
    """A middleware that fails at each robots.txt."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            raise ValueError


class StopsAll:
    """An extension that stops each download when its headers have come."""

    signal = signals.headers_received

    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        extension = cls()
        crawler.signals.connect(extension.stop, cls.signal)
        return extension

    def stop(self) -> None:
        raise StopDownload(fail=False)


_STORAGE, _REDIS, _CODE = "the storage", "Redis as the storage", "other code"
FAULTS = (
    AroundFault(_STORAGE, "its file is garbage", _file_of_garbage, 1),
    AroundFault(_STORAGE, "the disk is full", _with(KOSTER_STORAGE=Full), 1),
    AroundFault(_STORAGE, "is deleted during the crawl", _deleted, 1, silent=True),
    AroundFault(_STORAGE, "a class that is not configured", _with(KOSTER_STORAGE=Unconfigured), 1),
    AroundFault(_STORAGE, "the file of the JOBDIR is garbage", _job_of_garbage, 1),
    AroundFault(_REDIS, "is down", _redis_down, 1),
    AroundFault(_REDIS, "hangs", _redis_hangs, 1),
    AroundFault(_REDIS, 'may evict locks, KOSTER_CRAWL_DELAY = "obey"', _redis_that_evicts, 1),
    AroundFault(_REDIS, "is killed during the crawl", _redis_meanwhile(RedisServer.stop), 1),
    AroundFault(_REDIS, "loses its data during the crawl", _redis_meanwhile(_flush)),
    AroundFault(
        _CODE, "a parser that raises for every file", _with(KOSTER_PARSER=NoFile), closed=True
    ),
    AroundFault(
        _CODE, "a parser that raises for every URL", _with(KOSTER_PARSER=NoUrl), closed=True
    ),
    AroundFault(
        _CODE,
        'a middleware that raises an error for every robots.txt, KOSTER_UNAVAILABLE = "allow"',
        _with(DOWNLOADER_MIDDLEWARES={RaisesOfRobots: 50}, KOSTER_UNAVAILABLE="allow"),
        closed=True,
    ),
    AroundFault(
        _CODE,
        'a handler of `headers_received` that stops every download, KOSTER_UNAVAILABLE = "allow"',
        _with(EXTENSIONS={StopsAll: 0}, KOSTER_UNAVAILABLE="allow"),
        closed=True,
    ),
)
