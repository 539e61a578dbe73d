"""The calls of a storage in Redis: what each sends, and how its reply is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import OCTETS_MAX, decoded, encoded
from scrapy_koster.storage.latest import LATE_SECS, learnt
from scrapy_koster.storage.port import Claimed
from scrapy_koster.storage.redis_scripts import CLAIM, PUT, RELEASE, VISIT, Script
from scrapy_koster.storage.redis_server import RedisServer, ResponseError
from scrapy_koster.storage.turns import GRACE_SECS

_T = TypeVar("_T")

_VERSION = 1
_TTL_MAX_MS = 2**52
_VALUE_MAX = OCTETS_MAX + 64
_NONE_YET = object()


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a storage, which begin with *prefix*."""

    prefix: str

    def known(self, site: Site) -> str:
        """Return the key of what is known of *site*."""
        return self._key("known", str(site))

    def claim(self, site: Site) -> str:
        """Return the key of the claim of *site*."""
        return self._key("claim", str(site))

    def visit(self, host: str) -> str:
        """Return the key of the last visit to *host*."""
        return self._key("visit", host)

    @property
    def known_head(self) -> str:
        """The beginning of all keys of what is known, up to the name of the site."""
        return self._key("known", "")[:-1]

    def _key(self, kind: str, name: str) -> str:
        # What is in braces decides on the slot of a Cluster: for both keys of a site the same.
        return f"{self.prefix}:{_VERSION}:{kind}:{{{name}}}"


class RedisCalls:
    """Calls that go out in one message when the first result is asked for.

    Each has the arguments of the storage's method of its name, and its ``result()`` returns what
    that method returns.
    """

    def __init__(self, server: RedisServer, keys: Keys, ttl_secs: int) -> None:
        self._server = server
        self._keys = keys
        self._ttl_ms = min(ttl_secs * 1000, _TTL_MAX_MS)
        self._unsent: list[Reply[Any]] = []

    def get(self, site: Site) -> Reply[Known | None]:
        """Get the value; one that is not valid is a miss."""
        return self._call(_got, "GETRANGE", self._keys.known(site), 0, _VALUE_MAX)

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Reply[Claimed]:
        """Set a claim of *owner*, unless there is one of another; by the clock of the server."""

        def read(reply: Any) -> Claimed:
            left_ms, value = _valid(reply)
            known = known_in(value)
            if unless_known and value and known is None:
                # It cannot be read, and says nothing. By now another may have put what can.
                return self.claim(site, owner, now=now, secs=secs).result()
            return Claimed(known, left_ms / 1000)

        millis = max(1, int(secs * 1000))
        return self._run(read, CLAIM, site, owner, millis, _VALUE_MAX, int(unless_known))

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> Reply[float]:
        """Set a visit to *host*, unless there is one; by the clock of the server."""
        millis = min(max(1, math.ceil(secs * 1000)), _TTL_MAX_MS)
        given = (millis, int(begun), max(millis, self._ttl_ms), int(GRACE_SECS * 1000))
        return self._call(_secs, "EVALSHA", VISIT.sha, 1, self._keys.visit(host), *given)

    def put(self, site: Site, copy: Known, owner: str = "") -> Reply[None]:
        """Set *copy*, unless there is a later one."""
        with self._server.errors():
            time = repr(float(learnt(copy)))
            value = time.encode() + b" " + encoded(copy)
        return self._run(_done, PUT, site, owner, time, value, self._ttl_ms, LATE_SECS)

    def release(self, site: Site, owner: str) -> Reply[None]:
        """Delete the claim of *owner*, if there is one."""
        return self._run(_done, RELEASE, site, owner)

    def forget(self, site: Site) -> Reply[bool]:
        """Delete what is known of *site*."""
        return self._call(_deleted, "DEL", self._keys.known(site))

    def send(self) -> None:
        """Send the calls that have not been sent, and keep the replies."""
        sent, self._unsent = self._unsent, []
        if sent:
            replies = self._server.replies([call.command for call in sent])
            for call, reply in zip(sent, replies, strict=True):
                call.reply = reply

    def _run(self, read: Callable[[Any], _T], script: Script, site: Site, *given: Any) -> Reply[_T]:
        keys = (self._keys.known(site), self._keys.claim(site))
        return self._call(read, "EVALSHA", script.sha, len(keys), *keys, *given)

    def _call(self, read: Callable[[Any], _T], *command: Any) -> Reply[_T]:
        with self._server.errors():
            # Encoded here, a name that is no text concerns its own call only.
            octets = [each.encode() if isinstance(each, str) else each for each in command]
        call = Reply(self, self._server, octets, read)
        self._unsent.append(call)
        return call


@dataclass(slots=True, eq=False)
class Reply(Generic[_T]):
    """A call that has been sent, or will be."""

    calls: RedisCalls
    server: RedisServer
    command: Sequence[Any]
    read: Callable[[Any], _T]
    reply: Any = _NONE_YET

    def result(self) -> _T:
        """Return what the server has replied; StorageError if the call failed."""
        if self.reply is _NONE_YET:
            self.calls.send()
        with self.server.errors():
            return self.read(self.reply)


# What the replies say. Each may be an error.


def _valid(reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise reply
    return reply


def _done(reply: Any) -> None:
    _valid(reply)


def _deleted(reply: Any) -> bool:
    return bool(_valid(reply))


def _secs(reply: Any) -> float:
    return float(_valid(reply)) / 1000


def _got(reply: Any) -> Known | None:
    if isinstance(reply, ResponseError) and str(reply).startswith("WRONGTYPE"):
        return None
    return known_in(_valid(reply))


def known_in(value: bytes) -> Known | None:
    """Return the copy or failure in *value*, None if it is not valid."""
    _, _, octets = value.partition(b" ")
    try:
        return decoded(octets)
    except ValueError:
        return None
