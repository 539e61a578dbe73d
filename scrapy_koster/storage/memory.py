"""A storage in memory, which lasts as long as the crawl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from scrapy_koster.protocol.access import CacheEntry, last_copy
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.latest import supersedes
from scrapy_koster.storage.port import Setting, Settings, StorageError

_VALUE_BYTES = 250


class MemoryStorage:
    """Keeps copies of at most *most* bytes; the least recently used is evicted first.

    No other process shares this storage, so it has no claims (``Claiming``) and no visits
    (``Pacing``): the crawl itself fetches a robots.txt once, and keeps delays.
    """

    blocking: ClassVar[bool] = False
    SETTINGS: ClassVar[Mapping[str, Setting]] = {
        "KOSTER_MEMORY_BYTES": Setting.whole(64_000_000, least=1)
    }

    def __init__(self, most: int, robot: str = "") -> None:
        self._left = most
        self._robot = robot
        self._known: dict[Site, CacheEntry] | None = {}

    @classmethod
    def from_settings(cls, settings: Settings) -> MemoryStorage:
        """Return a storage for at most KOSTER_MEMORY_BYTES."""
        return cls(settings["KOSTER_MEMORY_BYTES"], settings.get("ROBOTSTXT_USER_AGENT") or "")

    def get(self, site: Site) -> CacheEntry | None:
        """Return the copy or failure of *site*, or None. *site* becomes the most recently used."""
        known = self._open()
        found = known.pop(site, None)
        if found is not None:
            known[site] = found
        return found

    def put(self, site: Site, copy: CacheEntry) -> None:
        """Store *copy* if it ``supersedes`` the stored value."""
        known = self._open()
        old = known.get(site)
        if old is not None:
            self.forget(site)
        known[site] = new = copy if old is None or supersedes(copy, old) else old
        self._left -= _size_of(new)
        while self._left < 0 and len(known) > 1:
            self.forget(next(iter(known)))

    def sites(self) -> Iterator[tuple[Site, CacheEntry]]:
        """Iterate over the sites that are stored at the time of the call."""
        return iter(list(self._open().items()))

    def robots(self) -> list[str]:
        """Return a list with the robot of this storage, empty if no site is stored."""
        return [self._robot] if self._open() else []

    def forget(self, site: Site) -> bool:
        """Forget *site*. Return False if *site* was not stored."""
        if (found := self._open().pop(site, None)) is None:
            return False
        self._left += _size_of(found)
        return True

    def close(self) -> None:
        """Forget the stored sites. Later calls raise StorageError."""
        self._known = None

    def _open(self) -> dict[Site, CacheEntry]:
        if self._known is None:
            raise StorageError("the storage is closed: open a new one")
        return self._known


def _size_of(known: CacheEntry) -> int:
    """Return about the bytes of *known* in memory, without the text of a file in use."""
    copy = last_copy(known)
    return _VALUE_BYTES + (len(copy.body) if copy else 0)
