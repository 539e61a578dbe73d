"""A storage in Redis, which the processes of many machines can share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy as copied
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from scrapy_koster.protocol.access import CacheEntry
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import OCTETS_MAX, decoded, encoded, site_named
from scrapy_koster.storage.latest import LATE_SECS, recorded_at
from scrapy_koster.storage.port import Claimed, Setting, Settings, StorageError
from scrapy_koster.storage.redis_settings import REDIS_SETTINGS

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError as error:
    raise ImportError("RedisStorage needs redis-py: pip install 'scrapy-koster[redis]'") from error

_T = TypeVar("_T")

_TIMEOUT_SECS = 2.0

_VERSION = 2
_TTL_MAX_MS = 2**52
_SCANNED_AT_ONCE = 1000
_VALUE_MAX = OCTETS_MAX + 64

# In _RELEASE, _CLAIM and _PUT: KEYS[1] the copy or failure, KEYS[2] the claim; ARGV[1] the owner.
# If another program has put a value of another type into a key, pcall returns a table.
_RELEASE = "if redis.pcall('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end"
# ARGV: owner, length of the claim in milliseconds, the last byte to read, 1 for unless_known. A
# claim without an end, or with an end too far ahead (see port.lease_left), is void.
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
# ARGV: owner, time of the fetch, value, milliseconds to live, LATE_SECS (see latest.supersedes).
_PUT = f"""
local old = redis.pcall('GETRANGE', KEYS[1], 0, 63)
local late = type(old) == 'string' and tonumber(string.match(old, '^(%S+) '))
if late then late = late - ARGV[2] end
if not (late and late > 0 and late <= tonumber(ARGV[5])) then
    redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
end
{_RELEASE}
"""
# The lock on a host is a key with a life. Its value is the owner, or "" while the host rests. ARGV:
# owner, life in milliseconds.
_BEGIN_VISIT = """
local owner, left = redis.pcall('GET', KEYS[1]), redis.call('PTTL', KEYS[1])
if left > 0 and type(owner) == 'string' and owner ~= ARGV[1] then return left end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 0
"""
_END_VISIT = """
local owner, left = redis.pcall('GET', KEYS[1]), redis.call('PTTL', KEYS[1])
if type(owner) == 'string' and owner ~= ARGV[1] then
    if owner ~= '' or left >= tonumber(ARGV[2]) then return end
