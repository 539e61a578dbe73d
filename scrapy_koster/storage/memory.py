"""A storage that lasts as long as the crawl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock
from typing import ClassVar

from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.latest import supersedes
from scrapy_koster.storage.port import Settings, StorageError
from scrapy_koster.storage.setting import Setting
from scrapy_koster.storage.turns import Visited, turn


class MemoryStorage:
    """Keeps at most *sites* sites; the least recently used goes out first."""

    blocking: ClassVar[bool] = False
    SETTINGS: ClassVar[Mapping[str, Setting]] = {
        "KOSTER_MEMORY_SITES": Setting.whole(10000, least=1)
    }

    def __init__(self, sites: int) -> None:
        self._sites = sites
        self._lock = Lock()
        self._known: dict[Site, Known] | None = {}
        self._visited: dict[str, Visited] = {}

    @classmethod
    def from_settings(cls, settings: Settings) -> MemoryStorage:
        """Open a storage of KOSTER_MEMORY_SITES sites."""
        return cls(settings["KOSTER_MEMORY_SITES"])

    def get(self, site: Site) -> Known | None:
        """Return what is known of *site*, now the most recently used."""
        with self._lock:
            known = self._open()
            found = known.pop(site, None)
            if found is not None:
                known[site] = found
            return found

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> float:
        """Note a visit to *host*, unless the last was less than *secs* ago."""
        with self._lock:
            self._open()
            last = self._visited.pop(host, None)
            left, self._visited[host] = turn(last, now=now, secs=secs, begun=begun)
            if len(self._visited) > self._sites:
                del self._visited[next(iter(self._visited))]
            return left

    def put(self, site: Site, copy: Known) -> None:
        """Keep *copy*, unless it is superseded already."""
        with self._lock:
            known = self._open()
            old = known.pop(site, None)
            known[site] = copy if old is None or supersedes(copy, old) else old
            if len(known) > self._sites:
                del known[next(iter(known))]

    def sites(self) -> Iterator[tuple[Site, Known]]:
        """Iterate over what is known at the time of the call."""
        with self._lock:
            return iter(list(self._open().items()))

    def forget(self, site: Site) -> bool:
        """Forget *site*; False if it was not known."""
        with self._lock:
            return self._open().pop(site, None) is not None

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._known = None

    def _open(self) -> dict[Site, Known]:
        if self._known is None:
            raise StorageError("the storage is closed: open a new one")
        return self._known
