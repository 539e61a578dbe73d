"""Workers that share a queue by scrapy-redis: what is parked in one is lost with none of them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import forks
from harness.crawling import Crawl, RecordingSpider, reactor_settings
from harness.fleet import closed_clients, of_scrapy_redis
from harness.redis_server import RedisServer, redis_server
from harness.replies import Reply, redirect
from harness.server import Server, Site
from scrapy_redis.spiders import RedisSpider

SCRIPT = """
from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess

from scrapy_koster.crawl.parking import redis_backup

for name, value in {constants!r}.items():
    setattr(redis_backup, name, value)

class Working(Spider):
    name = "fleet"
    urls = {urls!r}

    async def start(self):
        for url in self.urls:
            yield Request(url)

    def parse(self, response):
        pass

settings = {settings!r}
has_reactor = settings.get("TWISTED_REACTOR_ENABLED", True)
process = (CrawlerProcess if has_reactor else AsyncCrawlerProcess)(settings)
process.crawl(Working)
process.start()
"""
OPEN = Reply(body="User-agent: *\nDisallow: /no\n")
CLOSED = Reply(503)
QUEUES = ("PriorityQueue", "FifoQueue", "LifoQueue")
QUEUE = "fleet:requests"
WARNING = "cannot be written to the Redis of scrapy-redis"
PAGES = 200
STOPPED_RUNS = int(os.environ.get("STOPPED_RUNS", "5"))
QUICK = {"LEASE_SECS": 1.5, "TICK_SECS": 0.2, "YOUNG_SECS": 0.2, "REST_SECS": 1.0}


class Fleet:
    """Workers, each a process of its own, over one Redis."""

    def __init__(self, redis: RedisServer, folder: Path, crawl: Crawl) -> None:
        self.redis = redis
        self.client = redis.client(decode_responses=True)
        self._folder = folder
        self._crawl = crawl
        self._started: list[subprocess.Popen[str]] = []

    def start(
        self, urls: list[str], *, constants: dict[str, float] | None = None, **settings: Any
    ) -> subprocess.Popen[str]:
        """Start one that requests these; *constants* are those of the journal."""
        number = len(self._started)
        script = self._folder / f"worker{number}.py"
        code = SCRIPT.format(
            constants={**QUICK, **(constants or {})},
            urls=urls,
            settings={
                "ADDONS": {"scrapy_koster.Addon": 500},
                "KOSTER_SQLITE_PATH": str(self._folder / f"robots{number}.sqlite3"),
                "TELNETCONSOLE_ENABLED": False,
                "LOG_LEVEL": "INFO",
                **reactor_settings(),
                **of_scrapy_redis(self.redis),
                **settings,
            },
        )
        script.write_text(code)
        pipe = subprocess.PIPE
        worker = forks.Popen(
            [sys.executable, script], stdout=pipe, stderr=pipe, text=True, cwd=self._folder
        )
        self._started.append(worker)
        return worker

    def end(self, worker: subprocess.Popen[str], sent: signal.Signals | None = None) -> str:
        """Wait for its end; return its log."""
        if sent is not None:
            worker.send_signal(sent)
        _, log = worker.communicate(timeout=forks.ENDS_SECS)
        assert worker.returncode == (-9 if sent is signal.SIGKILL else 0), log
        return log

    def written(self) -> int:
        """How many requests the journals have."""
        keys = self.client.scan_iter(f"{QUEUE}:koster:parked:*")
        return sum(self.client.hlen(key) for key in keys)

    async def until_written(self, count: int) -> None:
        await self._crawl.until(lambda: self.written() == count, seconds=30)

    async def until_there_are(self, workers: int) -> None:
        def there() -> int:
            return self.client.scard(f"{QUEUE}:koster:workers")

        await self._crawl.until(lambda: there() == workers)

    def left(self) -> set[str]:
        """The keys that are there for good: the word for a worker that was killed is not."""
        names = (QUEUE, "fleet:dupefilter", *self.client.scan_iter(f"{QUEUE}:*"))
        return {name for name in names if self.client.ttl(name) == -1}

    def remove(self) -> None:
        for worker in self._started:
            worker.kill()
            worker.communicate(timeout=forks.ENDS_SECS)
        self.client.close()


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
def fleet(redis: RedisServer, tmp_path: Path, crawl: Crawl) -> Iterator[Fleet]:
    fleet = Fleet(redis, tmp_path, crawl)
    yield fleet
    fleet.remove()


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
@pytest.mark.parametrize("queue", QUEUES)
async def test_a_worker_that_is_killed(server: Server, fleet: Fleet, queue: str) -> None:
    """No waiting request is lost, no page is fetched again."""
    site = closed(server)
    of_queue: dict[str, Any] = {"SCHEDULER_QUEUE_CLASS": f"scrapy_redis.queue.{queue}"}
    killed = fleet.start(site.urls(PAGES), **of_queue)
    await fleet.until_written(PAGES)
    other = fleet.start([], **of_queue)
    await fleet.until_there_are(2)
    fleet.end(killed, signal.SIGKILL)
    assert site.pages_asked == []
    site.robots = OPEN
    log = fleet.end(other)
    assert each_once(site, PAGES)
    assert f"has died, and are back in the queue: {PAGES}" in log
    assert fleet.left() <= {"fleet:dupefilter"}


async def test_a_worker_that_is_stopped_for_longer_than_its_lease(
    server: Server, fleet: Fleet, crawl: Crawl
) -> None:
    site = closed(server)
    stopped = fleet.start(site.urls(PAGES))
    await fleet.until_written(PAGES)
    stopped.send_signal(signal.SIGSTOP)
    site.robots = OPEN
    fleet.end(fleet.start([]))
    assert each_once(site, PAGES)
    stopped.send_signal(signal.SIGCONT)
    log = fleet.end(stopped)
    assert each_once(site, PAGES)
    assert log.count("Other workers have taken over") == 1


@pytest.mark.long
@pytest.mark.parametrize("run", range(STOPPED_RUNS))
async def test_a_worker_that_is_stopped_for_any_time(
    server: Server, fleet: Fleet, crawl: Crawl, run: int
) -> None:
    chance = random.Random(run)
    site = closed(server)
    workers = [fleet.start(site.urls(PAGES)) for _ in range(2)]
    await crawl.until(lambda: site.asked("/robots.txt"))
    await crawl.sleep(chance.uniform(0, 2))
    workers[0].send_signal(signal.SIGSTOP)
    await crawl.sleep(chance.uniform(0, 1.5))
    site.robots = OPEN
    await crawl.sleep(chance.uniform(0, 3))
    workers[0].send_signal(signal.SIGCONT)
    for worker in workers:
        fleet.end(worker)
    assert each_once(site, PAGES)


@pytest.mark.parametrize("when", ["at once", "written"])
async def test_a_worker_that_is_interrupted(
    server: Server, fleet: Fleet, crawl: Crawl, when: str
) -> None:
    site, waiting = closed(server), closed(server)
    other = fleet.start(waiting.urls(1))
    await fleet.until_written(1)
    interrupted = fleet.start(site.urls(PAGES))
    await crawl.until(lambda: fleet.client.scard("fleet:dupefilter") == PAGES + 1)
    if when == "written":
        await crawl.until(lambda: fleet.written() > PAGES / 2)
    log = fleet.end(interrupted, signal.SIGINT)
    assert WARNING not in log
    site.robots = waiting.robots = OPEN
    fleet.end(other)
    assert each_once(site, PAGES)
    assert each_once(waiting, 1)
    assert fleet.left() <= {"fleet:dupefilter"}


async def test_both_end_when_nothing_is_left_but_what_waits(server: Server, fleet: Fleet) -> None:
    """They do not wait for each other for ever, and what waits is there for the next run."""
    sites = [closed(server), closed(server)]
    workers = [fleet.start(site.urls(20), KOSTER_IDLE_LIMIT_SECS=3) for site in sites]
    logs = [fleet.end(worker) for worker in workers]
    assert any("start the same crawl again to go on" in log for log in logs)
    assert not any("Giving up" in log for log in logs)
    assert fleet.client.zcard(QUEUE) == 40
    assert fleet.left() == {QUEUE, "fleet:dupefilter"}
    for site in sites:
        site.robots = OPEN
    fleet.end(fleet.start([]))
    assert all(each_once(site, 20) for site in sites)


async def test_a_queue_that_is_not_kept(server: Server, fleet: Fleet) -> None:
    """What waits for too long is given up, and each request is told."""
    site = closed(server)
    settings: dict[str, Any] = {"SCHEDULER_PERSIST": False, "KOSTER_IDLE_LIMIT_SECS": 3}
    log = fleet.end(fleet.start(site.urls(20), **settings))
    assert "'koster/deferred/dropped': 20" in log
    assert "still wait" not in log
    assert fleet.left() == set()


async def test_a_queue_that_is_not_kept_says_what_would_keep_it(
    server: Server, fleet: Fleet
) -> None:
    site = closed(server)
    worker = fleet.start(site.urls(20), SCHEDULER_PERSIST=False)
    await fleet.until_written(20)
    log = fleet.end(worker, signal.SIGINT)
    assert "still wait for their site: 20, of 1 sites. They are dropped: set SCHEDULER_PE" in log
    assert fleet.left() == set()


async def test_what_a_killed_worker_left_waits_for_the_next_run(
    server: Server, fleet: Fleet
) -> None:
    site = closed(server)
    worker = fleet.start(site.urls(20))
    await fleet.until_written(20)
    fleet.end(worker, signal.SIGKILL)
    site.robots = OPEN
    fleet.end(fleet.start([]))
    assert each_once(site, 20)


async def test_a_queue_that_is_emptied_at_the_start(server: Server, fleet: Fleet) -> None:
    site = closed(server)
    worker = fleet.start(site.urls(20))
    await fleet.until_written(20)
    fleet.end(worker, signal.SIGKILL)
    site.robots = OPEN
    fleet.end(fleet.start([], SCHEDULER_FLUSH_ON_START=True))
    assert site.pages_asked == []
    assert fleet.written() == 0


async def test_a_redirect_of_what_was_taken_over_meets_the_dupefilter(
    server: Server, fleet: Fleet
) -> None:
    site = closed(server)
    site.page("/old", redirect(site.url("/seen")))
    worker = fleet.start([site.url("/seen"), site.url("/old")])
    await fleet.until_written(2)
    fleet.end(worker, signal.SIGKILL)
    site.robots = OPEN
    fleet.end(fleet.start([]))
    assert Counter(site.pages_asked) == {"/seen": 1, "/old": 1}


async def test_what_waits_for_a_moment_is_not_written(server: Server, fleet: Fleet) -> None:
    site = server.site()
    site.robots = Reply(body="", delay=0.3)
    fleet.client.config_resetstat()
    fleet.end(fleet.start(site.urls(50), constants={"YOUNG_SECS": 2}))
    assert each_once(site, 50)
    assert "cmdstat_hset" not in fleet.client.info("commandstats")


# A Redis that fails.


async def test_a_redis_that_hangs(server: Server, fleet: Fleet, crawl: Crawl) -> None:
    site = closed(server)
    worker = fleet.start(site.urls(50))
    await fleet.until_written(50)
    fleet.redis.send(signal.SIGSTOP)
    await crawl.sleep(3)
    site.robots = OPEN
    fleet.redis.send(signal.SIGCONT)
    log = fleet.end(worker)
    assert each_once(site, 50)
    assert log.count(WARNING) <= 1


async def test_a_redis_that_is_killed_and_comes_back_without_data(
    server: Server, fleet: Fleet, crawl: Crawl
) -> None:
    site = closed(server)
    worker = fleet.start(site.urls(50))
    await fleet.until_written(50)
    fleet.redis.stop()
    await crawl.sleep(3)
    site.robots = OPEN
    fleet.redis.start()
    log = fleet.end(worker)
    assert each_once(site, 50)
    assert log.count(WARNING) <= 1


async def test_a_redis_that_stays_away(server: Server, fleet: Fleet, crawl: Crawl) -> None:
    site = closed(server)
    worker = fleet.start(site.urls(50))
    await fleet.until_written(50)
    fleet.redis.stop()
    await crawl.sleep(3)
    log = fleet.end(worker, signal.SIGINT)
    assert log.count(WARNING) == 1
    assert "still wait for their site: 50, of 1 sites. What of them is not in Redis is lost" in log


async def test_a_redis_that_hangs_for_longer_than_the_lease(
    server: Server, fleet: Fleet, crawl: Crawl
) -> None:
    """The site opens meanwhile. Who goes on first takes over what the others have parked."""
    site = closed(server)
    workers = [fleet.start(site.urls(50))]
    await fleet.until_written(50)
    workers.append(fleet.start([]))
    await fleet.until_there_are(2)
    fleet.redis.send(signal.SIGSTOP)
    site.robots = OPEN
    await crawl.sleep(4)
    assert site.pages_asked == []
    fleet.redis.send(signal.SIGCONT)
    for worker in workers:
        fleet.end(worker)
    assert each_once(site, 50)


async def test_a_redis_that_forgets(server: Server, fleet: Fleet) -> None:
    """What waits in a worker is handed back all the same: another's flush_on_start is no loss."""
    site = closed(server)
    worker = fleet.start(site.urls(50))
    await fleet.until_written(50)
    fleet.client.flushall()
    log = fleet.end(worker, signal.SIGINT)
    assert "for their site: 50, of 1 sites. They are kept for the next run" in log
    assert fleet.client.zcard(QUEUE) == 50


