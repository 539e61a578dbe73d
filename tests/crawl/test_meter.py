"""How many octets an answer may have on the wire, and who counts them on which connection."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.exceptions import DownloadCancelledError
from twisted.internet.base import DelayedCall
from twisted.internet.defer import succeed
from twisted.internet.task import Clock
from twisted.web.client import HTTPConnectionPool

from scrapy_koster.crawl.engine.meter import (
    HEADERS_MAX_BYTES,
    HEADERS_TOO_LONG,
    Meter,
    MeteredPool,
    meter_backend,
    meter_connector,
)

LINE = b"x" * 1024
KEY = ("http", "a.example", 80)


class Connection:
    """Of Twisted, as far as it is watched."""

    def __init__(self) -> None:
        self.state = "QUIESCENT"
        self.received: list[bytes] = []
        self.aborted = self.lost = 0
        self.transport = SimpleNamespace(abortConnection=self._abort, loseConnection=self._lose)

    def _abort(self) -> None:
        self.aborted += 1

    def _lose(self) -> None:
        self.lost += 1

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
    with meter:
        pool.getConnection(KEY, endpoint).addCallback(found.append)  # type: ignore[arg-type]
    assert found == endpoint.connected[-1:]
    connection: Connection = found[0]
    return connection


def test_who_sends_in_a_context_of_his_own_is_not_counted(pool: MeteredPool) -> None:
    endpoint, found = Endpoint(), list[Any]()
    pool.getConnection(KEY, endpoint).addCallback(found.append)  # type: ignore[arg-type]
    assert found == endpoint.connected
    found[0].dataReceived(LINE * 1000)
    assert (len(found[0].received), found[0].aborted) == (1, 0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pages(clock: Clock) -> HTTPConnectionPool:
    """The pool of the crawl."""
    return HTTPConnectionPool(clock)  # type: ignore[no-untyped-call]


@pytest.fixture
def pool(pages: HTTPConnectionPool) -> MeteredPool:
    return MeteredPool(pages)


def test_each_robots_txt_comes_over_a_new_connection(pool: MeteredPool) -> None:
    endpoint = Endpoint()
    first = connected(Meter(10), pool, endpoint)
    ended(pool, first)
    assert connected(Meter(10), pool, endpoint) is not first


def ended(pool: MeteredPool, connection: Connection, key: object = KEY) -> None:
    """Do what Twisted does where an answer has come whole."""
    pool._putConnection(key, connection)  # type: ignore[arg-type]


def test_a_connection_is_the_crawls_when_its_answer_has_come(
    pool: MeteredPool, pages: HTTPConnectionPool, clock: Clock
) -> None:
    meter = Meter(10)
    connection = connected(meter, pool, Endpoint())
    ended(pool, connection)
    for _ in range(100):  # no limit any more
        connection.dataReceived(LINE)
    meter.end()
    assert (len(connection.received), connection.aborted) == (100, 0)
    found: list[Any] = []
    pages.getConnection(KEY, Endpoint()).addCallback(found.append)  # type: ignore[arg-type]
    assert found[0]._clientProtocol is connection
    ended(pool, connection)  # a page has come over it
    clock.advance(100)
    assert (connection.lost, clock.getDelayedCalls() != []) == (0, True)


def test_a_connection_that_no_page_uses_is_not_kept_for_long(
    pool: MeteredPool, pages: HTTPConnectionPool, clock: Clock
) -> None:
    connection = connected(Meter(10), pool, Endpoint())
    ended(pool, connection)
    lost = []
    for _ in range(11):
        clock.advance(1)
        lost.append(connection.lost)
    assert lost == [0] * 9 + [1] * 2
    assert pages._timeouts == {}


def test_no_timer_is_looked_for_among_all_those_of_the_reactor(
    pool: MeteredPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broad crawl has ten thousand: each kept connection has one for 240 s."""

    def refused(*_: Any) -> None:
        raise AssertionError("reset() to an earlier time takes linear time")

    monkeypatch.setattr(DelayedCall, "reset", refused)
    ended(pool, connected(Meter(10), pool, Endpoint()))


def test_few_connections_wait_for_a_page(pool: MeteredPool, pages: HTTPConnectionPool) -> None:
    connections = [connected(Meter(10), pool, Endpoint()) for _ in range(500)]
    for number, connection in enumerate(connections):
        ended(pool, connection, ("http", f"{number}.example"))
    assert [connection.lost for connection in connections] == [0] * 200 + [1] * 300
    assert len(pages._timeouts) == 200


def test_a_connection_that_a_page_has_taken_leaves_room_for_another(
    pool: MeteredPool, pages: HTTPConnectionPool
) -> None:
    for number in range(500):
        key = ("http", f"{number}.example", 80)
        connection = connected(Meter(10), pool, Endpoint())
        ended(pool, connection, key)
        pages.getConnection(key, Endpoint())  # type: ignore[arg-type]
        assert not connection.lost


def test_a_connection_that_was_lost_is_not_kept(clock: Clock) -> None:
    pages = Quiet(clock)  # type: ignore[no-untyped-call]
    pool = MeteredPool(pages)
    connections = [connected(Meter(10), pool, Endpoint()) for _ in range(500)]
    for connection in connections:
        connection.state = "CONNECTION_LOST"
        ended(pool, connection)
    assert pages._timeouts == {}
    assert not any(connection.lost or connection.aborted for connection in connections)


