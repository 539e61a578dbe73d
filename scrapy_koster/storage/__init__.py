"""Storages keep copies of robots.txt between crawls (3.4).

Use the names in ``__all__`` to write your own storage: docs/storage.md.
"""

from scrapy_koster.protocol.access import CachedRobots, CacheEntry, FetchFailure
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import decoded, encoded, site_named
from scrapy_koster.storage.latest import supersedes
from scrapy_koster.storage.port import (
    Claimed,
    Claiming,
    Pacing,
    Pruning,
    Setting,
    Settings,
    Storage,
    StorageError,
    lease_left,
)

__all__ = [
    "CacheEntry",
    "CachedRobots",
    "Claimed",
    "Claiming",
    "FetchFailure",
    "Pacing",
    "Pruning",
    "Setting",
    "Settings",
    "Site",
    "Storage",
    "StorageError",
    "contract",
    "decoded",
    "encoded",
    "lease_left",
    "site_named",
    "supersedes",
]
