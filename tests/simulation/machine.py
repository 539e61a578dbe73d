"""What the package asks of the machine directly: the clock, the resolver, the core of Scrapy."""

from __future__ import annotations

import gc
import importlib
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from twisted.logger import globalLogPublisher

from simulation.history import History
from simulation.parts import Scraper
from simulation.threads import SimulatedThreads
from simulation.watch import Broken

if TYPE_CHECKING:
    from collections.abc import Callable

_CRAWL = "scrapy_koster.crawl"
_LOOKS_UP = "fetching.fetcher"
TOKENS = ("storage_calls",)
"""The modules that name a process by chance."""


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: Callable[[str], None] = print

    def emit(self, record: logging.LogRecord) -> None:
        self.told(self.format(record))

    def observe(self, event: dict[str, Any]) -> None:
        """Twisted tells of what nobody caught."""
        if "log_failure" in event:
            self.told(event["log_failure"].getTraceback())


def _no_thread(*_: object) -> None:
    raise RuntimeError("a thread goes by no simulated time")


class Machine:
    """Runs histories, one after the other."""

    def __init__(self, errors: _Errors) -> None:
        self._errors = errors
        self.history: History | None = None
        self._names = 0

    def run(self, seed: int) -> History:
        """Run the history of *seed*, and return it: ``watch.found`` is what is broken."""
        self.history = history = History(seed)
        self._names = 0
        self._errors.told = history.went_wrong
        try:
            history.run()
        except Broken:
            assert history.watch.found is not None
        except Exception as error:
            raise RuntimeError(f"the simulation itself failed in seed {seed}") from error
        return history

    def now(self) -> float:
        assert self.history is not None
        return self.history.clock.now

    def token(self, octets: int) -> str:
        self._names += 1
        return f"{self._names:0{2 * octets}x}"

    def resolve(self, host: str, port: Any) -> None:
        assert self.history is not None
        self.history.web.resolve(host, self.now())


@contextmanager
def machine() -> Iterator[Machine]:
    """Have the package run on a simulated machine meanwhile."""
    errors = _Errors()
    simulated = Machine(errors)
    modules = {name: importlib.import_module(f"{_CRAWL}.{name}") for name in (*TOKENS, _LOOKS_UP)}
    fake_socket = SimpleNamespace(**{**vars(socket), "getaddrinfo": simulated.resolve})
    loggers = [logging.getLogger(name) for name in ("scrapy", "scrapy_koster", "asyncio")]
    with ExitStack() as stack:
        for name in TOKENS:
            stack.enter_context(patch.object(modules[name], "token_hex", simulated.token))
        stack.enter_context(patch.object(modules[_LOOKS_UP], "socket", fake_socket))
        time = SimpleNamespace(monotonic=simulated.now, time=simulated.now)
        stack.enter_context(patch("scrapy.utils.asyncio.time", time))
        stack.enter_context(patch("scrapy.core.engine.Scraper", Scraper))
        threads = patch(f"{_CRAWL}.storage_calls.Threads", SimulatedThreads)
        stack.enter_context(threads)
        stack.enter_context(patch("threading.Thread.start", _no_thread))
        for logger in loggers:
            stack.enter_context(patch.object(logger, "level", logging.ERROR))
            stack.enter_context(patch.object(logger, "handlers", [errors]))
            stack.enter_context(patch.object(logger, "propagate", False))
            logger.manager._clear_cache()  # type: ignore[attr-defined]
        observer: Any = errors.observe
        globalLogPublisher.addObserver(observer)
        stack.callback(globalLogPublisher.removeObserver, observer)
        gc_was = gc.isenabled()
        gc.disable()
        try:
            yield simulated
        finally:
            if gc_was:
                gc.enable()
            for logger in loggers:
                logger.manager._clear_cache()  # type: ignore[attr-defined]
