"""The storages that there are, each in a place of its own, for this process and for others."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from scrapy.utils.misc import load_object

from harness.redis_server import common_server

IMPLEMENTATIONS = {
    "memory": "scrapy_koster.storage.memory.MemoryStorage",
    "sqlite": "scrapy_koster.storage.sqlite.SQLiteStorage",
    "redis": "scrapy_koster.storage.redis.RedisStorage",
}
SHARED = [name for name in IMPLEMENTATIONS if name != "memory"]
MEMORY_BYTES = 1_000_000


@dataclass(frozen=True)
class Place:
    """A storage, and what the settings say of where it is."""

    name: str
    sqlite_path: str
    memory_bytes: int = MEMORY_BYTES
    redis_url: str = "redis://127.0.0.1:6379/0"
    redis_prefix: str = "koster"
    redis_ttl_secs: int = 3600

    def open(self, robot: str = "") -> Any:
        settings = {**self.settings(), "ROBOTSTXT_USER_AGENT": robot}
        return load_object(IMPLEMENTATIONS[self.name]).from_settings(settings)

    def settings(self) -> dict[str, Any]:
        """Those of a crawl that has its storage there."""
        given = {name: value for name, value in asdict(self).items() if name != "name"}
        return {
            "KOSTER_STORAGE": IMPLEMENTATIONS[self.name],
            **{f"KOSTER_{name.upper()}": value for name, value in given.items()},
        }

    def __str__(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Place:
        return cls(**json.loads(text))


def place_of(name: str, folder: Path) -> Place:
    place = Place(name, str(folder / "koster" / "db"))
    if name != "redis":
        return place
    return replace(place, redis_url=common_server().url(), redis_prefix=f"test-{token_hex(6)}")
