"""The sites of a plan on one port, each at an address of 127/8, and a log of their requests."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass
from urllib.parse import urlsplit

from typing_extensions import Self

from random_crawls.plan import Page, Plan, Site

PLAIN, HTML = "text/plain", "text/html; charset=utf-8"
STATUS_OF = {
    "none": (404, 410, 400, 451),
    "closed": (401, 403),
    "busy": (503, 500, 429, 408, 425, 502),
}
CHALLENGE = b'<html><head><meta http-equiv="refresh" content="0; url=/check"></head></html>'
SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"


@dataclass
class Visit:
    """One request, as the server saw it."""

    site: int
    path: str
    run: int
    at: float
    """The time of its arrival, or a little later."""
    ended: float | None = None
    """Time before the answer was sent, None if no answer was sent."""
    status: int = 0

    @property
    def is_robots(self) -> bool:
        return self.path == "/robots.txt"

    @property
    def page(self) -> int:
        """Number of the page, -1 if it is no page."""
        name = self.path.rpartition("/")[2]
        return int(name) if name.isdigit() else -1


@dataclass
class Answer:
    status: int
    body: bytes = b""
    kind: str = HTML
    headers: str = ""
    secs: float = 0.0
    cut: int = 0


class Web:
    """All sites of a plan, and their proxy."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.visits: list[Visit] = []
        self.run = 0
        self.healed = False
        """Whether sites that fail until an event are repaired."""
        self._counts = Counter[tuple[int, str]]()
        self._talks: set[_Talk] = set()
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> Self:
        self._reserved = [socket.socket() for _ in range(2)]
        for each in self._reserved:  # bound and not listened at: connections are refused
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("0.0.0.0", 0))
        self.refusing_port, self.proxy_port = (each.getsockname()[1] for each in self._reserved)
        self.port = await self._listen(0)
        return self

    async def _listen(self, port: int) -> int:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Talk(self), "0.0.0.0", port, backlog=1000)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_error: object) -> None:
        self.proxy_dies()
        self._servers[0].close()
        for each in self._reserved:
            each.close()
        for talk in self._talks:
            talk.transport.abort()

    async def proxy_lives(self) -> None:
        await self._listen(self.proxy_port)

    def proxy_dies(self) -> None:
        while len(self._servers) > 1:
            self._servers.pop().close()
        for talk in self._talks:
            if talk.port == self.proxy_port:
                talk.transport.abort()

    def url(self, number: int) -> str:
        """Return the URL of a page."""
        page = self.plan.pages[number]
        return self.site_url(page.site) + f"/{page.folder}/{number}"

    def site_url(self, number: int) -> str:
        refuses = self.plan.sites[number].robots == "refuse"
        port = self.refusing_port if refuses else self.port
        return f"http://127.7.{number // 200}.{number % 200 + 1}:{port}"

    def answer(self, visit: Visit) -> Answer | None:
        """Return the answer, None for no answer, ``Answer(0)`` for a reset."""
        self._counts[visit.site, visit.path] += 1
        count = self._counts[visit.site, visit.path]
        site = self.plan.sites[visit.site]
        if visit.path == "/sitemap.xml":
            urls = (f"<url><loc>{self.url(each)}</loc></url>" for each, _ in self.plan.starts)
            body = f'<urlset xmlns="{SITEMAPS}">{"".join(urls)}</urlset>'
            return Answer(200, body.encode(), "application/xml")
        if visit.path == "/rules.txt":
            return Answer(200, site.text(1).encode(), PLAIN)
        if visit.is_robots:
            return self._robots(site, count)
        return self._page(self.plan.pages[visit.page], count)

    def _robots(self, site: Site, count: int) -> Answer | None:
        """Return its answer to the attempt of this number."""
        if count <= site.fails or (site.until_event and not self.healed):
            return Answer(503, secs=site.secs)
        if site.robots in STATUS_OF:
            codes = STATUS_OF[site.robots]
            body = b"User-agent: *\nDisallow: /" if site.robots == "none" else b""
            return Answer(codes[site.number % len(codes)], body, PLAIN, secs=site.secs)
        text = site.text(count).encode()
        life = f"Cache-Control: max-age={site.life}\r\n" if site.life else ""
        answers = {
            "hang": None,
            "reset": Answer(0),
            "empty": Answer(200, b"", PLAIN),
            "html": Answer(200, b"<html><p>Welcome to our shop</p></html>" * 9),
            "challenge": Answer(200, CHALLENGE),
            "cut": Answer(200, text, PLAIN, cut=100),
            "redirect": Answer(301, headers="Location: /rules.txt\r\n", secs=site.secs),
        }
        return answers.get(site.robots, Answer(200, text, PLAIN, life, site.secs))

    def _page(self, page: Page, count: int) -> Answer:
        if count <= page.fails:
            return Answer(503, secs=page.secs)
        if page.status == 302:
            return Answer(302, headers=f"Location: {self.url(page.links[0])}\r\n")
        text = "<html><title>A page</title>"
        for each in page.links:
            text += f'<a href="{self.url(each)}" class="{"again" * (each in page.again)}">x</a>'
        text += "".join(f'<img src="{self.url(each)}">' for each in page.pictures)
        text += "".join(f'<link rel="inner" href="{self.url(each)}">' for each in page.inner)
        return Answer(page.status, text.encode().ljust(page.size, b"x"), secs=page.secs)


class _Talk(asyncio.Protocol):
    """One connection."""

    transport: asyncio.Transport

    def __init__(self, web: Web) -> None:
        self._web, self._rest = web, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._host, self.port = transport.get_extra_info("sockname")
        self._web._talks.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._web._talks.discard(self)

    def data_received(self, data: bytes) -> None:
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for head in heads:
            url = urlsplit(head.split(b" ", 2)[1].decode("latin-1"))
            _, _, high, low = map(int, (url.hostname or self._host).split("."))
            visit = Visit(high * 200 + low - 1, url.path, self._web.run, time.time())
            self._web.visits.append(visit)
            answer = self._web.answer(visit)
            if answer is not None and answer.secs:
                asyncio.get_running_loop().call_later(answer.secs, self._send, visit, answer)
            elif answer is not None:
                self._send(visit, answer)

    def _send(self, visit: Visit, answer: Answer) -> None:
        if self.transport.is_closing():
            return
        visit.ended, visit.status = time.time(), answer.status
        if answer.status:
            length = len(answer.body) + answer.cut
            head = f"HTTP/1.1 {answer.status} X\r\nContent-Type: {answer.kind}\r\n"
            head += f"{answer.headers}Content-Length: {length}\r\n\r\n"
            self.transport.write(head.encode() + answer.body)
        else:
            sock = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if answer.cut or not answer.status:
            self.transport.close()
