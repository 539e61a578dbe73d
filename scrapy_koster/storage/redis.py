"""A storage in Redis, which the processes of many machines may share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import OCTETS_MAX, decoded, encoded, site_named
from scrapy_koster.storage.latest import LATE_SECS, learnt
from scrapy_koster.storage.port import Claimed, Settings, StorageError
from scrapy_koster.storage.redis_settings import REDIS_SETTINGS
from scrapy_koster.storage.setting import Setting
from scrapy_koster.storage.turns import GIVES_WAY_TIMES, GRACE_SECS

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError as error:
    raise ImportError("RedisStorage needs redis-py: pip install 'scrapy-koster[redis]'") from error

_TIMEOUT_SECS = 2.0
_VERSION = 1
_TTL_MAX_MS = 2**52
_VALUE_MAX = OCTETS_MAX + 64
_SCANNED_AT_ONCE = 1000

# In all of them: KEYS[1] what is known, KEYS[2] the claim; ARGV[1] the owner. A key may
# hold what somebody else put there, of any type: pcall returns a table then, which is no text.
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
# KEYS[1]: the last visit to a host: for how long it is kept, which with what is left says when it
# was, and the delay that gives way to (see turns.turn). ARGV: the delay, 1 for begun, for how long
# to keep it, the grace: in milliseconds. One without an end, or of another kind, is void.
_VISIT = f"""
local secs, keep, life, grace = tonumber(ARGV[1]), ARGV[2] == '1', ARGV[3], tonumber(ARGV[4])
local value = redis.pcall('GET', KEYS[1])
local age, wanted, ends
if type(value) == 'string' and #value < 50 then
    local kept, want = string.match(value, '^(%d+) (%d+)$')
    ends = redis.call('PTTL', KEYS[1])
    if kept and ends > 0 and ends <= tonumber(kept) then
        age, wanted, life = kept - ends, tonumber(want), keep and life or kept
    end
end
local left = 0
if age and not keep then
    local needed = secs
    if wanted > secs then
        needed = math.max(secs, math.min(wanted + math.min(grace, secs), {GIVES_WAY_TIMES} * secs))
    end
    left = math.max(needed - age, 0)
end
if left > 0 then
    if secs > wanted then
        redis.call('SET', KEYS[1], string.format('%s %.0f', life, secs), 'PX', ends)
    end
else
    if not (age and keep and wanted > secs) then wanted = 0 end
    life = ARGV[3]
    redis.call('SET', KEYS[1], string.format('%s %.0f', life, wanted), 'PX', life)
end
return math.ceil(left)
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


