"""Faults while the visits to a host are kept apart (KOSTER_CRAWL_DELAY)."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, TypeAlias

from harness.crawling import RecordingSpider
from harness.faults_around import DAYS, Stage, _jumping, _redis_meanwhile, _with
from harness.replies import Hang, Reply
from harness.server import Site
from scrapy_koster import KosterRobotParser, RobotsForbidden
from scrapy_koster.storage import StorageError
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.sqlite import SQLiteStorage

DELAY_SECS = 0.15
HELD_SECS = 1.0
"""A storage that worked before is waited for, so long."""
LEAST = 0.7
"""Of the delay, between two visits: a busy machine sees one late, and then the next too early."""
PAGES = ("/a", "/b", "/hard", "/c")
SECRET = "/secret"
ROBOTS = f"User-agent: *\nCrawl-delay: {DELAY_SECS:g}\nDisallow: {SECRET}\n"
SETTINGS: Mapping[str, Any] = {
    "KOSTER_CRAWL_DELAY": "obey",
    "KOSTER_CRAWL_DELAY_MAX_SECS": DELAY_SECS * 2,
    "KOSTER_TIMEOUT_SECS": 2,
    "KOSTER_DEFER_LIMIT_SECS": HELD_SECS,
    "DOWNLOAD_TIMEOUT": 0.5,
    "RETRY_ENABLED": False,
}


Given: TypeAlias = Callable[[Stage], AbstractContextManager[Mapping[str, Any]]]
_as_ever = _with()


@dataclass(frozen=True)
class DelayFault:
    name: str
    given: Given = _as_ever
    """The settings of a crawl that meets the fault, up to the end of the block."""
    reply: Reply = Reply(body="hard")  # noqa: RUF009  # it is not changed
    """What `/hard` answers."""
    secs: float = DELAY_SECS
    """How far apart visits have to be."""
    is_held: bool = False
    """Whether no visit begins for HELD_SECS, because others may visit the host."""
    warnings: int = 0
    """How many are logged; of a fault that is `silent`, at most."""
    silent: bool = False
    error: str = ""
    """What the log has an error of."""
    then: str = "the delay is kept"
    group: str = "the delay of a host"

    @property
    def promised(self) -> str:
        if self.error:
            return f"{self.then}; the log has the error"
        said = "; at most one warning" if self.silent else "; one warning"
        return f"{self.then}{said if self.warnings else ''}"

    def check(self, site: Site, spider: RecordingSpider) -> None:
        """All that was allowed was asked for once, each in its time; the rest was refused."""
        hard = Counter(["/hard"])
        assert Counter(site.pages_asked) == Counter(PAGES)
        times = sorted(asked.at for asked in site.requests)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert min(gaps) >= self.secs * LEAST, gaps
        assert max(gaps) >= HELD_SECS * LEAST or not self.is_held, gaps
        fetched = Counter(url.removeprefix(site.url("")) for url in spider.fetched)
        assert fetched in (Counter(PAGES), Counter(PAGES) - hard)
        refused = [error for url, error in spider.refused if not url.endswith("/hard")]
        assert [type(error) for error in refused] == [RobotsForbidden]
        assert fetched.total() + len(spider.refused) == len(PAGES) + 1


Visit: TypeAlias = Callable[..., float]


def _visiting(visit: Visit) -> Given:
    """A storage that somebody else wrote, or that fails."""

    class Storage(MemoryStorage):
        def visit(self, host: str, **how: Any) -> float:
            return visit(super(), host, **how)

    return _with(KOSTER_STORAGE=Storage)


def _raises(error: Exception) -> Visit:
    def visit(*_: Any, **how: Any) -> float:
        raise error

    return visit


def _leaving(stage: Stage) -> AbstractContextManager[Mapping[str, Any]]:
    """A storage that keeps the first visits, and none after."""
    kept = count()

    def visit(storage: Any, host: str, **how: Any) -> float:
        if next(kept) > 3:
            raise StorageError("gone")
        return float(storage.visit(host, **how))

    return _visiting(visit)(stage)


def _deleted(stage: Stage) -> AbstractContextManager[Mapping[str, Any]]:
    stage.meanwhile = lambda: shutil.rmtree(stage.path.parent)
    return _with(KOSTER_STORAGE=SQLiteStorage, KOSTER_SQLITE_PATH=str(stage.path))(stage)


class Fails(KosterRobotParser):
    """Its method for the lines fails."""

    def lines(self, robot: Any, /, *fields: bytes) -> Any:
        raise ZeroDivisionError


_HELD = "no visit begins for KOSTER_DEFER_LIMIT_SECS, then the delay is kept"
_MOST = "the delay is KOSTER_CRAWL_DELAY_MAX_SECS"
_READING = "Error while reading the delay"
FAULTS = (
    DelayFault("the storage raises", _visiting(_raises(StorageError("gone"))), warnings=1),
    DelayFault(
        "the storage raises in mid-crawl",
        _leaving,
        is_held=True,
        warnings=1,
        then=_HELD,
    ),
    DelayFault(
        "the folder of the storage is deleted in mid-crawl", _deleted, warnings=1, silent=True
    ),
    DelayFault(
        "Redis is killed in mid-crawl",
        _redis_meanwhile(lambda own: own.stop()),
        is_held=True,
        warnings=1,
        then=_HELD,
    ),
    DelayFault("the clock jumps 10 days ahead in mid-crawl", _jumping(DAYS)),
    DelayFault("the clock jumps 10 days back in mid-crawl", _jumping(-DAYS)),
    DelayFault(
        "a page that hangs",
        reply=Hang(),
        then="the next visit begins when DOWNLOAD_TIMEOUT has passed",
    ),
    DelayFault(
        "a parser whose `lines` raises",
        _with(KOSTER_PARSER=Fails),
        secs=DELAY_SECS * 2,
        error=_READING,
        then=_MOST,
    ),
)
