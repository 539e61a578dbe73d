"""A storage in Redis, which the processes of many machines can share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import OCTETS_MAX, decoded, encoded, site_named
from scrapy_koster.storage.latest import LATE_SECS, learnt
from scrapy_koster.storage.port import Claimed, Settings, StorageError
from scrapy_koster.storage.redis_server import RedisServer, ResponseError
from scrapy_koster.storage.redis_settings import REDIS_SETTINGS
from scrapy_koster.storage.setting import Setting

_T = TypeVar("_T")

_VERSION = 2
_TTL_MAX_MS = 2**52
_VALUE_MAX = OCTETS_MAX + 64

# In all scripts: KEYS[1] what is known, KEYS[2] the claim; ARGV[1] the owner. Somebody else may
# have put a value of any type there: pcall returns a table then.
_RELEASE = "if redis.pcall('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end"
# ARGV: owner, milliseconds, the last octet that is read, 1 for unless_known. A claim without an
# end, or with one that is too late (see port.held_secs), is void.
_CLAIM = """
local known = redis.pcall('GETRANGE', KEYS[1], 0, ARGV[3])
if type(known) ~= 'string' then known = '' end
if ARGV[4] == '1' and known ~= '' then return {0, known} end
local owner = redis.pcall('GET', KEYS[2])
local left = 0
if type(owner) == 'string' and owner ~= ARGV[1] then left = redis.call('PTTL', KEYS[2]) end
if left <= 0 or left > 2 * ARGV[2] then
    left = 0
    redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
end
return {left, known}
"""
# ARGV: owner, time learnt, value, milliseconds to live, seconds (see latest.supersedes).
_PUT = f"""
local old = redis.pcall('GETRANGE', KEYS[1], 0, 63)
local late = type(old) == 'string' and tonumber(string.match(old, '^(%S+) '))
if late then late = late - ARGV[2] end
if not (late and late > 0 and late <= tonumber(ARGV[5])) then
    redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
end
{_RELEASE}
"""
# KEYS[1]: the last visit to a host. Its value is for how long it is kept, so the time that is left
# tells when the visit was. ARGV: the delay, 1 for begun, for how long to keep it: in milliseconds.
_VISIT = """
local value = redis.pcall('GET', KEYS[1])
local left = 0
if ARGV[2] == '0' and type(value) == 'string' and string.match(value, '^%d+$') then
    local ends = redis.call('PTTL', KEYS[1])
    if ends > 0 and ends <= tonumber(value) then left = ARGV[1] - (tonumber(value) - ends) end
