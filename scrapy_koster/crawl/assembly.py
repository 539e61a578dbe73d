"""The one place that builds the objects of a crawl, and hands each of them its collaborators.

Scrapy builds components one by one, in an order of its own, and gives each the crawler alone. So
the first of them has everything built, and the others find it by their crawler.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy_koster.crawl.clock import clock_of
from scrapy_koster.crawl.config import config_of
from scrapy_koster.crawl.engine.private import Engine, belonging
from scrapy_koster.crawl.events import Events
from scrapy_koster.crawl.fetching.archiver import Archiver, info_of
from scrapy_koster.crawl.fetching.examiner import Examiner
from scrapy_koster.crawl.fetching.fetcher import Fetcher
from scrapy_koster.crawl.fetching.lookahead import LookaheadLimit
from scrapy_koster.crawl.fetching.retriever import Retriever
from scrapy_koster.crawl.fetching.storage_calls import StorageCalls
from scrapy_koster.crawl.finish import Finish
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.messages.log import Log, ServerLog
from scrapy_koster.crawl.messages.stats import Stats
from scrapy_koster.crawl.messages.summary import Summary
from scrapy_koster.crawl.messages.urlsseen import UrlsSeen
from scrapy_koster.crawl.pacing.delays import Delays
from scrapy_koster.crawl.pacing.pacer import Pacer
from scrapy_koster.crawl.pages.stated import Stated
from scrapy_koster.crawl.parking.inner import folder_of
from scrapy_koster.crawl.parking.parked_file import ParkedFile
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
from scrapy_koster.crawl.replaying.replay import (
    LastCopies,
    NoFetch,
    QuietAnnouncer,
    Replay,
    is_replay,
    policy_of_replay,
)
from scrapy_koster.crawl.robot import Robot, copies_of
from scrapy_koster.crawl.site_records import SiteRecords
from scrapy_koster.crawl.sitemaps import Sitemaps
from scrapy_koster.crawl.sites import NothingParked, Sites

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.sites import Parked
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.storage.port import Storage


@dataclass(frozen=True)
class Assembly:
    """The objects of one crawl that Scrapy's components are made of."""

    config: Config
    clock: Clock
    engine: Engine
    stats: Stats
    robot: Robot
    events: Events
    announcer: Announcer
    seen: UrlsSeen
    finish: Finish
    sitemaps: Sitemaps
    sites: Sites
    pacer: Pacer | None
    """None if the crawl keeps no delays."""
    parked: ParkedRequests
    replay: Replay | None
    stated: Stated
    folder: Path | None
    """The JOBDIR, if the inner scheduler keeps its requests there."""

    @property
    def is_replay(self) -> bool:
        """Whether pages come out of the HTTP cache alone, and no site is asked."""
        return self.replay is not None and self.replay.is_on


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a crawl is to have in place of what is built for it: a test or a benchmark says so."""

    config: Config | None = None
    chance: Callable[[], float] = random.random
    """Returns numbers from 0 to 1."""
    records: Callable[[int, Callable[[SiteState], bool]], SiteRecords] = SiteRecords
    fetch: Fetcher | None = None
    fetcher: type[Fetcher] = Fetcher
    """The class of it, where *fetch* is None."""
    lookahead: Callable[[Clock, Callable[[], object]], LookaheadLimit] | None = None
    """Given the function to call when there is room for more sites."""
    parked: Callable[..., ParkedRequests] = ParkedRequests
    parked_file: Callable[[Crawler, Path | None], ParkedFile] = ParkedFile


def assembly_of(crawler: Crawler, parts: Parts | None = None) -> Assembly:
    """Return the objects of the crawl of *crawler*; ValueError if a setting is wrong.

    They are built when they are first asked for. *parts* are of no effect later.
    """
    return belonging(crawler, Assembly, lambda: _assembled(crawler, parts or Parts()))


def _assembled(crawler: Crawler, parts: Parts) -> Assembly:
    config = parts.config or config_of(crawler)
    clock, engine, stats = clock_of(crawler), Engine(crawler), Stats(crawler.stats)
    robot, events = Robot(crawler, config), Events(crawler)
    announcer = announcer_of(crawler, config)
    store = storage_of(crawler, config)
    archiver = archiver_of(crawler, config, robot.name)
    folder = folder_of(config.fallback_scheduler, crawler.settings)

    # Sites and those whom it tells know each other: these find it when they are called.
    def ask_for(state: SiteState, request: Request) -> None:
        sites.ask_for(state, request)

    def forget(state: SiteState) -> bool:
        return sites.forget(state)

    records = parts.records(config.memory_sites, forget)
    file = parts.parked_file(crawler, folder)
    parked = parts.parked(crawler, file=file, engine=engine, ask_for=ask_for)
    pacer = _pacer(crawler, config, robot, records, store, parked=parked)
    sites = build_sites(
        crawler,
        config,
        announcer,
        fetcher=parts.fetch
        or parts.fetcher(
            crawler,
            config,
            stats,
            clock,
            needs_turn=None if pacer is None else pacer.holds_redirect,
        ),
        store=store,
        records=records,
        chance=parts.chance,
        lookahead=parts.lookahead,
        examiner=Examiner(robot, events),
        archiver=archiver,
        parked=parked,
        pacer=pacer,
        engine=engine,
    )
    replay = _replay(crawler, config) if is_replay(crawler.settings) else None
    log = _log(crawler, Sitemaps)
    return Assembly(
        config=config,
        clock=clock,
        engine=engine,
        stats=stats,
        robot=robot,
        events=events,
        announcer=announcer,
        seen=UrlsSeen(),
        finish=Finish(crawler, config),
        sitemaps=Sitemaps(config, log, clock, sites=sites, robot=robot, replay=replay),
        sites=sites,
        pacer=pacer,
        parked=parked,
        replay=replay,
        stated=Stated(),
        folder=folder,
    )


def _pacer(
    crawler: Crawler,
    config: Config,
    robot: Robot,
    records: SiteRecords,
    store: StorageCalls,
    *,
    parked: ParkedRequests,
) -> Pacer | None:
    if not config.pace.obeys:
        return None
    clock, engine, stats = clock_of(crawler), Engine(crawler), Stats(crawler.stats)
    delays = Delays(config, stats, robot, _log(crawler, Delays))
    return Pacer(
        config,
        stats,
        _log(crawler, Pacer),
        clock=clock,
        engine=engine,
        robot=robot,
        records=records,
        store=store,
        delays=delays,
        parked=parked,
        own_secs=crawler.settings.getfloat("DOWNLOAD_DELAY"),
    )


def build_sites(
    crawler: Crawler,
    config: Config,
    announcer: Announcer,
    *,
    fetcher: Fetcher,
    store: StorageCalls,
    chance: Callable[[], float] = random.random,
    records: SiteRecords | None = None,
    lookahead: Callable[[Clock, Callable[[], object]], LookaheadLimit] | None = None,
    examiner: Examiner | None = None,
    archiver: Archiver | None = None,
    parked: Parked | None = None,
    pacer: Pacer | None = None,
    engine: Engine | None = None,
) -> Sites:
    """Build the sites of a crawl. By default nothing defers requests and no delays apply."""
    clock, engine = clock_of(crawler), engine or Engine(crawler)
    places = crawler.settings.getint("CONCURRENT_REQUESTS")
    limited = partial(LookaheadLimit.of_crawl, places=places, memory=config.memory_sites)
    limit = (lookahead or limited)(clock, engine.wake)

    def forget(state: SiteState) -> bool:
        return sites.forget(state)

    def is_awaited(state: SiteState) -> bool:
        return sites.is_awaited(state)

    def ended(state: SiteState) -> None:
        sites.ended(state)

    retriever = Retriever(
        crawler,
        config,
        announcer,
        clock=clock,
        chance=chance,
        fetcher=fetcher,
        store=store,
        limit=limit,
        pacer=pacer,
        archiver=archiver,
        examiner=examiner,
        is_awaited=is_awaited,
        retrieved=ended,
    )
    sites = Sites(
        config,
        clock=clock,
        engine=engine,
        records=SiteRecords(config.memory_sites, forget) if records is None else records,
        retriever=retriever,
        announcer=announcer,
        parked=NothingParked() if parked is None else parked,
        pacer=pacer,
        ahead=limit,
    )
    return sites


def _replay(crawler: Crawler, config: Config) -> Replay:
    """Return the replay of a crawl, with sites of its own, of which none is asked."""
    clock = clock_of(crawler)
    config = replace(config, policy=policy_of_replay(config.policy))
    announcer = announcer_of(crawler, config, kind=QuietAnnouncer)
    fetcher = NoFetch(crawler, config, Stats(crawler.stats), clock)
    store = storage_of(crawler, config, kind=LastCopies)
    sites = build_sites(crawler, config, announcer, fetcher=fetcher, store=store)
    log = _log(crawler, Replay)
    return Replay(crawler, log, clock, policy=config.policy, sites=sites)


def announcer_of(
    crawler: Crawler, config: Config, *, kind: type[Announcer] = Announcer
) -> Announcer:
    """Return what tells the user of the sites of a crawl."""
    summary, stats = Summary(crawler, config), Stats(crawler.stats)
    log = _log(crawler, Announcer)
    return kind(config, stats, log, summary=summary, events=Events(crawler))


def storage_of(
    crawler: Crawler, config: Config, *, kind: type[StorageCalls] = StorageCalls
) -> StorageCalls:
    """Return the storage of the settings, which is not open yet."""
    log = ServerLog(StorageCalls.__module__, crawler, _server_of(crawler, config.storage))
    robot, stats = copies_of(crawler, config), Stats(crawler.stats)
    return kind(config, robot, stats, log, clock_of(crawler))


def _server_of(crawler: Crawler, storage: type[Storage]) -> str:
    """Return where the Redis of *storage* is, "" if it has none."""
    setting = getattr(storage, "SETTINGS", {}).get("KOSTER_REDIS_URL")
    if setting is None:
        return ""
    url = urlsplit(crawler.settings.get("KOSTER_REDIS_URL") or setting.default)
    return f"{url.hostname}:{url.port or 6379}" if url.hostname else url.path


def archiver_of(crawler: Crawler, config: Config, robot: str) -> Archiver | None:
    """Return what writes the archive of a crawl for *robot*; None without KOSTER_ARCHIVE."""
    if config.archive is None:
        return None
    clock = clock_of(crawler)
    info = info_of(crawler, robot=robot, began=clock.epoch())
    return Archiver(config, Stats(crawler.stats), _log(crawler, Archiver), clock, info)


def _log(crawler: Crawler, part: type) -> Log:
    return Log(part.__module__, crawler)
