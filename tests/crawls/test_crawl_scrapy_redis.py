"""Workers that share a queue by scrapy-redis: what is parked in one is lost with none of them."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import forks
from harness.crawling import Crawl, RecordingSpider
from harness.fleet import closed_clients, of_scrapy_redis, worker
from harness.redis_server import RedisServer, redis_server
from harness.replies import Reply
from harness.server import Server, Site
from scrapy_redis.spiders import RedisSpider

OPEN = Reply(body="User-agent: *\nDisallow: /no\n")
CLOSED = Reply(503)
QUEUES = ("PriorityQueue", "FifoQueue", "LifoQueue")
QUEUE = "worker:requests"
WARNING = "cannot be written to the Redis of scrapy-redis"
PAGES = 200


class Fleet:
    """Workers over one Redis, each a process of its own."""

    def __init__(self, redis: RedisServer, folder: Path, crawl: Crawl) -> None:
        self.folder = folder
        self._crawl = crawl
        self._processes: list[subprocess.Popen[str]] = []
        self.redis = redis
        self.client = redis.client(decode_responses=True)

    def start(self, urls: list[str], **settings: Any) -> subprocess.Popen[str]:
        """Start a worker that requests these."""
        robots = str(self.folder / f"robots{len(self._processes)}.sqlite3")
        given = {"KOSTER_SQLITE_PATH": robots, **of_scrapy_redis(self.redis), **settings}
        self._processes.append(worker(urls, given).process)
        return self._processes[-1]

    def end(self, process: subprocess.Popen[str], sent: signal.Signals | None = None) -> str:
        """Wait for its end; return its log."""
        if sent is not None:
            process.send_signal(sent)
        _, log = process.communicate(timeout=forks.ENDS_SECS)
        assert process.returncode == (-9 if sent is signal.SIGKILL else 0), log
        return log

    def end_all(self) -> None:
        """Whatever a test that failed has left."""
        for process in self._processes:
            process.kill()
            process.communicate()

    def written(self) -> int:
        """How many requests are parked."""
        keys = self.client.scan_iter(f"{QUEUE}:koster:parked:*")
        lengths: Any = {"zset": self.client.zcard, "list": self.client.llen}
        return sum(int(lengths[self.client.type(key)](key)) for key in keys)

    async def until_written(self, count: int) -> None:
        await self._crawl.until(lambda: self.written() == count, seconds=30)

    def left(self) -> set[str]:
        """The keys that are there for good: the word for a worker that was killed is not."""
        names = (QUEUE, "worker:dupefilter", *self.client.scan_iter(f"{QUEUE}:*"))
        return {name for name in names if self.client.ttl(name) == -1}


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
def fleet(redis: RedisServer, tmp_path: Path, crawl: Crawl) -> Iterator[Fleet]:
    fleet = Fleet(redis, tmp_path, crawl)
    yield fleet
    fleet.end_all()
    fleet.client.close()


def closed(server: Server) -> Site:
    site = server.site()
    site.robots = CLOSED
    return site


def each_once(site: Site, count: int) -> bool:
    return Counter(site.pages_asked) == Counter(f"/page{number}" for number in range(count))


class Fed(RedisSpider, RecordingSpider):  # type: ignore[misc]
    name = "fed"
    redis_key = "fed:urls"

    def make_request_from_data(self, data: bytes) -> Any:
        return self.ask(json.loads(data)["url"], dont_filter=True)


@pytest.mark.beside("scrapy-redis", "a spider that is fed")
async def test_a_spider_that_is_fed_while_a_dead_site_is_waited_for(
    crawl: Crawl, server: Server, redis: RedisServer
) -> None:
    """A spider that is fed goes on while a site is deferred."""
    dead, good = server.down(), server.site()
    with redis.client() as client, closed_clients():
        client.rpush("fed:urls", json.dumps({"url": dead.url("/")}))
        running = crawl.start(Fed, settings=of_scrapy_redis(redis))
        await crawl.sleep(3)
        client.rpush("fed:urls", json.dumps({"url": good.url("/")}))
        await crawl.until(lambda: good.pages_asked, seconds=6)
        result = await running.stop()
    assert result.fetched == (good.url("/"),)
    assert result.stats["koster/parked"] == 1


@pytest.mark.beside("scrapy-redis", "a worker that is killed")
@pytest.mark.parametrize(
    ("how", "queue"),
    [
        (signal.SIGKILL, QUEUES[0]),
        pytest.param(signal.SIGINT, QUEUES[0], marks=pytest.mark.long),
        *(pytest.param(signal.SIGKILL, name, marks=pytest.mark.long) for name in QUEUES[1:]),
    ],
)
async def test_a_worker_that_is_killed(
    server: Server, fleet: Fleet, crawl: Crawl, how: signal.Signals, queue: str
) -> None:
    """No waiting request is lost, no page is fetched again."""
    site = closed(server)
    of_queue: dict[str, Any] = {"SCHEDULER_QUEUE_CLASS": f"scrapy_redis.queue.{queue}"}
    killed = fleet.start(site.urls(PAGES), **of_queue)
    await fleet.until_written(PAGES)
    other = fleet.start([], **of_queue)
    assert WARNING not in fleet.end(killed, how)
    assert site.pages_asked == []
    site.robots = OPEN
    fleet.end(other)
    assert each_once(site, PAGES)
    assert fleet.left() <= {"worker:dupefilter"}


async def test_a_worker_that_is_suspended(server: Server, fleet: Fleet, crawl: Crawl) -> None:
    """Others crawl the requests that waited in it. Queues without requests do not hold them up."""
    site = closed(server)
    stopped = fleet.start(site.urls(PAGES))
    await fleet.until_written(PAGES)
    stopped.send_signal(signal.SIGSTOP)
    site.robots = OPEN
    fleet.client.sadd(f"{QUEUE}:koster:sites", *range(50))
    fleet.end(fleet.start([]))
    assert each_once(site, PAGES)
    stopped.send_signal(signal.SIGCONT)
    fleet.end(stopped)
    assert each_once(site, PAGES)


@pytest.mark.parametrize("is_kept", [True, False])
async def test_when_nothing_is_left_but_what_waits(
    crawl: Crawl, server: Server, redis: RedisServer, is_kept: bool
) -> None:
    """Workers end although requests wait. Waiting requests are kept or refused."""
    sites = [closed(server), closed(server)]
    settings = of_scrapy_redis(redis) | {"SCHEDULER_PERSIST": is_kept, "KOSTER_IDLE_LIMIT_SECS": 3}
    with redis.client() as client, closed_clients():
        results = await crawl.together(
            *(crawl(urls=site.urls(20), settings=settings) for site in sites)
        )
        logs = ["\n".join(result.logged()) for result in results]
        dropped = sum(result.stats.get("koster/deferred/dropped", 0) for result in results)
        assert dropped == (0 if is_kept else 40)
        assert any("start the same crawl again to go on" in log for log in logs) is is_kept
        keys = client.scan_iter("recording:requests*parked*")
        assert sum(client.zcard(key) for key in keys) == (40 if is_kept else 0)


# A Redis that fails.


async def test_a_redis_that_hangs(server: Server, fleet: Fleet, crawl: Crawl) -> None:
    """What is in Redis stays there, and comes out when Redis answers again."""
    site = closed(server)
    hung = fleet.start(site.urls(50))
    await fleet.until_written(50)
    fleet.redis.send(signal.SIGSTOP)
    await crawl.sleep(1.5)
    site.robots = OPEN
    fleet.redis.send(signal.SIGCONT)
    log = fleet.end(hung)
    assert each_once(site, 50)
    assert log.count(WARNING) <= 2
