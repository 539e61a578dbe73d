"""Storages keep copies of robots.txt between crawls (3.4).

Use the names in ``__all__`` to write your own storage: docs/storage.md.
"""

from scrapy_koster.protocol.access import Copy, Failure, Known
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
    held_secs,
)

__all__ = [
    "Claimed",
    "Claiming",
    "Copy",
    "Failure",
    "Known",
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
    "held_secs",
    "site_named",
    "supersedes",
]