class Quiet(HTTPConnectionPool):
    """Does not log that a connection was lost."""

    _log: Any = SimpleNamespace(failure=lambda _: None)


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
    with Meter(10):
        assert await stream.read(4096, timeout=2) == LINE * 65
        assert stream.asked[-1] == (4096, {"timeout": 2})
        with pytest.raises(DownloadCancelledError, match=HEADERS_TOO_LONG):
            await stream.read(4096)
    with Meter(10):  # another answer
        await stream.read(4096)


class Connector:
    """Of aiohttp, as far as it is metered."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.received: list[bytes] = []
        self.aborted = 0
        self.closed = False
        self._times = itertools.count()
        self._conns: dict[str, list[tuple[Any, float]]] = {}

    async def connect(self, *asked: Any, **named: Any) -> Any:
        self.asked.append((asked, named))
        transport = SimpleNamespace(abort=self._abort)
        return SimpleNamespace(protocol=Protocol(self.received), transport=transport)

    def _abort(self) -> None:
        self.aborted += 1

    def _release(self, key: str, protocol: Any, *, should_close: bool = False) -> None:
        if should_close:
            self.aborted += 1
        else:
            self._conns.setdefault(key, []).append((protocol, next(self._times)))

    @property
    def kept(self) -> dict[str, list[Any]]:
        return {key: [protocol for protocol, _ in kept] for key, kept in self._conns.items()}


class Closing(Connector):
    """Its sites close each connection with the answer."""

    def _release(self, key: str, protocol: Any, *, should_close: bool = False) -> None:
        super()._release(key, protocol, should_close=True)


class Protocol:
    def __init__(self, received: list[bytes]) -> None:
        self._received = received

    def data_received(self, data: bytes) -> None:
        self._received.append(data)


async def test_what_aiohttp_reads_is_counted() -> None:
    connector, meter = Connector(), Meter(10)
    meter_connector(connector, Connector())
    with meter:
        connection = await connector.connect("request", traces=[])
    assert connector.asked == [(("request",), {"traces": []})]
    connection.protocol.data_received(LINE * 65)
    assert (connector.received, connector.aborted) == ([LINE * 65], 0)
    connection.protocol.data_received(LINE)
    assert (connector.received, connector.aborted) == ([LINE * 65], 1)
    with meter, pytest.raises(DownloadCancelledError, match=HEADERS_TOO_LONG):
        await connector.connect("request")  # aiohttp sends a request again
    assert len(connector.asked) == 1


async def test_what_aiohttp_reads_of_pages_is_not_counted() -> None:
    connector = Connector()
    meter_connector(connector, Connector())
    connection = await connector.connect("request")
    connection.protocol.data_received(LINE * 1000)
    connection.protocol.data_received(LINE)
    assert (len(connector.received), connector.aborted) == (2, 0)


async def test_a_connection_of_aiohttp_that_is_whole_goes_to_the_pages() -> None:
    connector, pages, meter = Connector(), Connector(), Meter(10)
    meter_connector(connector, pages)
    with meter:
        whole = (await connector.connect("request")).protocol
        broken = (await connector.connect("request")).protocol
    connector._release("broken", broken, should_close=True)
    connector._release("whole", whole)
    assert (connector.kept, pages.kept) == ({}, {"whole": [whole]})
    meter.end()
    assert connector.aborted == 1
    for _ in range(2):  # it is a page's: however long that is
        whole.data_received(LINE * 1000)
    assert connector.received == [LINE * 1000] * 2


async def test_few_connections_of_aiohttp_wait_for_a_page() -> None:
    connector, pages = Connector(), Connector()
    meter_connector(connector, pages)
    protocols = [(await connector.connect("unmetered")).protocol for _ in range(203)]
    for number, protocol in enumerate(protocols[:201]):
        connector._release(f"{number}", protocol)
    assert (len(pages.kept), pages.aborted) == (200, 1)
    del pages._conns["0"]  # a page has it
    connector._release("201", protocols[201])
    assert (len(pages.kept), pages.aborted) == (200, 1)
    pages.closed = True
    connector._release("202", protocols[202])
    assert (len(pages.kept), list(connector.kept)) == (200, ["202"])


async def test_a_connection_of_aiohttp_that_a_page_has_used_leaves_room_for_another() -> None:
    connector, pages = Connector(), Connector()
    meter_connector(connector, pages)
    for number in range(500):
        protocol = (await connector.connect("unmetered")).protocol
        connector._release(f"{number}", protocol)
        pages._conns[f"{number}"].clear()  # a page takes it, and has come
        pages._release(f"{number}", protocol)
    assert (len(pages.kept), pages.aborted) == (500, 0)


async def test_a_connection_of_aiohttp_that_is_closed_takes_no_room() -> None:
    connector, pages = Connector(), Closing()
    meter_connector(connector, pages)
    protocol = (await connector.connect("unmetered")).protocol
    connector._release("closed", protocol)
    assert (connector.kept, pages.kept) == ({}, {})


async def test_one_of_another_aiohttp_is_counted_all_the_same() -> None:
    connector, meter = Connector(), Meter(10)
    meter_connector(connector, SimpleNamespace())
    with meter:
        protocol = (await connector.connect("request")).protocol
    connector._release("key", protocol)
    assert connector.kept == {"key": [protocol]}
    for _ in range(2):
        protocol.data_received(LINE * 65)
    assert connector.aborted == 1
