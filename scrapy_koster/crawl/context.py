"""Builds the objects of a crawl, and gives them their collaborators.

Scrapy builds its components separately, in its own order, and passes only the crawler. The first
component builds the objects of the crawl. Later components get the same objects (``context_of``).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from scrapy.crawler import Crawler

from scrapy_koster.crawl.clock import clock_of
from scrapy_koster.crawl.config import Config, config_of
from scrapy_koster.crawl.engine.private import Engine, per_crawler
from scrapy_koster.crawl.fetching.archiver import Archiver
from scrapy_koster.crawl.fetching.fetcher import Fetcher
from scrapy_koster.crawl.fetching.lookahead import FetchLimiter, LookaheadLimit, socket_limit
from scrapy_koster.crawl.fetching.retriever import Retriever
from scrapy_koster.crawl.in_place import InPlace
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.pacing.pacer import Pacer
from scrapy_koster.crawl.parking.parked_file import ParkedFile, folder_of
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
from scrapy_koster.crawl.robot import Robot
from scrapy_koster.crawl.site_records import SiteRecords
from scrapy_koster.crawl.sites import Sites
from scrapy_koster.crawl.states import SiteState, Waiting
from scrapy_koster.crawl.storage_calls import StorageCalls


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The replaceable parts of a crawl. Commands, tests and benchmarks replace some of the parts.

    ``config`` is an object, or None to read the settings of the crawler. ``chance`` is the random
    source. The other fields are functions, and build an object.
    """

    config: Config | None = None
    chance: Callable[[], float] = random.random
    """Returns a random number: at least 0, and less than 1."""
    engine: Callable[[Crawler], Engine] = Engine
    fetcher: Callable[..., Fetcher] = Fetcher
    store: Callable[..., StorageCalls] = StorageCalls
    lookahead: Callable[..., LookaheadLimit] = LookaheadLimit
    limiter: Callable[..., FetchLimiter] = FetchLimiter


PARTS = Parts()
# In an outage, this number of sites at most wait: the other requests stay in the wrapped queue.
_WAITING_MAX = 10_000


class CrawlContext:
    """The objects of a crawl, used by its Scrapy components."""

    def __init__(self, crawler: Crawler, parts: Parts) -> None:
        self.config = config = parts.config or config_of(crawler)
        self.clock, self.engine = clock, engine = clock_of(crawler), parts.engine(crawler)
        self.robot = robot = Robot(crawler, config)
        self.announcer = Announcer(crawler, config)
        self.folder = folder_of(config.fallback_scheduler, crawler.settings)
        """The JOBDIR. None without a JOBDIR, or if the inner scheduler keeps no requests there."""
        self.parked = ParkedRequests(crawler, ParkedFile(crawler, self.folder), engine)
        store = parts.store(crawler, config)
        served: dict[SiteState, Waiting] = {}
        places = crawler.settings.getint("CONCURRENT_REQUESTS")
        records = SiteRecords(
            most=config.memory_bytes,
            least=2 * places,
            engine=engine,
            parked=self.parked,
            waiting=served,
        )
        in_place = InPlace(clock, engine)
        self.pacer = Pacer(
            crawler=crawler,
            config=config,
            in_place=in_place,
            robot=robot,
            records=records,
            store=store,
            parked=self.parked,
        )
        most = config.concurrent_fetches or socket_limit()
        limiter = parts.limiter(clock, max(places, 8), most)
        retriever = Retriever(
            crawler=crawler,
            config=config,
            announcer=self.announcer,
            clock=clock,
            engine=engine,
            chance=parts.chance,
            fetcher=parts.fetcher(crawler, config, clock, self.pacer.visit, limiter),
            store=store,
            records=records,
            limiter=limiter,
            pacer=self.pacer,
            archiver=Archiver(crawler, config.archive, robot.name) if config.archive else None,
            robot=robot,
        )
        self.sites = Sites(
            config=config,
            clock=clock,
            engine=engine,
            records=records,
            served=served,
            ahead=parts.lookahead(
                clock, engine.wake, records.has_room, max(2 * places, 100), _WAITING_MAX, served
            ),
            retriever=retriever,
            announcer=self.announcer,
            parked=self.parked,
            in_place=in_place,
            pacer=self.pacer,
        )


def context_of(crawler: Crawler, parts: Parts = PARTS) -> CrawlContext:
    """Return the objects of the crawl of *crawler*. Raises ValueError if a setting is invalid.

    The first call builds the objects with *parts*. Later calls ignore *parts*.
    """
    return per_crawler(crawler, CrawlContext, lambda: CrawlContext(crawler, parts))
