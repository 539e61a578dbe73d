"""A storage whose failure is a miss, never a dead crawl."""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from scrapy.utils.asyncio import run_in_thread

from scrapy_koster.protocol.verdict import Source
from scrapy_koster.storage import judged
from scrapy_koster.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.log import Log
    from scrapy_koster.crawl.stats import Stats
    from scrapy_koster.protocol.access import Known
    from scrapy_koster.protocol.site import Site
    from scrapy_koster.storage import Storage

_T = TypeVar("_T")

# After a failure the storage is let alone for so long: one that is locked
# would cost each site its time-out.
_OPEN_SECS = 30.0


class StorageBreaker:
    """The storage of the settings, opened when it is first needed.

    One that blocks is called in a thread. What goes wrong in it is counted,
    and said once in a crawl; after a failure it has a rest.
    """

    def __init__(self, config: Config, stats: Stats, log: Log) -> None:
        self._config = config
        self._stats = stats
        self._log = log
        self._storage: Storage | None = None
        self._opening = Lock()
        self._warned = False
        self._failed_at = -_OPEN_SECS
        in_memory = issubclass(config.storage, MemoryStorage)
        self.source = Source.MEMORY if in_memory else Source.STORAGE

    async def get(self, site: Site) -> Known | None:
        """Return what is stored of *site*, as the settings of this crawl have it."""
        known = await self._tolerate(lambda storage: self._judged(storage.get(site)))
        if known is None:
            self._stats.storage_miss()
        else:
            self._stats.storage_hit()
        return known

    def _judged(self, known: Known | None) -> Known | None:
        config = self._config
        if known is None:
            return None
        return judged(known, policy=config.policy, max_bytes=config.max_bytes)

    async def put(self, site: Site, known: Known) -> None:
        """Store what is known of *site*."""
        await self._tolerate(lambda storage: storage.put(site, known))

    async def close(self) -> None:
        """Close the storage, if it was opened."""
        if self._storage is not None:
            self._failed_at = -_OPEN_SECS
            await self._tolerate(lambda storage: storage.close())

    async def _tolerate(self, use: Callable[[Storage], _T]) -> _T | None:
        if self._is_open():
            self._stats.storage_error()
            return None
        try:
            if self._config.storage.blocking:
                return await run_in_thread(self._use, use)
            return self._use(use)
        except Exception as error:  # noqa: BLE001  # a storage may be anybody's
            self._stats.storage_error()
            if not self._warned:
                self._warned = True
                self._log.warning(
                    "The storage of robots.txt failed. The crawl goes on, without it"
                    " while it fails, and this is not said again: %(error)s",
                    error=error,
                )
            return None

    def _is_open(self) -> bool:
        return monotonic() - self._failed_at < _OPEN_SECS

    def _use(self, use: Callable[[Storage], _T]) -> _T | None:
        try:
            storage = self._opened()
            # Many may have come here before the first of them failed.
            return None if storage is None or self._is_open() else use(storage)
        except Exception:
            self._failed_at = monotonic()
            raise

    def _opened(self) -> Storage | None:
        with self._opening:  # threads of the pool may come here at once
            if self._storage is None and not self._is_open():
                self._storage = self._config.storage.from_config(self._config)
            return self._storage
