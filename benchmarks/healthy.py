"""Healthy sites in a process of their own, so that a crawl's CPU time is the crawl's alone.

with HealthySites(answer_secs=0.3) as web:  # spread=True: as over a network, 0.3 s in the middle
    web.url(site, page)   # of up to 60,000 sites
    web.refused(site)     # likewise, of a site that refuses connections
    web.counts()          # what there was since the last call
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from typing_extensions import Self

ROBOTS = b"User-agent: *\nDisallow: /private/\nDisallow: /search\nAllow: /public/\nDisallow: /tmp\n"
PAGE = b"<html><title>A page</title><p>" + b"text " * 200
SPREAD = 0.8
"""The sigma of a log-normal distribution: a tenth of the answers takes 2.8 medians or more."""
EVERYWHERE = "0.0.0.0"  # noqa: S104  # each of 127/8 is a site


class HealthySites:
    """Sites that answer, each an address of 127/8, on one port of a server that is a process.

    With *real* each has one of the files of the corpus that allow every robot the pages, in both
    readings; else all have one file of four rules.
    """

    def __init__(
        self,
        *,
        answer_secs: float = 0.0,
        spread: bool = False,
        tls: bool = False,
        real: bool = False,
    ) -> None:
        self._arguments = {"answer_secs": answer_secs, "spread": spread, "tls": tls, "real": real}
        self._scheme = "https" if tls else "http"
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        # Bound and not listened at: who connects is refused.
        nobody = self._closing.enter_context(socket.socket())
        nobody.bind((EVERYWHERE, 0))
        self._refusing_port = nobody.getsockname()[1]
        self._process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(self._arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._closing.close()

    def url(self, site: int, page: int = 0) -> str:
        return f"{self._scheme}://{_host(site)}:{self._port}/page/{page}"

    def refused(self, site: int, page: int = 0) -> str:
        return f"{self._scheme}://{_host(site)}:{self._refusing_port}/page/{page}"

    def counts(self) -> dict[str, int]:
        """Return how many connections, robots.txt and pages there were since the last call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("counts\n")
        self._process.stdin.flush()
        found: dict[str, int] = json.loads(self._process.stdout.readline())
        return found


def _host(site: int) -> str:
    return f"127.{site // 62_500 + 1}.{site // 250 % 250}.{site % 250 + 1}"


class _Talk(asyncio.Protocol):
    """One connection."""

    def __init__(
        self, counts: dict[str, int], secs: Callable[[], float], files: Sequence[bytes]
    ) -> None:
        self._counts = counts
        self._secs = secs
        self._files = files
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._counts["connections"] += 1

    def data_received(self, data: bytes) -> None:
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for head in heads:
            is_robots = head.startswith(b"GET /robots.txt ")
            self._counts["robots" if is_robots else "pages"] += 1
            answer = _response(self._robots(), b"plain") if is_robots else _response(PAGE, b"html")
            if secs := self._secs():
                asyncio.get_running_loop().call_later(secs, self._transport.write, answer)
            else:
                self._transport.write(answer)

    def _robots(self) -> bytes:
        host: str = self._transport.get_extra_info("sockname")[0]
        return self._files[_number(host) % len(self._files)]


def _files_allowing(url: str) -> list[bytes]:
    """Return the files of the corpus by which any robot may fetch *url*."""
    from corpus import corpus  # noqa: PLC0415

    from scrapy_koster import KosterRobotParser, Rfc9309RobotParser  # noqa: PLC0415

    readings = (KosterRobotParser, Rfc9309RobotParser)
    bodies = [file.body for file in corpus().files]
    return [body for body in bodies if all(each(body).allowed(url, "Scrapy") for each in readings)]


def _number(host: str) -> int:
    _, high, middle, low = map(int, host.split("."))
    return (high - 1) * 62_500 + middle * 250 + low - 1


def _response(body: bytes, kind: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/%b\r\nContent-Length: %d\r\n\r\n"
    return head % (kind, len(body)) + body


async def _serve(answer_secs: float, *, spread: bool, tls: bool, real: bool) -> None:
    chance = random.Random(0)

    def secs() -> float:
        return answer_secs * (chance.lognormvariate(0, SPREAD) if spread else 1)

    counts: dict[str, int] = dict.fromkeys(("connections", "robots", "pages"), 0)
    context: Any = None
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    files = _files_allowing("http://127.0.0.1/page/0") if real else [ROBOTS]
    if tls:
        from harness.certificate import tls_context  # noqa: PLC0415  # where it is needed

        context = tls_context("127.0.0.1")
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _Talk(counts, secs, files), EVERYWHERE, 0, backlog=4000, ssl=context
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(counts), flush=True)
        counts.update(dict.fromkeys(counts, 0))


if __name__ == "__main__":
    asyncio.run(_serve(**json.loads(sys.argv[1])))
