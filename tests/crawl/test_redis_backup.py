"""What workers of scrapy-redis have parked, in a real Redis: moved once, whatever comes between."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
import redis
from harness.clocks import StillClock
from harness.redis_server import common_server
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy_redis.queue import FifoQueue, LifoQueue, PriorityQueue

from scrapy_koster.crawl.engine.private import Engine
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.parking.redis_backup import RedisBackup, backup_of

QUEUES = [PriorityQueue, FifoQueue, LifoQueue]
SPIDER = Spider("waiting")


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    with common_server().client() as client:
        yield client


@pytest.fixture
def queue(client: redis.Redis) -> Any:
    return PriorityQueue(client, SPIDER, f"{uuid4().hex}:requests")


def fields(count: int, score: int = 0) -> list[str]:
    return [f"{score} {number}" for number in range(count)]


def placed(names: list[str]) -> dict[tuple[int, int], Request]:
    places = {name: tuple(map(int, name.split())) for name in names}
    return {
        (score, number): Request(f"http://a.example/{score}/{number}")
        for score, number in places.values()
    }


def log() -> Log:
    return Log("scrapy_koster.waiting", Crawler(Spider))


def of_queue(queue: Any) -> RedisBackup | None:
    scheduler = SimpleNamespace(queue=queue)
    return backup_of(Crawler(Spider), scheduler, Woken(), StillClock())


def worker(queue: Any, names: list[str]) -> RedisBackup:
    """One that has these parked."""
    one = of_queue(queue)
    assert one is not None
    one._renew(placed(names).items())
    return one


def dead(queue: Any, names: list[str]) -> RedisBackup:
    one = worker(queue, names)
    queue.server.delete(one._key("lease", one._me))
    return one


def popped(queue: Any) -> list[str]:
    found = iter(queue.pop, None)
    return [request.url.removeprefix("http://a.example/").replace("/", " ") for request in found]


class Killed(BaseException):
    """In the middle of something."""


@pytest.mark.parametrize("after", range(7))
def test_a_kill_while_it_hands_back(queue: Any, monkeypatch: Any, after: int) -> None:
    """After any of its calls: nothing is lost, nothing is doubled."""
    monkeypatch.setattr("scrapy_koster.crawl.parking.redis_backup.MOVED_AT_ONCE", 50)
    own = worker(queue, fields(200))
    client, calls = own._server, iter(range(after))
    send = client.execute_command

    def limited(*arguments: Any, **options: Any) -> Any:
        if next(calls, None) is None:
            raise Killed
        return send(*arguments, **options)

    with monkeypatch.context() as patched, suppress(Killed):
        patched.setattr(client, "execute_command", limited)
        own._hand_back([], keep=True)
    if after <= 1:
        client.delete(own._key("lease", own._me))  # it runs out
    got = popped(queue)
    while worker(queue, [])._look()[0]:
        got += popped(queue)
    assert sorted(got) == sorted(fields(200))
    assert not client.exists(own._key("parked", own._me))


def test_what_cannot_be_pushed_stays(queue: Any) -> None:
    client = queue.server
    gone = dead(queue, fields(3))
    client.set(queue.key, "of another type")
    own = worker(queue, [])
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        own._look()
    client.delete(queue.key)
    assert own._look() == (3, 0)
    assert sorted(popped(queue)) == fields(3)
    assert gone._removed("0 0")


def test_a_client_that_decodes_answers() -> None:
    with common_server().client(decode_responses=True) as client:
        queue = LifoQueue(client, SPIDER, f"{uuid4().hex}:requests")
        gone = dead(queue, fields(1))
        client.hset(gone._key("parked", gone._me), "0 0", "{}")
        assert worker(queue, [])._look() == (1, 0)
        assert client.lpop(queue.key) == "{}"


class Others(PriorityQueue):  # type: ignore[misc]
    """Anybody's."""


def test_which_queues_have_a_journal(client: redis.Redis) -> None:
    own = [kind(client, SPIDER, "key") for kind in [*QUEUES, Others]]
    backups = filter(None, map(of_queue, own))
    assert [each._push for each in backups] == ["ZADD", "LPUSH", "LPUSH", "ZADD"]
    assert of_queue(None) is None
    assert of_queue(type("PriorityQueue", (), {"server": 0, "key": 0})()) is None
    assert backup_of(Crawler(Spider), object(), Woken(), StillClock()) is None


# The backup itself, without its timer.


class Woken(Engine):
    """An engine that counts how often it is told that there is something to do."""

    def __init__(self) -> None:
        super().__init__(Crawler(Spider))
        self.times = 0

    def wake(self) -> None:
        self.times += 1


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def engine() -> Woken:
    return Woken()


@pytest.fixture
def backup(queue: Any, engine: Woken, clock: StillClock) -> RedisBackup:
    return RedisBackup(log(), engine, clock, queue, "ZADD")


def asked(number: int) -> Request:
    return Request(f"http://a.example/0/{number}")


def park(backup: RedisBackup, *places: tuple[int, int]) -> list[tuple[tuple[int, int], Request]]:
    parked = [(place, asked(place[1])) for place in places]
    for place, request in parked:
        backup.add(place, request)
    return parked


def in_redis(backup: RedisBackup) -> int:
    return int(backup._server.hlen(backup._key("parked", backup._me)))


class Unserializable(Request):
    def to_dict(self, *, spider: Any = None) -> Any:
        raise ValueError("not this one")


