"""Many sites on one port of this machine, for whole crawls: 127.x.y.z each is one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

ROBOTS = b"User-agent: *\nDisallow: /private/\nDisallow: /search\nAllow: /public/\nDisallow: /tmp\n"
PAGE = b"<html><title>A page</title><p>" + b"text " * 200


class Web:
    """A server in a thread. Sites whose host is in ``hanging`` never answer /robots.txt."""

    def __init__(self, *, page_secs: float = 0.0) -> None:
        self.pages: Counter[str] = Counter()
        self.robots: Counter[str] = Counter()
        self.hanging: set[str] = set()
        self.delays: dict[str, float] = {}
        """The Crawl-delay of hosts that ask for one, in seconds."""
        self.visits: defaultdict[str, list[float]] = defaultdict(list)
        """When each of these was visited."""
        self._page_secs = page_secs
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "0.0.0.0", 0))  # noqa: S104
        self.port: int = self._server.sockets[0].getsockname()[1]

    def site(self, number: int) -> str:
        """Return the origin of the site of this *number*, up to 64,000."""
        return f"http://127.1.{number // 250}.{number % 250 + 1}:{self.port}"

    def close(self) -> None:
        """End it; connections that hang are dropped."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path = head.split(" ", 2)[1]
                fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:-2])
                writer.write(await self._answer(path, fields))
                await writer.drain()

    async def _answer(self, path: str, fields: Mapping[str, str]) -> bytes:
        host = fields["Host"].partition(":")[0]
        delay = self.delays.get(host)
        if delay is not None:
            self.visits[host].append(time.monotonic())
        if path == "/robots.txt":
            self.robots[host] += 1
            if host in self.hanging:
                await asyncio.sleep(3600)
            asked = b"" if delay is None else b"Crawl-delay: %d\n" % delay
            return _response(ROBOTS + asked, "text/plain")
        self.pages[host] += 1
        if self._page_secs:
            await asyncio.sleep(self._page_secs)
        return _response(PAGE, "text/html")


def _response(body: bytes, kind: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
