"""A storage in Redis, which the processes of many machines can share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy as copied
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import OCTETS_MAX, decoded, encoded, site_named
from scrapy_koster.storage.latest import LATE_SECS, learnt
from scrapy_koster.storage.port import Claimed, Settings, StorageError
from scrapy_koster.storage.redis_server import place_of, redis_client
from scrapy_koster.storage.redis_settings import REDIS_SETTINGS
from scrapy_koster.storage.setting import Setting

_T = TypeVar("_T")

_VERSION = 2
_TTL_MAX_MS = 2**52
_SCANNED_AT_ONCE = 1000
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


class _Call(NamedTuple):
    """A command, and the function that reads its reply."""

    command: Sequence[Any]
    read: Callable[[Any], Any]


class RedisStorage:
    """Keeps copies in the Redis of *url*, under keys that begin with *prefix*.

    The value of a site begins with the time when it was learnt, and ends *ttl_secs* after it was
    last put. Claims and visits go by the clock of the server.
    """

    blocking: ClassVar[bool] = True
    SETTINGS: ClassVar[Mapping[str, Setting]] = REDIS_SETTINGS

    def __init__(self, url: str, prefix: str, ttl_secs: int, robot: str = "") -> None:
        self._client = redis_client(url)
        self._is_closed = False
        self._prefix = f"{prefix}:{_VERSION}"
        self._ttl_ms = min(ttl_secs * 1000, _TTL_MAX_MS)
        self._robot = robot
        self.sender: RedisStorage | None = None
        """The storage that sends the commands of this one together, if there is one."""

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
        with self._errors():
            if not self._client.ping():
                raise ConnectionError("it answered PING, but not with PONG")

    def call_together(self, calls: Sequence[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> Any:
        """Make *calls*, each a method's name and arguments, in one message.

        Return a list: for each call the result of the method, or the exception that it raises.
        """
        part = copied(self)
        part.sender = self  # its methods return their commands
        made = [_outcome(getattr(part, name), *args, **how) for name, args, how in calls]
        replies = iter(self._replies([c.command for c in made if isinstance(c, _Call)]))
        return [
            _outcome(self._read, each.read, next(replies)) if isinstance(each, _Call) else each
            for each in made
        ]

    def _replies(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send *commands* in one message, and return the reply to each; an error if that failed."""
        try:
            self._need_open()
            with self._client.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                replies: list[Any] = pipeline.execute(raise_on_error=False)
                return replies
        except Exception as error:  # noqa: BLE001  # whatever answers at that port
            return [error] * len(commands)

    def _read(self, read: Callable[[Any], _T], reply: Any) -> _T:
        """Return what *read* makes of *reply*, which may be that a value has another type."""
        with self._errors():
            if isinstance(reply, Exception) and not str(reply).startswith("WRONGTYPE"):
                raise reply
            return read(reply)

    def _send(self, read: Callable[[Any], _T], *command: Any) -> _T:
        """Send *command*, and return what *read* makes of the reply."""
        try:  # encoded here, a name that is no text concerns its own call only
            encoded = [each.encode() if isinstance(each, str) else each for each in command]
        except UnicodeEncodeError as error:
            raise StorageError(f"it cannot be sent to Redis: {error}") from error
        if self.sender is not None:
            return cast("_T", _Call(encoded, read))
        return self._read(read, self._replies([encoded])[0])

    def _run(self, read: Callable[[Any], _T], script: str, site: Site, *given: Any) -> _T:
        keys = self._key("known", self._name(site)), self._key("claim", self._name(site))
        return self._send(read, "EVAL", script, len(keys), *keys, *given)

    def get(self, site: Site) -> Known | None:
        """Return the copy or failure of *site*; an invalid value is a miss."""
        return self._send(
            _known_or_miss, "GETRANGE", self._key("known", self._name(site)), 0, _VALUE_MAX
        )

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        """Set a claim of *owner*, unless there is one of another."""

        def read(reply: Any) -> Claimed:
            left_ms, value = reply
            known = _known_in(value)
            if unless_known and value and known is None:
                # It cannot be read, and says nothing. By now another may have put a valid value.
                return (self.sender or self).claim(site, owner, now=now, secs=secs)
            return Claimed(known, left_ms / 1000)

        given = owner, max(1, int(secs * 1000)), _VALUE_MAX, int(unless_known)
        return self._run(read, _CLAIM, site, *given)

    def visit(
        self,
        host: str,
        *,
        now: float,  # noqa: ARG002  # the server has a clock of its own
        secs: float,
        begun: bool = False,
    ) -> float:
        """Set a visit to *host*, unless the last was less than *secs* ago."""
        millis = min(max(1, math.ceil(secs * 1000)), _TTL_MAX_MS)
        given = millis, int(begun), max(millis, self._ttl_ms)
        return self._send(_seconds, "EVAL", _VISIT, 1, self._key("visit", host), *given)

    def put(self, site: Site, copy: Known, owner: str = "") -> None:
        """Set *copy*, unless there is a later one."""
        try:
            time, value = repr(float(learnt(copy))), encoded(copy)
        except ValueError as error:
            raise StorageError(f"it cannot be stored: {error}") from error
        value = time.encode() + b" " + value
        return self._run(_done, _PUT, site, owner, time, value, self._ttl_ms, LATE_SECS)

    def release(self, site: Site, owner: str) -> None:
        """Delete the claim of *owner*, if there is one."""
        return self._run(_done, _RELEASE, site, owner)

    def forget(self, site: Site) -> bool:
        """Delete the value of *site*; return False without a value."""
        return self._send(bool, "DEL", self._key("known", self._name(site)))

    def sites(self) -> Iterator[tuple[Site, Known]]:
        """Iterate over the valid values of the robot, while other processes may write."""
        names = sorted({name for name, robot in self._stored() if robot == self._robot})
        for site in filter(None, map(site_named, names)):
            if (known := self.get(site)) is not None:
                yield site, known

    def robots(self) -> list[str]:
        """Return the robots that have values."""
        return sorted({robot for _, robot in self._stored()})

    def close(self) -> None:
        """Close the connections."""
        self._is_closed = True
        with self._errors():
            self._client.close()

    def _need_open(self) -> None:
        if self._is_closed:
            raise StorageError("the storage is closed: open a new one")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise each error as a StorageError that names the server."""
        try:
            yield
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever answers at that port
            raise StorageError(
                f"the Redis server {place_of(self._client)} failed: {type(error).__name__}:"
                f" {error}. Start or repair it, or set KOSTER_REDIS_URL to another one"
            ) from None

    def _stored(self) -> Iterator[tuple[str, str]]:
        """Yield the site and the robot of each value."""
        head = f"{self._prefix}:known:{{"
        with self._errors():
            self._need_open()
            keys = list(self._client.scan_iter(match=f"{head}*", count=_SCANNED_AT_ONCE))
        for key in keys:  # some may be there twice
            name, _, robot = key.decode(errors="replace")[len(head) : -1].partition(" ")
            yield name, robot

    def _name(self, site: Site) -> str:
        return f"{site} {self._robot}".rstrip()

    def _key(self, kind: str, name: str) -> str:
        # The text in braces decides on the slot of a Cluster: for both keys of a site the same.
        return f"{self._prefix}:{kind}:{{{name}}}"


def _outcome(call: Callable[..., Any], *args: Any, **how: Any) -> Any:
    try:
        return call(*args, **how)
    except Exception as error:  # noqa: BLE001  # it is raised where the result is awaited
        return error


# What the replies are read by.


def _known_or_miss(reply: Any) -> Known | None:
    # Somebody else may have put a value of another type there.
    return None if isinstance(reply, Exception) else _known_in(reply)


def _known_in(value: bytes) -> Known | None:
    try:
        return decoded(value.partition(b" ")[2])
    except ValueError:
        return None


def _seconds(reply: Any) -> float:
    return float(reply) / 1000


def _done(_: object) -> None:
    pass