def test_what_cannot_be_serialized_waits_in_memory(
    backup: RedisBackup, queue: Any, caplog: pytest.LogCaptureFixture
) -> None:
    unserializable = Unserializable("http://a.example/")
    backup.add((0, 1), unserializable)
    parked = park(backup, (0, 2))
    assert backup.close([((0, 1), unserializable), *parked], keep=True) == 1
    assert popped(queue) == ["0 2"]
    [record] = caplog.records
    assert "ValueError: not this one" in record.getMessage()


def away(*arguments: Any, **options: Any) -> Any:
    raise redis.ConnectionError("away")


def refused(*arguments: Any, **options: Any) -> Any:
    raise redis.OutOfMemoryError("s3cret")


def test_a_redis_that_fails_is_said_once_and_left_alone(
    backup: RedisBackup,
    clock: StillClock,
    engine: Woken,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What may be another's is held until it answers. An error's text could have the password."""
    park(backup, (0, 1))
    backup._tick()
    calls = []

    def fail() -> Any:
        calls.append(clock.secs)
        raise redis.ConnectionError("s3cret")

    with monkeypatch.context() as patched:
        patched.setattr(backup._server, "pipeline", fail)
        parked = park(backup, (0, 2), (0, 3))
        assert backup.remove((0, 1)) is None
        assert backup.is_holding
        assert backup.remove((0, 2)) is None
        assert backup.others_wait()
        for _ in range(80):
            clock.secs += 0.25
            backup._tick()
        assert [call - calls[0] for call in calls] == [0, 5, 10, 15, 20]
        assert backup.remove((0, 3)) is None
        assert backup.close(parked, keep=True) == 2
    [record] = caplog.records
    assert record.getMessage() == (
        "Waiting requests cannot be written to the Redis of scrapy-redis (ConnectionError). They"
        " are kept in memory, and lost if this process is killed. The write is retried: check the"
        " Redis server"
    )
    clock.secs += 10
    backup._tick()
    assert engine.times == 1
    assert in_redis(backup) == 3
    backup._server.delete(*backup._server.keys(f"{backup._queue.key}*"))
    assert backup.remove((0, 1))  # data that is lost is not another worker's
    assert backup.remove((0, 3))


@pytest.mark.parametrize("fails", [away, refused])
def test_whether_redis_is_silent(
    backup: RedisBackup, clock: StillClock, monkeypatch: pytest.MonkeyPatch, fails: Any
) -> None:
    """One that refuses to write answers: the queue can be read."""
    with monkeypatch.context() as patched:
        patched.setattr(backup._server, "pipeline", fails)
        backup._tick()
        assert backup.is_holding is (fails is away)
    clock.secs += 10
    backup._tick()
    assert not backup.is_holding


def test_its_connections_wait_for_a_second(queue: Any) -> None:
    """Those of scrapy-redis wait for 30 s and more, and the loop would stand still as long."""
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        client = redis.Redis(port=hanging.getsockname()[1], socket_timeout=30)
        one = RedisBackup(
            log(), Woken(), StillClock(), PriorityQueue(client, SPIDER, "key"), "ZADD"
        )
        began = time.monotonic()
        with pytest.raises(redis.TimeoutError):
            one._others()
        assert 0.9 < time.monotonic() - began < 2


def test_a_client_that_is_no_plain_one_is_used_itself(queue: Any) -> None:
    class Others:
        """Anybody's."""

        register_script = queue.server.register_script

    queue.server = Others()
    one = RedisBackup(log(), Woken(), StillClock(), queue, "ZADD")
    assert one._server is queue.server
    one.close([], keep=False)


def test_what_another_has_taken_over_is_dropped_here_and_said_once(
    backup: RedisBackup,
    queue: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "scrapy_koster")
    parked = park(backup, *((0, number) for number in range(5)))
    backup._tick()
    queue.server.delete(backup._key("lease", backup._me))
    assert worker(queue, [])._look() == (5, 0)
    assert popped(queue) == fields(5)
    assert [backup.remove((0, number)) for number in range(3)] == [False] * 3
    assert backup.close(parked[3:], keep=True) == 0
    assert popped(queue) == []
    record = caplog.records[-1]
    assert len(caplog.records) == 2
    assert record.levelname == "INFO"
    assert record.getMessage() == (
        "This worker could not reach Redis for 30 s or longer. Other workers have taken over its"
        " waiting requests, so they are dropped here"
    )


def test_who_holds_the_lease_is_left_alone_and_waited_for(backup: RedisBackup, queue: Any) -> None:
    assert not backup.others_wait()
    worker(queue, fields(3))
    assert backup.others_wait()
    assert popped(queue) == []


def test_what_a_dead_worker_left_wakes_the_crawl_and_is_said(
    backup: RedisBackup,
    queue: Any,
    engine: Woken,
    clock: StillClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every ten seconds, a third of a lease."""
    caplog.set_level("INFO", "scrapy_koster")
    backup._tick()
    assert (engine.times, caplog.records) == (0, [])
    dead(queue, ["5 0", "-7 1", "0 2"])
    clock.secs = 1009.9
    backup._tick()
    assert engine.times == 0
    clock.secs = 1010.0
    backup._tick()
    assert engine.times == 1
    [record] = caplog.records
    assert record.levelname == "INFO"
    assert record.getMessage() == (
        "Requests that waited in a worker that has died, and are back in the queue: 3"
    )
    assert popped(queue) == ["-7 1", "0 2", "5 0"]


@pytest.mark.promise("docs/access.md", "SCHEDULER_FLUSH_ON_START drops these copies, too")
async def test_a_crawl_that_begins_anew_drops_all(backup: RedisBackup, queue: Any) -> None:
    dead(queue, fields(2))
    worker(queue, fields(3))
    backup.open(anew=True)
    assert backup.close((), keep=False) == 0
    assert queue.server.keys(f"{queue.key}*") == []
