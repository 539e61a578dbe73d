"""The process that the programs of forks.py are forked from. It runs as a script."""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

# What a crawl and the commands import, and what does not install a reactor.
IMPORTED = (
    "encodings.charmap",
    "sqlite3",
    "unittest",
    "scrapy.cmdline",
    "scrapy.crawler",
    "twisted.internet.asyncioreactor",
    "twisted.internet.epollreactor",
    "twisted.names.client",
    "twisted.web.server",
    "aiohttp",
    "jinja2",
    "scrapy_koster.addon",
    "scrapy_koster.crawl.components.scheduler",
    "scrapy_koster.commands.robots",
    "scrapy_koster.commands.subcommands",
    "scrapy_koster.report.page",
    "scrapy_koster.storage.redis",
)


def _imported() -> Iterator[str]:
    """Yield IMPORTED, and the modules of Scrapy's defaults and commands."""
    from scrapy import commands
    from scrapy.settings import default_settings

    yield from IMPORTED
    yield from (each.name for each in iter_modules(commands.__path__, "scrapy.commands."))
    for value in vars(default_settings).values():
        for path in [*value, *value.values()] if isinstance(value, dict) else [value]:
            if isinstance(path, str) and path.startswith("scrapy."):
                yield path.rpartition(".")[0]


def serve(server: socket.socket) -> None:
    """Start what is asked for, until nobody can ask any more."""
    while True:
        head, fds, _, _ = socket.recv_fds(server, 4, 4)
        if not head:
            return
        (length,) = struct.unpack("i", head)
        request = b""
        while len(request) < length:
            request += server.recv(length - len(request))
        if os.fork() == 0:
            server.close()
            _keep(json.loads(request), fds)
            return
        for fd in fds:
            os.close(fd)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _keep(request: dict[str, Any], fds: list[int]) -> None:
    """Fork the program, tell its number and how it ended; return in the program alone."""
    *streams, telling = fds
    program = os.fork()
    if program == 0:
        os.close(telling)
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        for fd in streams:
            if fd > 2:
                os.close(fd)
        _become(request)
        return
    for fd in streams:
        os.close(fd)
    with suppress(BrokenPipeError):
        os.write(telling, struct.pack("i", program))
        os.write(telling, struct.pack("i", os.waitpid(program, 0)[1]))
    os._exit(0)


def _become(request: dict[str, Any]) -> None:
    # What a shell starts in the background ignores Ctrl-C, and so would this program.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [*given, *(path for path in sys.path if path not in given)]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        stream = io.TextIOWrapper(
            open(fd, "rb" if fd == 0 else "wb", closefd=False),  # noqa: SIM115
            encoding=encoding,
            errors=errors or ("backslashreplace" if fd == 2 else "strict"),
            line_buffering=fd == 2 or os.isatty(fd),
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = request["arguments"]


def main() -> None:
    """Serve; in a process that was forked, run its program to its end."""
    importlib.invalidate_caches()
    for name in _imported():
        with suppress(ImportError):
            importlib.import_module(name)
    assert "twisted.internet.reactor" not in sys.modules
    gc.collect()
    gc.freeze()
    server = socket.socket(fileno=int(sys.argv[1]))
    ours = os.getpid()
    serve(server)
    if os.getpid() == ours:
        return
    importlib.invalidate_caches()
    first = sys.argv[0]
    if first == "-c":
        sys.path.insert(0, "")
        code = sys.argv[1]
        sys.argv = ["-c", *sys.argv[2:]]
        space = sys.modules["__main__"].__dict__
        for name in set(space) - {"__name__", "__builtins__"}:
            del space[name]
        exec(compile(code, "<string>", "exec"), space)
    elif first == "-m":
        sys.path.insert(0, str(Path.cwd()))
        sys.argv = sys.argv[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(first).parent))
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    sys.path.pop(0)  # this folder
    main()
