"""A fleet whose workers and whose Redis are killed, stopped and stalled: `make fleet-soak`.

    python tests/fleet_soak.py --events 60 --seed 1

Six workers crawl 20 sites out of the queue of scrapy-redis: some sites ask for a delay of one
second, some answer 503 every now and then. Each request has a number. Each worker writes down what
it takes from the queue, what it sends and what is refused, with the monotonic clock that all
processes of a machine share. The soak pushes requests meanwhile, and does something to a worker or
to Redis, again and again: the lease is the real one, of 30 seconds.

Afterwards each request is accounted for. The workers are processes of this file:
`python tests/fleet_soak.py --run FILE`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import redis
from harness.redis_server import RedisServer
from harness.replies import Reply
from harness.server import Server
from harness.virtual import TIME
from scrapy import Request, Spider, signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.exceptions import DontCloseSpider
from scrapy_redis.queue import PriorityQueue

from scrapy_koster import DeferringScheduler, RobotsForbidden, RobotsUnavailable

WORKERS = 6
PACED, FLAPPING, PLAIN = 6, 6, 8
DELAY_SECS = 1.0
SENT_EARLY_SECS, SEEN_EARLY_SECS = 0.01, 0.05
STALLS_SECS = (0.5, 3.0, 12.0, 40.0)
REDIS_AWAY_SECS = (0.5, 3.0, 15.0)
AFTER_REDIS_SECS = 15.0
"""So long nothing else happens after Redis was away: what is parked has to be written again."""
JUST_TAKEN_SECS = 1.0
END_SECS = 240.0
QUEUE = "soak:requests"
PERIOD_SECS = 0.5
RULES = "User-agent: *\nDisallow: /private\n"
OPENS_FOR_A_MOMENT = Reply(200, RULES, headers={"Cache-Control": "max-age=5"})


# A worker.


class Notes:
    """What this worker has done. A line is written at once, so that a kill loses none."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def add(self, what: str, of: object) -> None:
        os.write(self._file, f"{what} {time.monotonic():.6f} {of}\n".encode())


class NotedQueue(PriorityQueue):  # type: ignore[misc]
    """That of scrapy-redis; what is taken is noted."""

    def pop(self, timeout: int = 0) -> Any:
        request = super().pop(timeout)
        if request is not None:
            self.spider.notes.add("taken", request.cb_kwargs["n"])
        return request


def note_what_is_handed_out() -> None:
    """From then on a request is in flight."""
    real = DeferringScheduler.next_request

    def noted(self: DeferringScheduler) -> Request | None:
        request = real(self)
        if request is not None:
            spider: Any = self._crawler.spider
            spider.notes.add("out", request.cb_kwargs["n"])
        return request

    DeferringScheduler.next_request = noted  # type: ignore[method-assign]


class NotedHandler(HTTP11DownloadHandler):
    """Directly before a request is sent."""

    async def download_request(self, request: Request) -> Any:
        self._crawler.spider.notes.add("sent", request.url)  # type: ignore[union-attr]
        return await super().download_request(request)

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        super().__init__(crawler)


class Worker(Spider):
    name = "soak"
    notes: Notes
    finish: Path

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Worker:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signals.spider_idle)
        return spider

    async def start(self) -> Any:
        nothing: tuple[Request, ...] = ()
        for request in nothing:
            yield request

    def idle(self) -> None:
        """Stay until there is nothing more to come."""
        if not self.finish.exists():
            raise DontCloseSpider

    def parse(self, response: Any, n: int) -> None:
        self.notes.add("fetched", n)

    def refused(self, failure: Any) -> None:
        kinds = {RobotsForbidden: "forbidden", RobotsUnavailable: "unavailable"}
        name = kinds.get(type(failure.value), "failed")
        self.notes.add(name, failure.request.cb_kwargs["n"])


def work(path: Path) -> None:
    os.nice(10)  # the sites and what counts are not to be late
    given = json.loads(path.read_text())
    kind = type(
        "SoakWorker", (Worker,), {"notes": Notes(given["notes"]), "finish": Path(given["finish"])}
    )
    handlers = {"http": NotedHandler}
    settings = {
        **given["settings"],
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "SCHEDULER_QUEUE_CLASS": NotedQueue,
        "DOWNLOAD_HANDLERS": handlers,
    }
    note_what_is_handed_out()
    process = CrawlerProcess(settings)
    process.crawl(kind)
    process.start()


# What is done to them.


