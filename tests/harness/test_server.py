"""The test server, tried with a client that hides nothing."""

from __future__ import annotations

import gzip
import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from harness.replies import (
    Endless,
    Hang,
    Raw,
    Reply,
    Reset,
    Trickle,
    gzip_bomb,
    overlong,
    redirect,
    truncated,
)
from harness.server import Server, Site
from harness.virtual import time

RULES = "User-agent: *\nDisallow: /"


@contextmanager
def connection(site: Site) -> Iterator[http.client.HTTPConnection]:
    if site.scheme == "https":
        context = ssl._create_unverified_context()
        conn: http.client.HTTPConnection = http.client.HTTPSConnection(
            site.host, site.port, timeout=5, context=context
        )
    else:
        conn = http.client.HTTPConnection(site.host, site.port, timeout=5)
    try:
        yield conn
    finally:
        conn.close()


def get(site: Site, target: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    with connection(site) as conn:
        conn.request("GET", target, headers=headers)
        response = conn.getresponse()
        return response, response.read()


def status(site: Site, target: str) -> int:
    return get(site, target)[0].status


def test_a_new_site_has_pages_but_no_robots_txt(server: Server) -> None:
    site = server.site()
    assert status(site, "/robots.txt") == 404
    response, body = get(site, "/any")
    assert (response.status, response.getheader("Content-Type")) == (
        200,
        "text/html; charset=utf-8",
    )
    assert body == b"<title>/any</title>"


@pytest.mark.parametrize(
    "handler", [RULES, RULES.encode(), Reply(200, RULES), [RULES], lambda asked: RULES]
)
def test_what_a_handler_may_be(server: Server, handler: object) -> None:
    site = server.site()
    site.robots = handler  # type: ignore[assignment]
    assert get(site, "/robots.txt")[1] == RULES.encode()


def test_answers_in_turn_of_which_the_last_repeats(server: Server) -> None:
    site = server.site()
    site.robots = [Reply(503), Reply(500), RULES]
    assert [status(site, "/robots.txt") for _ in range(5)] == [503, 500, 200, 200, 200]


def test_a_request_is_kept_as_it_came(server: Server) -> None:
    site = server.site()
    before = time.monotonic()
    get(site, "/a?b=c", Accept="text/plain")
    [asked] = site.requests
    assert (asked.method, asked.target, asked.path) == ("GET", "/a?b=c", "/a")
    assert asked.header("accept") == "text/plain"
    assert asked.header("Cookie") is None
    assert before < asked.at < time.monotonic()
    assert asked.client_port > 1024


def test_requests_are_counted_by_path_and_by_target(server: Server) -> None:
    site = server.site()
    for target in ("/robots.txt", "/a?b", "/a?c"):
        get(site, target)
    assert [site.asked(path) for path in ("/robots.txt", "/a", "/a?b", "/b")] == [1, 2, 1, 0]
    assert site.pages_asked == ["/a?b", "/a?c"]


def test_a_connection_is_kept(server: Server) -> None:
    site = server.site()
    with connection(site) as conn:
        for _ in range(3):
            conn.request("GET", "/")
            conn.getresponse().read()
    assert site.connections == 1
    assert len({asked.client_port for asked in site.requests}) == 1


def test_a_reply_waits_for_its_gate(server: Server) -> None:
    site, gate = server.site(), server.gate()
    site.page("/", Reply(200, "late", gate=gate))
    threading.Timer(0.2, gate.open).start()
    began = time.monotonic()
    assert get(site, "/")[1] == b"late"
    assert time.monotonic() - began >= 0.15


def test_a_reply_is_delayed(server: Server) -> None:
    site = server.site()
    site.page("/", Reply(delay=0.2))
    began = time.monotonic()
    get(site, "/")
    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_has_none(server: Server, status: int) -> None:
    site = server.site()
    site.page("/", Reply(status, "unwanted", headers={"ETag": '"1"'}))
    response, body = get(site, "/")
    assert (response.status, body, response.getheader("ETag")) == (status, b"", '"1"')
    assert response.getheader("Content-Length") is None


def test_a_hanging_site_lets_go_when_it_closes() -> None:
    server = Server()
    site = server.site()
    site.robots = Hang()
    closing = threading.Timer(0.2, server.close)
    closing.start()
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        get(site, "/robots.txt")
    closing.join()
    assert site.asked("/robots.txt") == 1


def test_a_reset(server: Server) -> None:
    site = server.site()
    site.robots = Reset()
    with pytest.raises(ConnectionResetError):
        get(site, "/robots.txt")
    assert site.asked("/robots.txt") == 1


def test_a_reset_in_the_body(server: Server) -> None:
    site = server.site()
    site.robots = Reset(200, RULES, sent=50)
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        get(site, "/robots.txt")


@pytest.mark.parametrize(
    "body", [b"garbage\r\n\r\n", b"\x00\xff" * 50, b"220 smtp.example.org ESMTP\r\n"]
)
def test_garbage(server: Server, body: bytes) -> None:
    site = server.site()
    site.robots = Raw(body)
    with pytest.raises(http.client.BadStatusLine):
        get(site, "/robots.txt")


def test_not_a_word(server: Server) -> None:
    site = server.site()
    site.robots = Raw()
    with pytest.raises(http.client.RemoteDisconnected):
        get(site, "/robots.txt")


@pytest.mark.parametrize("chunked", [True, False])
def test_an_endless_body_ends_when_the_client_goes(server: Server, chunked: bool) -> None:
    site = server.site()
    site.robots = Endless(chunked=chunked)
    with connection(site) as conn:
        conn.request("GET", "/robots.txt")
        response = conn.getresponse()
        assert len(response.read(1_000_000)) == 1_000_000
        response.close()
    time.sleep(0.3)
    sent = site.sent("/robots.txt")
    time.sleep(0.2)
    assert site.sent("/robots.txt") == sent
    assert 1_000_000 <= sent < 20_000_000


def test_a_bomb_is_small_before_it_goes_off(server: Server) -> None:
    site = server.site()
    site.robots = gzip_bomb(10_000_000)
    response, body = get(site, "/robots.txt")
    assert response.getheader("Content-Encoding") == "gzip"
    assert len(body) < 100_000
    assert 9_900_000 < len(gzip.decompress(body)) <= 10_000_000


def test_a_truncated_body(server: Server) -> None:
    site = server.site()
    site.robots = truncated(RULES, missing=10)
    with pytest.raises(http.client.IncompleteRead) as caught:
        get(site, "/robots.txt")
    assert (caught.value.partial, caught.value.expected) == (RULES.encode(), 10)


def test_a_body_longer_than_it_says(server: Server) -> None:
    site = server.site()
    site.robots = overlong(RULES, surplus=1)
    assert get(site, "/robots.txt")[1] == RULES.encode()[:-1]


def test_a_slow_body(server: Server) -> None:
    site = server.site()
    site.robots = Trickle(200, RULES, step=10, pause=0.05)
    began = time.monotonic()
    assert get(site, "/robots.txt")[1] == RULES.encode()
    assert time.monotonic() - began >= 0.1


def test_a_redirect(server: Server) -> None:
    site = server.site()
    site.page("/a", redirect("/b", 308))
    response, _ = get(site, "/a")
    assert (response.status, response.getheader("Location")) == (308, "/b")


def test_headers_are_sent_as_they_are(server: Server) -> None:
    site = server.site()
    site.page(
        "/",
        Reply(headers=[("X", "a"), ("X", "b"), ("Long", "x" * 50_000), ("Y", "1\r\nInjected: 2")]),
    )
    with socket.create_connection((site.host, site.port), timeout=5) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        received = b""
        while b"\r\n\r\n" not in received:
            received += sock.recv(1 << 16)
    assert (
        b"\r\nX: a\r\nX: b\r\nLong: " + b"x" * 50_000 + b"\r\nY: 1\r\nInjected: 2\r\n" in received
    )


def test_a_site_that_is_down_refuses(server: Server) -> None:
    site = server.down()
    with pytest.raises(ConnectionRefusedError):
        get(site, "/")
    site.come_up()
    assert status(site, "/") == 200
    site.go_down()
    with pytest.raises(ConnectionRefusedError):
        get(site, "/")
    assert site.asked("/") == 1


def test_sites_have_ports_and_hosts_of_their_own(server: Server) -> None:
    first, second, other = server.site(), server.site(), server.site(host="127.0.0.2")
    assert first.port != second.port
    assert other.url("/x") == f"http://127.0.0.2:{other.port}/x"
    assert status(other, "/x") == 200
    assert (first.requests, second.requests) == ((), ())


def test_https(server: Server) -> None:
    site = server.site("https")
    site.robots = RULES
    assert site.url().startswith("https://127.0.0.1:")
    assert get(site, "/robots.txt")[1] == RULES.encode()


def test_a_client_that_does_not_speak_tls_gets_nothing_of_an_https_site(server: Server) -> None:
    site = server.site("https")
    with socket.create_connection((site.host, site.port), timeout=5) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with suppress(ConnectionResetError):
            assert b"HTTP" not in sock.recv(1 << 16)
    assert site.requests == ()


def test_a_proxy_forwards(server: Server) -> None:
    site, proxy = server.site(), server.proxy()
    site.robots = RULES
    assert get(proxy, site.url("/robots.txt?x"), Accept="text/plain")[1] == RULES.encode()
    assert proxy.requests[0].target == site.url("/robots.txt?x")
    assert [(asked.target, asked.header("Accept")) for asked in site.requests] == [
        ("/robots.txt?x", "text/plain")
    ]


def test_a_proxy_answers_itself(server: Server) -> None:
    proxy = server.proxy()
    proxy.page("http://example.org/robots.txt", RULES)
    assert get(proxy, "http://example.org/robots.txt")[1] == RULES.encode()


def test_a_proxy_tunnels(server: Server) -> None:
    site, proxy = server.site("https"), server.proxy()
    conn = http.client.HTTPSConnection(
        proxy.host, proxy.port, timeout=5, context=ssl._create_unverified_context()
    )
    conn.set_tunnel(site.host, site.port)
    conn.request("GET", "/page")
    assert conn.getresponse().read() == b"<title>/page</title>"
    conn.close()
    assert proxy.requests[0].method == "CONNECT"
    assert site.asked("/page") == 1


def test_what_a_handler_raises_is_kept() -> None:
    def handler(asked: object) -> str:
        raise ZeroDivisionError

    with Server() as server:
        site = server.site()
        site.robots = handler
        with pytest.raises(http.client.RemoteDisconnected):
            get(site, "/robots.txt")
        assert [type(error) for error in server.errors] == [ZeroDivisionError]