end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], '', 'PX', ARGV[2]) end
"""


class _Call(NamedTuple):
    """A command that is not sent yet, and the function that reads the reply."""

    command: Sequence[Any]
    read: Callable[[Any], Any]


class RedisStorage:
    """Keeps copies in the Redis server at *url*, under keys with the prefix *prefix*.

    The value of a site begins with the time of the fetch or failure, and expires *ttl_secs* after
    it was stored. Claims and locks use the clock of the server.
    """

    blocking: ClassVar[bool] = True
    SETTINGS: ClassVar[Mapping[str, Setting]] = REDIS_SETTINGS

    def __init__(self, url: str, prefix: str, ttl_secs: int, robot: str = "") -> None:
        self._client = _redis_client(url)
        self._is_closed = False
        self._prefix = f"{prefix}:{_VERSION}"
        self._ttl_ms = min(ttl_secs * 1000, _TTL_MAX_MS)
        self._robot = robot
        self.is_batch = False
        """Whether methods return a ``_Call`` and send no command. See ``call_together``."""

    @classmethod
    def from_settings(cls, settings: Settings) -> RedisStorage:
        """Connect to KOSTER_REDIS_URL. Raises StorageError if the connection fails."""
        robot = settings.get("ROBOTSTXT_USER_AGENT") or ""
        url, prefix, ttl_secs = (settings[name] for name in REDIS_SETTINGS)
        storage = cls(url, prefix, ttl_secs, robot)
        storage.connect()
        return storage

    def connect(self) -> None:
        """Connect to the server. Raises StorageError if the connection fails."""
        with self._errors():
            self._client.ping()

    def evicts(self) -> bool:
        """Return whether the server may evict keys, such as the lock of a host, as far as known."""
        try:
            policy: str = self._client.info("memory")["maxmemory_policy"]
        except Exception:  # noqa: BLE001  # no right, or another program
            return False
        return policy != "noeviction"

    def call_together(self, calls: Sequence[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> Any:
        """Make *calls* in one message, and return the list of their results.

        A call has the name, the positional and the named arguments of a method. The result of a
        failed call is the exception.
        """
        batch = copied(self)
        batch.is_batch = True
        made = [_outcome(getattr(batch, name), *args, **how) for name, args, how in calls]
        replies = iter(self._replies([c.command for c in made if isinstance(c, _Call)]))
        return [
            _outcome(self._read, each.read, next(replies)) if isinstance(each, _Call) else each
            for each in made
        ]

    def _replies(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send *commands* in one message. Return the replies; an exception for a failed command."""
        try:
            with self._client.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                return list(pipeline.execute(raise_on_error=False))
        except Exception as error:  # noqa: BLE001  # the server may be any program
            return [error] * len(commands)

    def _read(self, read: Callable[[Any], _T], reply: Any) -> _T:
        """Return *reply*, converted by *read*. Raises StorageError for an error in *reply*."""
        with self._errors():
            if isinstance(reply, Exception):
                raise reply
            return read(reply)

    def _send(self, read: Callable[[Any], _T], *command: Any) -> _T:
        """Return the reply to *command*, converted by *read*. In a batch, return a ``_Call``."""
        with self._errors():  # an invalid text fails only this call, not a batch
            encoded = [each.encode() if isinstance(each, str) else each for each in command]
        if self.is_batch:
            return cast("_T", _Call(encoded, read))
        return self._read(read, self._replies([encoded])[0])

    def _run(self, read: Callable[[Any], _T], script: str, site: Site, *given: Any) -> _T:
        keys = self._key("known", site), self._key("claim", site)
        return self._send(read, "EVAL", script, len(keys), *keys, *given)

    def get(self, site: Site) -> CacheEntry | None:
        """Return the copy or failure of *site*, or None if no valid value is stored."""
        return self._send(_known_in, "GETRANGE", self._key("known", site), 0, _VALUE_MAX)

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        """Claim *site* for *owner*, unless another owner holds *site*. *now* is not used."""
        given = owner, max(1, int(secs * 1000)), _VALUE_MAX, int(unless_known)
        return self._run(_claimed, _CLAIM, site, *given)

    def begin_visit(self, host: str, owner: str, *, now: float, secs: float) -> float:
        """Lock *host* for *owner*, or return the seconds to wait. *now* is not used."""
        return self._lock(lambda left_ms: float(left_ms) / 1000, _BEGIN_VISIT, host, owner, secs)

    def end_visit(self, host: str, owner: str, *, now: float, secs: float) -> None:
        """Unlock *host*, which rests for *secs*. *now* is not used."""
        return self._lock(lambda _: None, _END_VISIT, host, owner, secs)

    def _lock(
        self, read: Callable[[Any], _T], script: str, host: str, owner: str, secs: float
    ) -> _T:
        millis = min(math.ceil(secs * 1000), _TTL_MAX_MS)
        key = f"{self._prefix}:lock:{{{host}}}"
        return self._send(read, "EVAL", script, 1, key, owner, millis)

    def put(self, site: Site, copy: CacheEntry, owner: str = "") -> None:
        """Store *copy* if it ``supersedes`` the stored value. End the claim of *owner*."""
        with self._errors():
            time = repr(float(recorded_at(copy)))
            value = time.encode() + b" " + encoded(copy)
        return self._run(lambda _: None, _PUT, site, owner, time, value, self._ttl_ms, LATE_SECS)

    def release(self, site: Site, owner: str) -> None:
        """Delete the claim of *owner*, if any."""
        return self._run(lambda _: None, _RELEASE, site, owner)

    def forget(self, site: Site) -> bool:
        """Delete the value of *site*. Return False if there was no value."""
        return self._send(bool, "DEL", self._key("known", site))

    def sites(self) -> Iterator[tuple[Site, CacheEntry]]:
        """Iterate over the valid values of the robot, even while other processes write."""
        names = sorted({name for name, robot in self._stored() if robot == self._robot})
        for site in filter(None, map(site_named, names)):
            if (known := self.get(site)) is not None:
                yield site, known

    def robots(self) -> list[str]:
        """Return the names of the robots that have values, sorted."""
        return sorted({robot for _, robot in self._stored()})

    def close(self) -> None:
        """Close the connections."""
        self._is_closed = True
        self._client.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise StorageError if closed. Turn errors into StorageError with the server's address."""
        if self._is_closed:
            raise StorageError("the storage is closed: open a new one")
        try:
            yield
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  # the server may be any program
            raise StorageError(
                f"the Redis server {_place_of(self._client)} failed: {type(error).__name__}:"
                f" {error}. Start or repair it, or set KOSTER_REDIS_URL to another one"
            ) from None

    def _stored(self) -> Iterator[tuple[str, str]]:
        """Yield the names of the site and the robot of each value. Values may come twice."""
        head = f"{self._prefix}:known:{{"
        with self._errors():
            keys = list(self._client.scan_iter(match=f"{head}*", count=_SCANNED_AT_ONCE))
        for key in keys:
            name, _, robot = key.decode(errors="replace")[len(head) : -1].partition(" ")
            yield name, robot

    def _key(self, kind: str, site: Site) -> str:
        # The text in braces decides on the slot in a Cluster, so both keys of a site share a slot.
        name = f"{site} {self._robot}".rstrip()
        return f"{self._prefix}:{kind}:{{{name}}}"