@dataclass
class Running:
    """One process of a worker."""

    process: subprocess.Popen[bytes]
    notes: Path
    log: Path
    killed_at: float | None = None
    stalled_at: float = 0.0
    stalled_until: float = 0.0
    stalls: list[tuple[float, float]] = field(default_factory=list)

    def ran_secs(self, since: float, until: float) -> float:
        """For how long it was not stalled in that time."""
        stalled = (min(end, until) - max(begin, since) for begin, end in self.stalls)
        return until - since - sum(max(secs, 0.0) for secs in stalled)


@dataclass
class Found:
    """What came of it."""

    events: Counter[str] = field(default_factory=Counter)
    in_vain: int = 0
    """Starts while Redis was away."""
    pushed: int = 0
    fetched: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    twice: list[str] = field(default_factory=list)
    leaked: int = 0
    lost_with_a_kill: list[float] = field(default_factory=list)
    """For each request how long the worker ran between taking it and being killed, in seconds."""
    lost_in_flight: int = 0
    """Had been handed out to be fetched, as of any crawl that is killed."""
    warnings: Counter[str] = field(default_factory=Counter)
    lost_on_the_way: int = 0
    """Popped for a client that had gone, or did not wait for the answer any more."""
    lost_otherwise: list[str] = field(default_factory=list)
    gaps: dict[str, list[float]] = field(default_factory=dict)
    asked: Counter[int] = field(default_factory=Counter)
    """How many of the plain sites were asked for a robots.txt so often."""
    stops_secs: list[float] = field(default_factory=list)
    secs: float = 0.0
    short: list[str] = field(default_factory=list)
    """Of each short gap where requests are sent, what happened around it."""
    late: list[str] = field(default_factory=list)
    """The same of each request that was lost although it had waited."""
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        events = ", ".join(f"{count} {name}" for name, count in sorted(self.events.items()))
        ways = ", ".join(f"{count:,} {name}" for name, count in sorted(self.refused.items()))
        lost = sorted(self.lost_with_a_kill)
        stops = f", the longest {max(self.stops_secs):.1f} s" if self.stops_secs else ""
        lines = [
            f"{self.events.total()} events in {self.secs:,.0f} s: {events}",
            f"{self.pushed:,} requests: {self.fetched:,} fetched, {ways}",
            f"fetched twice: {len(self.twice)}, forbidden and fetched: {self.leaked}",
            f"lost in flight with a worker that was killed: {self.lost_in_flight}",
            f"lost while they waited in one: {len(lost)}"
            + (f", {lost[0]:.3f} to {lost[-1]:.3f} s after it was taken" if lost else ""),
            f"lost between Redis and a worker, before that had them: {self.lost_on_the_way}",
            f"lost otherwise: {len(self.lost_otherwise)}",
            f"starts while Redis was away: {self.in_vain}",
            *(f"warnings: {count} of {line}" for line, count in self.warnings.items()),
            *(
                f"gaps {where}: {len(gaps):,}, the shortest {min(gaps):.3f} s of {DELAY_SECS:g}"
                for where, gaps in self.gaps.items()
                if gaps
            ),
            f"robots.txt fetches of sites with plain rules: {dict(self.asked)}",
            f"workers that were interrupted: {len(self.stops_secs)}{stops}",
        ]
        lines += [f"a short gap: {each}" for each in self.short]
        lines += [f"lost after it had waited: {each}" for each in self.late]
        return "\n".join([*lines, *(f"NOT KEPT: {each}" for each in self.wrong)])


