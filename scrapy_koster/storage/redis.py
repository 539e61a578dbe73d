"""A storage in Redis, which the processes of many machines may share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import site_named
from scrapy_koster.storage.port import Claimed, Settings
from scrapy_koster.storage.redis_calls import Keys, RedisCalls
from scrapy_koster.storage.redis_server import RedisServer
from scrapy_koster.storage.redis_settings import REDIS_SETTINGS
from scrapy_koster.storage.setting import Setting


class RedisStorage:
    """Keeps what is known in the Redis of *url*, under keys that begin with *prefix*.

    The key of a site has its version, and its value begins with the time when
    it was learnt. It ends *ttl_secs* after it was last put.
    """

    blocking: ClassVar[bool] = True
    SETTINGS: ClassVar[Mapping[str, Setting]] = REDIS_SETTINGS

    def __init__(self, url: str, prefix: str, ttl_secs: int) -> None:
        self._server = RedisServer(url)
        self._keys = Keys(prefix)
        self._ttl_secs = ttl_secs

    @classmethod
    def from_settings(cls, settings: Settings) -> RedisStorage:
        """Open the Redis KOSTER_REDIS_URL, and connect to it; StorageError if that fails."""
        storage = cls(*(settings[name] for name in REDIS_SETTINGS))
        storage.connect()
        return storage

    def connect(self) -> None:
        """Connect now, else the first call does; StorageError if that fails."""
        self._server.connect()

    @contextmanager
    def pipeline(self) -> Iterator[RedisCalls]:
        """Yield an object whose calls go out in one message."""
        calls = self._calls()
        yield calls
        calls.send()

    def get(self, site: Site) -> Known | None:
        """Return what is known of *site*; a value that is not valid is a miss."""
        return self._calls().get(site).result()

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        """Set a claim of *owner*, unless there is one of another; by the clock of the server."""
        calls = self._calls()
        return calls.claim(site, owner, now=now, secs=secs, unless_known=unless_known).result()

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> float:
        """Set a visit to *host*, unless there is one; by the clock of the server."""
        return self._calls().visit(host, now=now, secs=secs, begun=begun).result()

    def put(self, site: Site, copy: Known, owner: str = "") -> None:
        """Set *copy*, unless there is a later one."""
        self._calls().put(site, copy, owner).result()

    def release(self, site: Site, owner: str) -> None:
        """Delete the claim of *owner*, if there is one."""
        self._calls().release(site, owner).result()

    def sites(self) -> Iterator[tuple[Site, Known]]:
        """Iterate over the valid values; others may write meanwhile."""
        head = self._keys.known_head
        names = sorted({_name(key, head) for key in self._server.keys(f"{head}*")})
        for site in filter(None, map(site_named, names)):
            known = self.get(site)
            if known is not None:
                yield site, known

    def forget(self, site: Site) -> bool:
        """Delete what is known of *site*; False if there was nothing."""
        return self._calls().forget(site).result()

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _calls(self) -> RedisCalls:
        return RedisCalls(self._server, self._keys, self._ttl_secs)


def _name(key: bytes, head: str) -> str:
    return key.decode(errors="replace")[len(head) : -1]
