"""What a site answers, well-formed or not: `Reply` and its misbehaving kin.

    Reply(503, headers={"Retry-After": "3"})
    Reply(200, "User-agent: *\nDisallow: /", delay=0.5)
    Reply(200, rules, gate=gate)        # sent once the test has called gate.open()

`Hang`, `Reset`, `Raw`, `Trickle`, and the functions `endless`, `truncated` and `gzip_bomb`, do what
no good server does. `redirect` is a function too.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from http.client import responses
from typing import TypeAlias

BODILESS = (204, 304)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as it came in."""

    method: str
    target: str
    """As on the request line: `/page?x`, or a whole URL where the site is asked as a proxy."""
    headers: tuple[tuple[str, str], ...]
    body: bytes
    at: float
    """When it had come in, by the monotonic clock of the test."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        """The values of this field, joined by commas; None if there is none."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else None


class Gate:
    """Holds replies back until it is opened; from then on it is open."""

    def __init__(self) -> None:
        self._opened: Future[None] = Future()

    def open(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    async def passed(self) -> None:
        await asyncio.shield(asyncio.wrap_future(self._opened))


class Wire:
    """The connection that one reply goes to."""

    def __init__(
        self, asked: Asked, writer: asyncio.StreamWriter, count_sent: Callable[[str, int], None]
    ) -> None:
        self.asked = asked
        self.writer = writer
        self._count_sent = count_sent

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()
        self._count_sent(self.asked.path, len(data))

    def reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def throttle(self) -> None:
        """Keep little in buffers, so that what is counted as sent has been received, nearly."""
        self.writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14
        )
        self.writer.transport.set_write_buffer_limits(high=1 << 14)


Headers: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Reply:
    """A well-formed response, unless its fields say otherwise: nothing is checked or escaped."""

    status: int = 200
    body: bytes | str = b""
    headers: Headers = field(default=(), kw_only=True)
    delay: float = field(default=0.0, kw_only=True)
    """Seconds before it is sent."""
    gate: Gate | None = field(default=None, kw_only=True)
    """What has to be opened before it is sent."""

    async def wait(self) -> None:
        if self.gate is not None:
            await self.gate.passed()
        if self.delay:
            await asyncio.sleep(self.delay)

    async def send(self, wire: Wire) -> bool:
        """Send all of it; True if the connection can be used again."""
        body = b"" if wire.asked.method == "HEAD" or self.status in BODILESS else self.octets
        await wire.send(self.head() + body)
        return True

    @property
    def octets(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else self.body

    def head(self) -> bytes:
        fields = list(self.headers.items() if isinstance(self.headers, Mapping) else self.headers)
        if self.status not in BODILESS:
            fields.append(("Content-Length", str(len(self.octets))))
        lines = [
            f"HTTP/1.1 {self.status} {responses.get(self.status, 'Unnamed')}",
            *(f"{name}: {value}" for name, value in fields),
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@dataclass(frozen=True)
class Hang(Reply):
    """Sends `body` (by default nothing) in place of a response, and leaves the connection open."""

    async def send(self, wire: Wire) -> bool:
        await wire.send(self.octets)
        await asyncio.Event().wait()
        raise AssertionError


@dataclass(frozen=True)
class Reset(Reply):
    """Resets the connection (RST) after the request, or after `sent` octets of the response."""

    sent: int = field(default=0, kw_only=True)

    async def send(self, wire: Wire) -> bool:
        if self.sent:
            await wire.send((self.head() + self.octets)[: self.sent])
            await asyncio.sleep(0.05)  # a reset overtakes what has not been read
        wire.reset()
        return False


@dataclass(frozen=True)
class Raw(Reply):
    """Sends `body` in place of a response, then `piece` (if any) until the client goes; closes."""

    piece: bytes = field(default=b"", kw_only=True)

    async def send(self, wire: Wire) -> bool:
        wire.throttle()
        await wire.send(self.octets)
        while self.piece and not wire.writer.transport.is_closing():
            await wire.send(self.piece)
            await asyncio.sleep(0)
        return False


@dataclass(frozen=True)
class Trickle(Reply):
    """A good response which comes an octet at a time, `pause` seconds apart."""

    pause: float = field(default=0.05, kw_only=True)

    async def send(self, wire: Wire) -> bool:
        await wire.send(self.head())
        for octet in self.octets:
            await wire.send(bytes([octet]))
            await asyncio.sleep(self.pause)
        return True


def redirect(to: str, status: int = 301) -> Reply:
    return Reply(status, headers={"Location": to})


def endless(body: str) -> Reply:
    """The body is sent in chunks until the client goes; see `site.sent(path)`."""
    chunk = b"%x\r\n%b\r\n" % (len(body), body.encode())
    return Raw(200, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", piece=chunk)


def truncated(body: str) -> Reply:
    """The connection ends 100 octets before the end that Content-Length names."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body) + 100}\r\n\r\n"
    return Raw(200, head + body)


def gzip_bomb(unpacked_bytes: int = 100_000_000, line: bytes = b"Disallow: /x\n") -> Reply:
    """A body of some hundred kB that a client unpacks to `unpacked_bytes`."""
    return Reply(
        200,
        _bomb(unpacked_bytes, line),
        headers={"Content-Encoding": "gzip", "Content-Type": "text/plain"},
    )


@cache
def _bomb(unpacked_bytes: int, line: bytes) -> bytes:
    return gzip.compress(line * (unpacked_bytes // len(line)), compresslevel=6)


Answer: TypeAlias = Reply | str | bytes
Handler: TypeAlias = Answer | Iterable[Answer] | Callable[[Asked], Answer]
Chooser: TypeAlias = Callable[[Asked], Reply]


def as_reply(answer: Answer) -> Reply:
    if isinstance(answer, Reply):
        return answer
    return Reply(200, answer, headers={"Content-Type": "text/plain"})


def chooser(handler: Handler) -> Chooser:
    if callable(handler):
        return lambda asked: as_reply(handler(asked))
    answers = [handler] if isinstance(handler, (Reply, str, bytes)) else handler
    replies = _last_repeats(answers)
    return lambda _asked: next(replies)


def _last_repeats(answers: Iterable[Answer]) -> Iterator[Reply]:
    reply = Reply(500, "the test gave no answers")
    for answer in answers:
        reply = as_reply(answer)
        yield reply
    while True:
        yield reply