class Soak:
    """The sites, the Redis, the workers, and what befalls them."""

    def __init__(self, server: Server, redis_server: RedisServer, folder: Path, seed: int) -> None:
        self.found = Found()
        self._chance = random.Random(seed)
        self._redis = redis_server
        self._folder = folder
        self._finish = folder / "finish"
        hosts = [f"127.0.5.{number + 1}" for number in range(PACED + FLAPPING + PLAIN)]
        sites = [server.site(host=host) for host in hosts]
        self._paced = sites[:PACED]
        self._flapping = sites[PACED : PACED + FLAPPING]
        self._plain = sites[PACED + FLAPPING :]
        self._sites = sites
        for site in sites:
            site.robots = Reply(200, RULES, delay=0.2)
        for site in self._paced:
            site.robots = f"User-agent: *\nCrawl-delay: {DELAY_SECS:g}\nDisallow: /private\n"
        for site in self._flapping:
            site.robots = Reply(503)
        self._client = redis_server.client(socket_timeout=1, retry=None)
        self._queue = PriorityQueue(self._client, Worker(), QUEUE)
        self._urls: list[str] = []
        self._unsure: set[int] = set()
        self._all: list[Running] = []
        self._workers: list[Running] = []
        self._events: list[tuple[float, str]] = []
        self._flaps_at = self._push_at = 0.0
        self._began = time.monotonic()

    # Work for the fleet.

    def _push(self) -> None:
        """Push a few requests, while Redis answers."""
        if time.monotonic() < self._push_at:
            return
        self._push_at = time.monotonic() + PERIOD_SECS
        with suppress(redis.RedisError):
            for site in self._sites:
                share = 0.6 if site in self._paced else 1.0
                if self._chance.random() < share * PERIOD_SECS:
                    number = len(self._urls)
                    path = "private" if self._chance.random() < 0.1 else "page"
                    url = site.url(f"/{path}{number}")
                    request = Request(url, dont_filter=True, cb_kwargs={"n": number})
                    request.errback = Worker.refused.__get__(self._queue.spider)
                    request.callback = self._queue.spider.parse
                    self._urls.append(url)
                    self._unsure.add(number)  # if there is no answer it may be there
                    self._queue.push(request)
                    self._unsure.discard(number)

    def _flap(self) -> None:
        if time.monotonic() >= self._flaps_at:
            self._flaps_at = time.monotonic() + self._chance.uniform(2, 10)
            site = self._chance.choice(self._flapping)
            site.robots = self._chance.choice([Reply(503), OPENS_FOR_A_MOMENT])

    def _pass(self, secs: float) -> None:
        """Let so much time pass."""
        end = time.monotonic() + secs
        while time.monotonic() < end:
            self._push()
            self._flap()
            time.sleep(min(PERIOD_SECS, max(end - time.monotonic(), 0.0)))

    # Workers.

    def _start(self) -> None:
        number = len(self._all)
        notes, log = self._folder / f"notes-{number}", self._folder / f"log-{number}"
        url = self._redis.url()
        settings = {
            "ADDONS": {"scrapy_koster.Addon": 500},
            "SCHEDULER_PERSIST": True,
            "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
            "REDIS_URL": url,
            "KOSTER_STORAGE": "scrapy_koster.storage.redis.RedisStorage",
            "KOSTER_REDIS_URL": url,
            "KOSTER_CRAWL_DELAY": "obey",
            "KOSTER_EXPIRY_MIN_SECS": 0,
            "KOSTER_DEFER_FIRST_SECS": 1,
            "KOSTER_DEFER_MAX_SECS": 4,
            "LOG_FILE": str(log),
            "LOG_LEVEL": "INFO",
            "RETRY_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "REMOTE_CONTROL_ENABLED": False,
        }
        task = self._folder / f"task-{number}"
        given = {"notes": str(notes), "finish": str(self._finish), "settings": settings}
        task.write_text(json.dumps(given))
        notes.touch()
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, "--run", str(task)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
        )
        self._happened(f"{notes.name} starts")
        running = Running(process, notes, log)
        self._all.append(running)
        self._workers.append(running)

    def _refill(self) -> None:
        """Have as many workers as there were, and those go on that were stalled for long enough."""
        now = time.monotonic()
        for each in list(self._workers):
            if each.stalled_until and each.stalled_until <= now:
                self._happened(f"{each.notes.name} goes on")
                each.process.send_signal(signal.SIGCONT)
                each.stalls.append((each.stalled_at, time.monotonic()))
                each.stalled_until = 0.0
            if each.process.poll() is not None:
                self._workers.remove(each)
                if each.notes.stat().st_size:
                    self.found.wrong.append(
                        f"a worker ended by itself: {each.process.returncode}, {each.log}"
                    )
                else:  # scrapy-redis does not start without Redis
                    self.found.in_vain += 1
        while len(self._workers) < WORKERS:
            self._start()

    def _at_work(self) -> list[Running]:
        """Those that have begun to take requests, and are not stalled."""
        return [
            each for each in self._workers if not each.stalled_until and each.notes.stat().st_size
        ]

    def _befall_a_worker(self) -> bool:
        ready = self._at_work()
        if len(ready) < 2:
            return False
        chosen = self._chance.choice(ready)
        kind = self._chance.choice(("killed", "killed", "interrupted", "stalled"))
        self.found.events[f"workers {kind}"] += 1
        self._happened(f"{chosen.notes.name} {kind}")
        if kind == "killed":
            chosen.killed_at = time.monotonic()
            chosen.process.kill()
            chosen.process.wait()
            self._workers.remove(chosen)
        elif kind == "interrupted":
            self._interrupt(chosen)
        else:
            chosen.stalled_at = time.monotonic()
            chosen.stalled_until = time.monotonic() + self._chance.choice(STALLS_SECS)
            chosen.process.send_signal(signal.SIGSTOP)
        return True

    def _interrupt(self, chosen: Running) -> None:
        self._workers.remove(chosen)
        began = time.monotonic()
        chosen.process.send_signal(signal.SIGINT)
        while chosen.process.poll() is None and time.monotonic() - began < END_SECS:
            self._pass(0.1)
        self.found.stops_secs.append(time.monotonic() - began)
        if chosen.process.poll() != 0:
            self.found.wrong.append(f"an interrupted worker does not end: {chosen.log}")
            chosen.process.kill()

    def _happened(self, what: str) -> None:
        self._events.append((time.monotonic(), what))

    def _befall_redis(self) -> None:
        kind = self._chance.choice(("killed", "stalled"))
        self.found.events[f"Redis {kind}"] += 1
        self._happened(f"Redis {kind}")
        if kind == "killed":
            self._redis.stop()
            self._pass(self._chance.choice(REDIS_AWAY_SECS))
            self._redis.start()
        else:
            self._redis.send(signal.SIGSTOP)
            self._pass(self._chance.choice(STALLS_SECS))
            self._redis.send(signal.SIGCONT)
        self._happened("Redis back")
        # What is taken meanwhile cannot be written: a worker that is killed then loses it.
        self._pass(AFTER_REDIS_SECS)

    # All of it.

    def run(self, events: int, *, of_redis: int) -> None:
        turns = [True] * of_redis + [False] * (events - of_redis)
        self._chance.shuffle(turns)
        self._refill()
        self._pass(10)
        for is_of_redis in turns:
            self._refill()
            if is_of_redis:
                self._befall_redis()
            else:
                while not self._befall_a_worker():
                    self._pass(1)
                    self._refill()
            _say(f"{self.found.events.total()} of {events}: {dict(self.found.events)}")
            self._pass(self._chance.uniform(1, 9))
        self._finish_all()
        self._account()
        self.found.secs = time.monotonic() - self._began

    def _finish_all(self) -> None:
        """Push nothing more, open all sites, and have the fleet crawl what is left."""
        for site in self._flapping:
            site.robots = OPENS_FOR_A_MOMENT
        end = time.monotonic() + max(STALLS_SECS) + 5
        while any(each.stalled_until for each in self._workers) and time.monotonic() < end:
            self._refill()
            time.sleep(0.2)
        self._finish.touch()
        for _ in range(3):
            self._until_they_end()
            if not self._left():
                return
            self._start()  # what was parked in a killed worker, perhaps
        self.found.wrong.append(f"left in Redis: {self._left()}")

    def _left(self) -> list[str]:
        """The keys that are there for good: the word for a worker that was killed is not."""
        names = self._client.scan_iter("soak:*")
        return [name.decode() for name in names if self._client.ttl(name) == -1]

    def _until_they_end(self) -> None:
        end = time.monotonic() + 2 * END_SECS
        for each in self._workers:
            with suppress(subprocess.TimeoutExpired):
                each.process.wait(timeout=max(end - time.monotonic(), 0.1))
            if each.process.poll() != 0:
                self.found.wrong.append(f"a worker does not end: {each.log}")
                each.process.kill()
        self._workers.clear()

    def kill_all(self) -> None:
        for each in self._all:
            if each.process.poll() is None:
                each.process.kill()
            each.process.wait()
        self._client.close()

    # Accounts.

    def _account(self) -> None:
        found = self.found
        hits = Counter(
            int(path.removeprefix("/page").removeprefix("/private"))
            for site in self._sites
            for path in site.pages_asked
        )
        notes = [(worker, *note) for worker in self._all for note in _read(worker.notes)]
        ends = {"forbidden", "unavailable", "failed"}
        refused = {int(of): what for _, what, _, of in notes if what in ends}
        taken: dict[int, tuple[float, Running]] = {}
        for worker, what, at, of in notes:
            if what == "taken":
                taken[int(of)] = max(
                    taken.get(int(of), (0.0, worker)), (at, worker), key=lambda each: each[0]
                )
        out = {(int(of), worker.notes) for worker, what, _, of in notes if what == "out"}
        unpushed = self._unsure - hits.keys() - refused.keys() - taken.keys()
        found.pushed, found.fetched = len(self._urls) - len(unpushed), len(hits)
        for number, url in enumerate(self._urls):
            if number in refused and not (refused[number] == "failed" and hits[number]):
                found.refused[refused[number]] += 1
            found.leaked += bool(hits[number]) and "/private" in url
            if hits[number] > 1:
                found.twice.append(url)
            elif not hits[number] and number not in refused and number not in unpushed:
                last = taken.get(number)
                self._lost(url, last, out=last is not None and (number, last[1].notes) in out)
        if found.leaked or found.twice or found.lost_otherwise:
            found.wrong += [*found.twice, *found.lost_otherwise]
        if any(secs > JUST_TAKEN_SECS for secs in found.lost_with_a_kill):
            found.wrong.append("requests were lost that had waited for longer than a second")
        self._read_logs()
        found.asked = Counter(site.asked("/robots.txt") for site in self._plain)
        self._look_at_gaps([(at, of, who) for who, what, at, of in notes if what == "sent"])

    def _told(self, *done: tuple[float, str, str], what: str = "sends") -> str:
        """What happened around that which workers have done."""
        first = done[0][0]
        near = [(at, event) for at, event in self._events if -60 < at - first < 20]
        happened = sorted([*near, *((at, f"{who} {what} {url}") for at, url, who in done)])
        return "; ".join(f"{at - first:.2f} s {event}" for at, event in happened)

    def _read_logs(self) -> None:
        for each in self._all:
            for line in each.log.read_text().splitlines() if each.log.exists() else ():
                if " WARNING: " in line or " ERROR: " in line:
                    self.found.warnings[line.partition("] ")[2][:250]] += 1

    def _lost(self, url: str, taken: tuple[float, Running] | None, *, out: bool) -> None:
        if taken is None:
            self.found.lost_on_the_way += 1
        elif (killed_at := taken[1].killed_at) is None:
            self.found.lost_otherwise.append(f"{url}, taken by {taken[1].notes.name}")
        elif out:
            self.found.lost_in_flight += 1
        else:
            at, worker = taken
            secs = worker.ran_secs(at, killed_at)
            self.found.lost_with_a_kill.append(secs)
            if secs > JUST_TAKEN_SECS:
                self.found.late.append(self._told((at, url, worker.notes.name), what="takes"))

    def _look_at_gaps(self, sent: Sequence[tuple[float, str, Running]]) -> None:
        found = self.found
        server_secs = time.monotonic() - TIME.now()
        sent_gaps: list[float] = []
        seen_gaps: list[float] = []
        for site in self._paced:
            of_site = sorted(
                (at, url, who.notes.name)
                for at, url, who in sent
                if url.startswith(f"{site.url('')}/")
            )
            at_worker = [at for at, _, _ in of_site]
            for earlier, later in pairwise(of_site):
                if later[0] - earlier[0] < DELAY_SECS - SENT_EARLY_SECS:
                    found.short.append(self._told(earlier, later))
            at_server = [asked.at + server_secs for asked in site.requests]
            sent_gaps += _gaps(at_worker)
            seen_gaps += _gaps(at_server)
        found.gaps = {"where requests are sent": sent_gaps, "in the log of the server": seen_gaps}
        for (where, gaps), early in zip(
            found.gaps.items(), (SENT_EARLY_SECS, SEEN_EARLY_SECS), strict=True
        ):
            short = sorted(gap for gap in gaps if gap < DELAY_SECS - early)
            if short:
                found.wrong.append(f"{len(short)} short gaps {where}: {short[:9]}")


def _gaps(times: Iterable[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(sorted(times))]


def _read(path: Path) -> list[tuple[str, float, str]]:
    lines = (line.split(" ", 2) for line in path.read_text().splitlines())
    return [(what, float(at), of) for what, at, of in lines]


def soak(events: int, seed: int, *, of_redis: int) -> Found:
    """Have so many events, so many *of_redis* among them."""
    redis_server = RedisServer("--appendonly", "yes", "--appendfsync", "always")
    with TemporaryDirectory(prefix="fleet-soak-") as folder, Server() as server:
        redis_server.start()
        running = Soak(server, redis_server, Path(folder), seed)
        try:
            running.run(events, of_redis=of_redis)
        finally:
            running.kill_all()
            redis_server.remove()
    return running.found


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=60)
    parser.add_argument("--of-redis", type=int, default=12, help="so many of the events")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        work(options.run)
        return 0
    found = soak(options.events, options.seed, of_redis=options.of_redis)
    _say(str(found))
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
