"""The queues of parked requests in a real Redis, which the workers of scrapy-redis share."""

from __future__ import annotations

from collections.abc import Iterator
from signal import SIGCONT, SIGSTOP
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
from scrapy_koster.crawl.parking.redis_queues import REST_SECS, RedisQueues, queues_of

SITE = "http://a.example:8000"
PLACE = (0, 0)
SPIDER = Spider("waiting")


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    with common_server().client() as client:
        yield client


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


def of(queue: Any, clock: Any = None) -> RedisQueues | None:
    crawler, scheduler = Crawler(Spider), SimpleNamespace(queue=queue)
    return queues_of(crawler, scheduler, Engine(crawler), clock or StillClock())


def worker(kind: type, client: Any, key: str, clock: Any = None) -> RedisQueues:
    found = of(kind(client, SPIDER, key), clock)
    assert found is not None
    return found


@pytest.fixture
def key() -> str:
    return f"{uuid4().hex}:%(spider)s:requests"


def page(number: int) -> Request:
    return Request(f"{SITE}/{number}", priority=-number)


def taken(queues: RedisQueues) -> list[str]:
    found = iter(lambda: queues.take(SITE, PLACE), None)
    return [request.url.removeprefix(f"{SITE}/") for request in found]


@pytest.mark.parametrize("kind", [PriorityQueue, FifoQueue, LifoQueue])
@pytest.mark.parametrize("decodes", [False, True])
def test_workers_share_the_queue_of_a_site(kind: type, decodes: bool, key: str) -> None:
    """Equal requests stay apart."""
    with common_server().client(decode_responses=decodes) as client:
        one, two = worker(kind, client, key), worker(kind, client, key)
        for number in (0, 1, 1):
            assert one.write(SITE, PLACE, page(number))
        assert two.names() == {SITE}
        if not decodes:  # then scrapy-redis cannot read its own pickles
            assert sorted(taken(two)) == ["0", "1", "1"]
            assert one.take(SITE, PLACE) is None
            assert one.names() == set()
        one.close()


class Unserializable(Request):
    def to_dict(self, *, spider: Any = None) -> Any:
        raise ValueError("s3cret")


def test_what_cannot_be_written_or_read(
    client: redis.Redis, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The text of an error could have the password."""
    own = worker(FifoQueue, client, key)
    assert not own.write(SITE, PLACE, Unserializable(f"{SITE}/1"))
    client.lpush(own._queue(SITE, client).key, b"no pickle")
    own.write(SITE, PLACE, page(2))
    assert taken(own) == ["2"]
    unwritten, unread = (record.getMessage() for record in caplog.records)
    assert "kept in memory" in unwritten
    assert "(ValueError)" in unwritten
    assert "cannot be loaded, and are lost (UnpicklingError)" in unread


def test_a_queue_of_another_type_holds_up_no_other(client: redis.Redis, key: str) -> None:
    worker(FifoQueue, client, key).write(SITE, PLACE, page(1))
    own = worker(PriorityQueue, client, key)
    assert taken(own) == []
    assert not own.is_silent
    assert own.names() == set()


@pytest.mark.parametrize("error", [redis.ConnectionError, redis.OutOfMemoryError])
async def test_a_redis_that_fails_is_left_alone(
    client: redis.Redis, key: str, clock: StillClock, monkeypatch: Any, error: type[Exception]
) -> None:
    """One that refuses to write answers: the queue can be read."""
    own, calls = worker(PriorityQueue, client, key, clock), []

    def fail() -> Any:
        calls.append(clock.secs)
        raise error("s3cret")

    with monkeypatch.context() as patched:
        patched.setattr(own._server, "pipeline", fail)
        assert not own.write(SITE, PLACE, page(1))
        assert own.is_silent is (error is redis.ConnectionError)
        assert not own.write(SITE, PLACE, page(2))
        assert len(calls) == (1 if own.is_silent else 2)
    clock.secs += REST_SECS
    assert not own.is_silent
    assert own.write(SITE, PLACE, page(3))
    assert taken(own) == ["3"]
    own.close()


@pytest.mark.parametrize("how", ["refuses", "hangs", "hangs before a request is written"])
async def test_a_redis_that_hands_out_nothing_rests(
    client: redis.Redis, key: str, clock: StillClock, monkeypatch: Any, how: str
) -> None:
    """A replica, or a server that cannot save, refuses to remove a request from a queue.

    One that hangs executes commands later, when nobody waits for the reply any more.
    """
    own = worker(PriorityQueue, client, key, clock)
    assert own.write(SITE, PLACE, page(1))

    def fail(_: object) -> Any:
        raise redis.exceptions.ReadOnlyError("You can't write against a read only replica.")

    with monkeypatch.context() as patched:
        if how == "refuses":
            patched.setattr(PriorityQueue, "pop", fail)
        else:
            common_server().send(SIGSTOP)
        try:
            found = own.write(SITE, PLACE, page(2)) if "written" in how else taken(own)
        finally:
            common_server().send(SIGCONT)
    assert (bool(found), own.is_silent) == (False, True)
    clock.secs += REST_SECS
    assert taken(own) == ["1"]
    own.close()


def test_all_can_be_dropped(client: redis.Redis, key: str) -> None:
    own = worker(LifoQueue, client, key)
    for name in ("a.example", SITE):
        own.write(name, PLACE, page(1))
    own.drop()
    assert client.keys(f"{key.split(':', maxsplit=1)[0]}*") == []