@pytest.mark.timed
@pytest.mark.parametrize(("secs", "retry_secs"), [(1, 60), (7, 60), (7, 0.5)])
async def test_an_interrupt_while_redis_hangs(
    server: Server, fleet: Fleet, crawl: Crawl, secs: float, retry_secs: float
) -> None:
    """scrapy-redis waits for 30 s, ten times over: while Redis is silent it is not called."""
    site = closed(server)
    given: dict[str, Any] = {"KOSTER_STORAGE": "scrapy_koster.storage.redis.RedisStorage"}
    given |= {"KOSTER_REDIS_URL": fleet.redis.url(), "KOSTER_DEFER_MAX_SECS": retry_secs}
    given["KOSTER_DEFER_FIRST_SECS"] = retry_secs
    worker = fleet.start(site.urls(50), constants={"TICK_SECS": 0.05}, **given)
    await fleet.until_written(50)
    await crawl.sleep(2)  # a call of scrapy-redis that is under way lasts for 30 s
    fleet.redis.send(signal.SIGSTOP)
    await crawl.sleep(secs)
    began = time.monotonic()
    log = fleet.end(worker, signal.SIGINT)
    assert time.monotonic() - began < 5
    warnings = [line for line in log.splitlines() if "WARNING: " in line and "Redis" in line]
    assert len(warnings) == 1
    assert "What of them is not in Redis is lost" in log
    fleet.redis.send(signal.SIGCONT)
    site.robots = OPEN
    fleet.end(fleet.start([]))
    assert each_once(site, 50)
