"""How many octets an answer may have on the wire, and who counts them on which connection."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.exceptions import DownloadCancelledError
from twisted.internet.defer import succeed

from scrapy_koster.crawl.engine.meter import (
    HEADERS_MAX_BYTES,
    HEADERS_TOO_LONG,
    Meter,
    MeteredPool,
    meter_backend,
)

LINE = b"x" * 1024


class Connection:
    """Of Twisted, as far as it is watched."""

    def __init__(self) -> None:
        self.state = "QUIESCENT"
        self.received: list[bytes] = []
        self.aborted = 0
        self.transport = SimpleNamespace(abortConnection=self._abort)

    def _abort(self) -> None:
        self.aborted += 1

    def dataReceived(self, data: bytes) -> None:  # noqa: N802  # Twisted's name
        self.received.append(data)


class Endpoint:
    """Connects at once, and says so."""

    def __init__(self) -> None:
        self.connected: list[Connection] = []

    def connect(self, _factory: Any) -> Any:
        self.connected.append(Connection())
        return succeed(self.connected[-1])


def connected(meter: Meter, pool: MeteredPool, endpoint: Endpoint) -> Connection:
    found: list[Any] = []
    with meter.counting():
        pool.getConnection(("http", "a.example"), endpoint).addCallback(found.append)  # type: ignore[arg-type]
    assert found == endpoint.connected[-1:]
    connection: Connection = found[0]
    return connection


def test_who_sends_in_a_context_of_his_own_is_not_counted(pool: MeteredPool) -> None:
    endpoint, found = Endpoint(), list[Any]()
    pool.getConnection(("http", "a.example"), endpoint).addCallback(found.append)  # type: ignore[arg-type]
    assert found == endpoint.connected
    found[0].dataReceived(LINE * 1000)
    assert (len(found[0].received), found[0].aborted) == (1, 0)


@pytest.fixture
def pool() -> MeteredPool:
    return MeteredPool(SimpleNamespace())


def test_each_connection_of_twisted_is_for_one_answer(pool: MeteredPool) -> None:
    assert not pool.persistent
    endpoint = Endpoint()
    first = connected(Meter(10), pool, endpoint)
    assert connected(Meter(10), pool, endpoint) is not first


def test_what_is_not_too_long_is_read(pool: MeteredPool) -> None:
    connection = connected(Meter(10), pool, Endpoint())
    for _ in range(HEADERS_MAX_BYTES // len(LINE)):
        connection.dataReceived(LINE)
    connection.dataReceived(b"the last")
    assert connection.received == [LINE] * 64 + [b"the last"]
    assert not connection.aborted


def test_headers_without_end_are_dropped(pool: MeteredPool) -> None:
    meter = Meter(10)
    connection = connected(meter, pool, Endpoint())
    for _ in range(66):
        connection.dataReceived(LINE)
    assert len(connection.received) == 65
    assert connection.aborted == 1
    with pytest.raises(DownloadCancelledError, match=HEADERS_TOO_LONG):
        meter.check()


def test_what_is_lost_already_is_not_dropped_again(pool: MeteredPool) -> None:
    meter = Meter(10)
    connection = connected(meter, pool, Endpoint())
    connection.state = "CONNECTION_LOST"
    meter.end()
    assert not connection.aborted


def test_nothing_is_dropped_before_there_is_a_connection() -> None:
    Meter(10).end()


def test_the_chunks_of_a_body_may_be_as_long_again() -> None:
    meter = Meter(1000)
    meter.count(b"x" * 500)
    meter.headers_ended()
    meter.count(b"x" * (HEADERS_MAX_BYTES + 1500))
    meter.count(b"x")  # as many as may be
    meter.check()
    with pytest.raises(DownloadCancelledError) as raised:
        meter.count(b"x")
    limit = HEADERS_MAX_BYTES + 2000
    assert raised.value.args == (f"its answer is longer than {limit} octets",)


class Stream:
    """Of httpcore: gives what it is asked for, over TLS as well."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[tuple[Any, ...]] = []

    async def read(self, *asked: Any, **named: Any) -> bytes:
        self.asked.append((*asked, named))
        return LINE * 65

    async def start_tls(self, *asked: Any, **named: Any) -> Stream:
        over = Stream(f"{self.name} over TLS")
        over.asked.append((*asked, named))
        return over


class Backend:
    async def connect_tcp(self, *asked: Any, **named: Any) -> Stream:
        return Stream(f"{asked}, {named}")


@pytest.mark.parametrize("over_tls", [False, True])
async def test_what_httpx_reads_is_counted(*, over_tls: bool) -> None:
    backend = Backend()
    meter_backend(backend)
    stream = await backend.connect_tcp("a.example", port=80)
    assert stream.name == "('a.example',), {'port': 80}"
    if over_tls:
        stream = await stream.start_tls("context", timeout=1)
        assert stream.asked == [("context", {"timeout": 1})]
        assert stream.name == "('a.example',), {'port': 80} over TLS"
    with Meter(10).counting():
        assert await stream.read(4096, timeout=2) == LINE * 65
        assert stream.asked[-1] == (4096, {"timeout": 2})
        with pytest.raises(DownloadCancelledError, match=HEADERS_TOO_LONG):
            await stream.read(4096)
    with Meter(10).counting():  # another answer
        await stream.read(4096)
