"""Crawls in processes of their own, which share a storage."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harness import forks
from harness.redis_server import RedisServer
from harness.storages import Place

_CRAWL = """
import json, logging, sys
from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess

arguments = json.loads(sys.argv[1])
told = {"fetched": [], "refused": []}

class Warnings(logging.Handler):
    def emit(self, record):
        print(record.getMessage(), file=sys.stderr, flush=True)

class Worker(Spider):
    name = "worker"

    async def start(self):
        for url in arguments["urls"]:
            yield Request(url, errback=self.refused)

    def parse(self, response):
        told["fetched"].append(response.url)

    def refused(self, failure):
        told["refused"].append(failure.request.url)

logging.getLogger().addHandler(Warnings(logging.WARNING))
process = CrawlerProcess(arguments["settings"])
crawler = process.create_crawler(Worker)
process.crawl(crawler)
process.start()
told["stats"] = crawler.stats.get_stats()
print(json.dumps(told, default=str))
"""


@dataclass(frozen=True)
class Result:
    """What a crawl came to."""

    fetched: Sequence[str]
    refused: Sequence[str]
    stats: Mapping[str, Any]
    warnings: Sequence[str]
    """Lines of its log from WARNING up."""


@dataclass(frozen=True)
class Worker:
    process: subprocess.Popen[str]

    def result(self) -> Result:
        """Wait for its end, which has to be a good one."""
        with self.process as process:
            try:
                out, errors = process.communicate(timeout=forks.ENDS_SECS)
            finally:
                process.kill()
        assert process.returncode == 0, errors
        return Result(**json.loads(out), warnings=errors.splitlines())


def work(place: Place, urls: Sequence[str], seed: int = 0, **settings: Any) -> Worker:
    """Start a crawl that requests these URLs in an order of its own."""
    shuffled = random.Random(seed).sample(urls, len(urls))
    return worker(shuffled, {"CONCURRENT_REQUESTS": 64, **place.settings(), **settings})


def worker(urls: Sequence[str], settings: Mapping[str, Any]) -> Worker:
    """Start a crawl that requests these URLs."""
    given = {
        "ADDONS": {"scrapy_koster.Addon": 500},
        "LOG_LEVEL": "WARNING",
        "LOG_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        **settings,
    }
    return Worker(forks.start("-c", _CRAWL, json.dumps({"settings": given, "urls": urls})))


@contextmanager
def closed_clients() -> Iterator[None]:
    """Close the clients of scrapy-redis in this process: it leaves them to the next collection."""
    from scrapy_redis import connection  # only who calls this needs it

    clients: list[Any] = []
    get_redis = connection.get_redis

    def kept(**arguments: Any) -> Any:
        clients.append(get_redis(**arguments))
        return clients[-1]

    connection.get_redis = kept
    try:
        yield
    finally:
        connection.get_redis = get_redis
        for client in clients:
            client.connection_pool.disconnect()


def of_scrapy_redis(redis: RedisServer) -> dict[str, Any]:
    return {
        "REDIS_URL": redis.url(),
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST": True,
        "KOSTER_DEFER_FIRST_SECS": 0.5,
        "KOSTER_DEFER_MAX_SECS": 0.5,
    }