end
if left <= 0 then redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[3]) end
return math.ceil(math.max(left, 0))
"""


@dataclass(frozen=True, slots=True)
class _Call(Generic[_T]):
    """A command, and the function that reads its reply, which may be an error."""

    command: Sequence[Any]
    read: Callable[[Any], _T]


class RedisStorage:
    """Keeps copies in the Redis of *url*, under keys that begin with *prefix*.

    The value of a site begins with the time when it was learnt, and ends *ttl_secs* after it was
    last put. Claims and visits go by the clock of the server.
    """

    blocking: ClassVar[bool] = True
    SETTINGS: ClassVar[Mapping[str, Setting]] = REDIS_SETTINGS

    def __init__(self, url: str, prefix: str, ttl_secs: int, robot: str = "") -> None:
        self._server = RedisServer(url)
        self._prefix = f"{prefix}:{_VERSION}"
        self._ttl_ms = min(ttl_secs * 1000, _TTL_MAX_MS)
        self._robot = robot

    @classmethod
    def from_settings(cls, settings: Settings) -> RedisStorage:
        """Open the Redis KOSTER_REDIS_URL, and connect to it; StorageError if that fails."""
        robot = settings.get("ROBOTSTXT_USER_AGENT") or ""
        url, prefix, ttl_secs = (settings[name] for name in REDIS_SETTINGS)
        storage = cls(url, prefix, ttl_secs, robot)
        storage.connect()
        return storage

    def connect(self) -> None:
        """Connect now, else the first call does; StorageError if that fails."""
        self._server.connect()

    def call_together(self, calls: Sequence[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> Any:
        """Make *calls*, each a method's name and arguments, in one message.

        Return a list: for each call the result of the method, or the exception that it raises.
        """
        made = [self._attempt(partial(getattr(self, f"_{name}"), *a, **k)) for name, a, k in calls]
        replies = iter(self._server.replies([c.command for c in made if isinstance(c, _Call)]))
        return [
            self._attempt(partial(call.read, next(replies))) if isinstance(call, _Call) else call
            for call in made
        ]

    def _attempt(self, call: Callable[[], Any]) -> Any:
        """Return the result of *call*, or the StorageError that it raises."""
        try:
            with self._server.errors():
                return call()
        except StorageError as error:
            return error

    def _one(self, made: Callable[[], _Call[_T]]) -> _T:
        with self._server.errors():
            call = made()
            return call.read(self._server.replies([call.command])[0])

    def get(self, site: Site) -> Known | None:
        """Return what is known of *site*; a value that is not valid is a miss."""
        return self._one(partial(self._get, site))

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        """Set a claim of *owner*, unless there is one of another."""
        claim = partial(self._claim, site, owner, now=now, secs=secs, unless_known=unless_known)
        return self._one(claim)

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> float:
        """Set a visit to *host*, unless the last was less than *secs* ago."""
        return self._one(partial(self._visit, host, now=now, secs=secs, begun=begun))

    def put(self, site: Site, copy: Known, owner: str = "") -> None:
        """Set *copy*, unless there is a later one."""
        self._one(partial(self._put, site, copy, owner))

    def release(self, site: Site, owner: str) -> None:
        """Delete the claim of *owner*, if there is one."""
        self._one(partial(self._release, site, owner))

    def forget(self, site: Site) -> bool:
        """Delete what is known of *site*; False if there was nothing."""
        return bool(self._one(partial(self._forget, site)))

    def sites(self) -> Iterator[tuple[Site, Known]]:
        """Iterate over the valid values of the robot; others may write meanwhile."""
        names = sorted({name for name, robot in self._stored() if robot == self._robot})
        for site in filter(None, map(site_named, names)):
            if (known := self.get(site)) is not None:
                yield site, known

    def robots(self) -> list[str]:
        """Return the robots that have values."""
        return sorted({robot for _, robot in self._stored()})

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _stored(self) -> Iterator[tuple[str, str]]:
        """Yield the site and the robot of each value."""
        head = f"{self._prefix}:known:{{"
        for key in self._server.keys(f"{head}*"):
            name, _, robot = key.decode(errors="replace")[len(head) : -1].partition(" ")
            yield name, robot

    def _name(self, site: Site) -> str:
        return f"{site} {self._robot}".rstrip()

    def _key(self, kind: str, name: str) -> str:
        # What is in braces decides on the slot of a Cluster: for both keys of a site the same.
        return f"{self._prefix}:{kind}:{{{name}}}"

    @staticmethod
    def _encoded(*command: Any) -> Sequence[Any]:
        # Encoded here, a name that is no text concerns its own call only.
        return [each.encode() if isinstance(each, str) else each for each in command]

    def _script(self, text: str, site: Site, *given: Any) -> Sequence[Any]:
        name = self._name(site)
        keys = (self._key("known", name), self._key("claim", name))
        return self._encoded("EVAL", text, len(keys), *keys, *given)

    # The calls that can be made together.

    def _get(self, site: Site) -> _Call[Known | None]:
        key = self._key("known", self._name(site))
        return _Call(self._encoded("GETRANGE", key, 0, _VALUE_MAX), _known_or_miss)

    def _forget(self, site: Site) -> _Call[Any]:
        return _Call(self._encoded("DEL", self._key("known", self._name(site))), _valid)

    def _claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> _Call[Claimed]:
        def read(reply: Any) -> Claimed:
            left_ms, value = _valid(reply)
            known = _known_in(value)
            if unless_known and value and known is None:
                # It cannot be read, and says nothing. By now another may have put a valid value.
                return self.claim(site, owner, now=now, secs=secs)
            return Claimed(known, left_ms / 1000)

        millis = max(1, int(secs * 1000))
        given = (owner, millis, _VALUE_MAX, int(unless_known))
        return _Call(self._script(_CLAIM, site, *given), read)

    def _visit(
        self,
        host: str,
        *,
        now: float,  # noqa: ARG002  # the server has a clock of its own
        secs: float,
        begun: bool = False,
    ) -> _Call[float]:
        millis = min(max(1, math.ceil(secs * 1000)), _TTL_MAX_MS)
        given = (millis, int(begun), max(millis, self._ttl_ms))
        command = self._encoded("EVAL", _VISIT, 1, self._key("visit", host), *given)
        return _Call(command, lambda reply: float(_valid(reply)) / 1000)

    def _put(self, site: Site, copy: Known, owner: str = "") -> _Call[Any]:
        time = repr(float(learnt(copy)))
        value = time.encode() + b" " + encoded(copy)
        given = (owner, time, value, self._ttl_ms, LATE_SECS)
        return _Call(self._script(_PUT, site, *given), _valid)

    def _release(self, site: Site, owner: str) -> _Call[Any]:
        return _Call(self._script(_RELEASE, site, owner), _valid)


def _valid(reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise reply
    return reply


def _known_or_miss(reply: Any) -> Known | None:
    if isinstance(reply, ResponseError) and str(reply).startswith("WRONGTYPE"):
        return None
    return _known_in(_valid(reply))


def _known_in(value: bytes) -> Known | None:
    try:
        return decoded(value.partition(b" ")[2])
    except ValueError:
        return None