class RedisStorage:
    """Keeps what is known in the Redis of *url*, under keys that begin with *prefix*.

    The key of a site has its version, and its value begins with the time when
    it was learnt. It ends *ttl_secs* after it was last put.
    """

    blocking: ClassVar[bool] = True
    SETTINGS: ClassVar[Mapping[str, Setting]] = REDIS_SETTINGS

    def __init__(self, url: str, prefix: str, ttl_secs: int) -> None:
        self._prefix = prefix
        self._ttl_ms = min(ttl_secs * 1000, _TTL_MAX_MS)
        self._closed = False
        self._redis = _client(url)
        self._spare: list[Any] = []
        """Clients with a connection of their own that no call uses now. The pool looks at each
        connection that it hands out, which is a quarter of what a call costs.
        """
        self._claim = self._redis.register_script(_CLAIM)
        self._put = self._redis.register_script(_PUT)
        self._visit = self._redis.register_script(_VISIT)
        self._release = self._redis.register_script(_RELEASE)

    @classmethod
    def from_settings(cls, settings: Settings) -> RedisStorage:
        """Open the Redis KOSTER_REDIS_URL; it is connected to when it is first asked."""
        return cls(*(settings[name] for name in REDIS_SETTINGS))

    def get(self, site: Site) -> Known | None:
        """Return what is known of *site*; a value that is not valid is a miss."""
        with self._connected() as client:
            return _get(client, self._known_key(site))

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        """Set a claim of *owner*, unless there is one of another; by the clock of the server."""
        with self._connected() as client:
            keys, claim = self._keys(site), [owner, max(1, int(secs * 1000)), _VALUE_MAX]
            left_ms, value = self._claim(keys, [*claim, int(unless_known)], client)
            known = _read(value)
            if unless_known and value and known is None:
                # It cannot be read, and says nothing. By now another may have put what can.
                left_ms, value = self._claim(keys, [*claim, 0], client)
                known = _read(value)
            return Claimed(known, left_ms / 1000)

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> float:
        """Set a visit to *host*, unless there is one; by the clock of the server."""
        with self._connected() as client:
            millis = min(max(1, math.ceil(secs * 1000)), _TTL_MAX_MS)
            given = [millis, int(begun), max(millis, self._ttl_ms), int(GRACE_SECS * 1000)]
            return float(self._visit([self._key("visit", host)], given, client)) / 1000

    def put(self, site: Site, copy: Known, owner: str = "") -> None:
        """Set *copy*, unless there is a later one."""
        with self._connected() as client:
            time = repr(float(learnt(copy)))
            value = time.encode() + b" " + encoded(copy)
            self._put(self._keys(site), [owner, time, value, self._ttl_ms, LATE_SECS], client)

    def release(self, site: Site, owner: str) -> None:
        """Delete the claim of *owner*, if there is one."""
        with self._connected() as client:
            self._release(self._keys(site), [owner], client)

    def sites(self) -> Iterator[tuple[Site, Known]]:
        """Iterate over the valid values; others may write meanwhile."""
        head = self._key("known", "")[:-1]
        with self._connected() as client:
            keys = client.scan_iter(match=f"{head}*", count=_SCANNED_AT_ONCE)
            # SCAN may say a key twice.
            names = sorted({_name(key, head) for key in keys})
        for site in filter(None, map(site_named, names)):
            known = self.get(site)
            if known is not None:
                yield site, known

    def forget(self, site: Site) -> bool:
        """Delete what is known of *site*; False if there was nothing."""
        with self._connected() as client:
            return bool(client.delete(self._known_key(site)))

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        with _errors_told(self._redis):
            self._redis.close()  # those of the spare clients as well
            self._spare.clear()

    def _keys(self, site: Site) -> list[str]:
        return [self._known_key(site), self._key("claim", str(site))]

    def _known_key(self, site: Site) -> str:
        return self._key("known", str(site))

    def _key(self, kind: str, name: str) -> str:
        # What is in braces decides on the slot of a Cluster: for both keys the same.
        return f"{self._prefix}:{_VERSION}:{kind}:{{{name}}}"

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Yield a client that no other thread uses. What was raised says nothing of a connection:
        the next call has another one.
        """
        if self._closed:
            raise StorageError("the storage is closed: open a new one")
        with _errors_told(self._redis):
            client = self._spare.pop() if self._spare else self._redis.client()
            try:
                yield client
            except BaseException:
                client.connection.disconnect()
                client.close()
                raise
            self._spare.append(client)


# redis-py types what its methods return as what may have to be awaited, too: hence Any.
def _client(url: str) -> Any:
    # Beyond the default of redis-py of version 5.
    tls = {"ssl_check_hostname": True} if url.startswith("rediss:") else {}
    try:
        client = redis.Redis.from_url(
            url,
            socket_timeout=_TIMEOUT_SECS,
            socket_connect_timeout=_TIMEOUT_SECS,
            # At once: a connection that the server has closed meanwhile. More, or after a time-out,
            # would hold a thread of the pool for long.
            retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
            redis_connect_func=_log_in,
            **tls,
        )
        client.connection_pool.make_connection()
    except Exception as error:  # noqa: BLE001  # what is wrong with it, redis-py says in many ways
        # Not the text of the error: a URL that is not valid may have a password anywhere.
        raise StorageError(
            f"no Redis server can be opened by KOSTER_REDIS_URL: {type(error).__name__}."
            " See docs/fleet.md"
        ) from None
    return client


def _log_in(connection: Any) -> None:
    # A server may quote what it does not understand, in any form: HELLO has the password.
    try:
        connection.on_connect()
    except Exception as error:  # noqa: BLE001  # whatever answers at that port
        is_late = isinstance(error, redis.TimeoutError)
        kind = redis.TimeoutError if is_late else redis.ConnectionError
        raise kind(f"{type(error).__name__} while logging in") from None


@contextmanager
def _errors_told(client: Any) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever answers at that port
        settings = client.connection_pool.connection_kwargs
        raise StorageError(
            f"the Redis server {_where(settings)} failed:"
            f" {type(error).__name__}: {error}. Start or repair it, or set KOSTER_REDIS_URL to"
            " another one"
        ) from None


def _where(settings: dict[str, Any]) -> str:
    path = settings.get("path")
    return str(path or f"{settings.get('host')}:{settings.get('port', 6379)}")


def _get(client: Any, key: str) -> Known | None:
    try:
        return _read(client.getrange(key, 0, _VALUE_MAX))
    except redis.ResponseError as error:
        if str(error).startswith("WRONGTYPE"):
            return None
        raise


def _read(value: bytes) -> Known | None:
    _, _, octets = value.partition(b" ")
    try:
        return decoded(octets)
    except ValueError:
        return None


def _name(key: bytes, head: str) -> str:
    return key.decode(errors="replace")[len(head) : -1]