def _outcome(call: Callable[..., Any], *args: Any, **how: Any) -> Any:
    try:
        return call(*args, **how)
    except Exception as error:  # noqa: BLE001  # the caller raises it later
        return error


# Functions to read the replies.


def _known_in(value: bytes) -> CacheEntry | None:
    try:
        return decoded(value.partition(b" ")[2])
    except ValueError:
        return None


def _claimed(reply: Any) -> Claimed:
    left_ms, value = reply
    return Claimed(_known_in(value), left_ms / 1000)


# The client. Errors never show the password.


# redis-py types the results of methods as awaitable, too: hence Any.
def _redis_client(url: str) -> Any:
    """Return a client for the server at *url*. The client connects when first used.

    Raises StorageError if *url* is invalid.
    """
    # By default, redis-py 5 does not check the host name.
    tls = {"ssl_check_hostname": True} if url.startswith("rediss:") else {}
    try:
        client = redis.Redis.from_url(
            url,
            socket_timeout=_TIMEOUT_SECS,
            socket_connect_timeout=_TIMEOUT_SECS,
            # A single retry, at once, if the server has closed an idle connection. More retries, or
            # a retry after a time-out, would block the thread for too long.
            retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
            redis_connect_func=_log_in,
            **tls,
        )
        client.connection_pool.make_connection()
    except Exception as error:  # noqa: BLE001  # a wrong URL raises many kinds of errors
        # Without the text of the error: an invalid URL may have a password anywhere.
        raise StorageError(
            f"no Redis server can be opened by KOSTER_REDIS_URL: {type(error).__name__}."
            " See docs/fleet.md"
        ) from None
    return client


def _log_in(connection: Any) -> None:
    # The error is replaced: its text may quote the command HELLO, which has the password.
    try:
        connection.on_connect()
    except Exception as error:  # noqa: BLE001  # the server may be any program
        is_late = isinstance(error, redis.TimeoutError)
        kind = redis.TimeoutError if is_late else redis.ConnectionError
        raise kind(f"{type(error).__name__} while logging in") from None


def _place_of(client: Any) -> str:
    """Return the host and port of the server, or the path of its socket."""
    settings = client.connection_pool.connection_kwargs
    path = settings.get("path")
    return str(path or f"{settings.get('host')}:{settings.get('port', 6379)}")
