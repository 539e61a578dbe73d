"""A copy of each parked request in the Redis of scrapy-redis, in case this worker is killed.

There is a set of the names of workers. For each worker there are a lease and two more keys:

- ``parked``: a hash of the requests that wait in the worker, as the queue would have them.
- ``taken``: a set of the fields that another worker has moved into the queue after the lease
  expired. A worker that was only suspended finds them, and drops these requests.

Requests are written by the serializer of scrapy-redis, and read only by it. Calls are synchronous,
like those of scrapy-redis. They use connections to its server that wait for a second at most.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import islice, takewhile
from secrets import token_hex
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.crawl.messages.log import ServerLog
from scrapy_koster.protocol.printable import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.clock import Clock, Instant, Ticks
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.parking.parked_file import Place

T = TypeVar("T")

LEASE_SECS = 30.0
TICK_SECS = 0.25
# Each request to a new site is parked for a moment. One that comes out sooner is not written.
YOUNG_SECS = 0.5
_AT_ONCE = 500
# The time without calls after one that was not answered. A call holds the loop for a second.
REST_SECS = 5.0
_TIMEOUT_SECS = 1.0
# The most that one look takes, and moves of each.
_WORKERS = 1_000
MOVED_AT_ONCE = 10_000
# How long a worker that was suspended can learn which of its requests others have taken over.
_REMEMBERED_SECS = 7 * 24 * 3600
_NAME = re.compile(r"[0-9a-f]{16}", re.ASCII)
# Redis keeps scores as floats: integers are exact up to here.
_SCORE = 2**53

# How the queues of scrapy-redis push, by the names of their classes: it need not be installed.
_PUSHES = {"PriorityQueue": "ZADD", "FifoQueue": "LPUSH", "LifoQueue": "LPUSH"}

# Moves the parked requests of a worker into the queue, unless it holds its lease. Returns how many
# requests were moved, and for how many another worker has to stay. A request that cannot be pushed
# stays parked, so at any moment it is in one of the two. Redis 5 or later.
_TAKE_OVER = """
local parked, lease, taken, workers, queue = unpack(KEYS)
local worker, push, at_once, remembered = unpack(ARGV)
local held = redis.call('GET', lease)
if held then
    return {0, held == 'done' and 0 or redis.call('HLEN', parked)}
end
local moved, cursor = 0, '0'
repeat
    local page = redis.call('HSCAN', parked, cursor, 'COUNT', 500)
    cursor = page[1]
    for i = 1, #page[2], 2 do
        local field, request = page[2][i], page[2][i + 1]
        local score = #field <= 40 and field:match('^(%-?%d+) %d+$')
        if score and redis.call('HEXISTS', parked, field) == 1 then
            if push == 'ZADD' then
                redis.call('ZADD', queue, score, request)
            else
                redis.call('LPUSH', queue, request)
            end
            redis.call('SADD', taken, field)
            moved = moved + 1
        end
        redis.call('HDEL', parked, field)
    end
until cursor == '0' or moved >= tonumber(at_once)
redis.call('EXPIRE', taken, remembered)
local left = redis.call('HLEN', parked)
if left == 0 then redis.call('SREM', workers, worker) end
return {moved, left}
"""


class RedisBackup:
    """Writes requests that are parked for longer than a moment to the Redis of the queue.

    Each worker has a lease that it renews. When the lease has expired, another worker moves the
    parked requests into the queue.

    While Redis does not answer, another worker may take over requests. So none of them comes out
    until it answers, and Redis is only called from time to time.
    """

    def __init__(self, log: Log, engine: Engine, clock: Clock, queue: Any, push: str) -> None:
        """*queue* is that of scrapy-redis, *push* the command by which it pushes."""
        self._log = log
        self._engine = engine
        self._clock = clock
        self._queue = queue
        self._push = push
        self._server = _prompt(queue.server)
        self._take_over = self._server.register_script(_TAKE_OVER)
        self._me = token_hex(8)
        self._unwritten: dict[Place, tuple[Instant, Request]] = {}
        """The requests of which Redis has no copy, and when they were parked: oldest first."""
        self._waits = True
        """Whether requests may wait in this worker, so that others wait for it."""
        self._look_at = LONG_AGO
        self._rests_until = LONG_AGO
        self.is_holding = False
        """Whether no request may come out: Redis does not answer."""
        self._has_warned = self._has_told = False
        self._ticking: Ticks | None = None

    def open(self, *, anew: bool) -> None:
        """Take over what other workers have left, or drop it if the crawl begins *anew*."""
        if anew:
            self._try(lambda: self._forget(*self._others()))
        self._tick()
        self._ticking = self._clock.every(TICK_SECS, self._tick)

    def add(self, place: Place, request: Request) -> None:
        """Write *request*, which waits at *place*, if it still does after a moment."""
        self._waits = True
        self._unwritten[place] = (self._clock.now(), request)

    def remove(self, place: Place) -> bool | None:
        """Note that the request at *place* comes out. Return False if another worker has taken it
        over, and None if Redis does not answer: then it must not come out yet.
        """
        self._waits = True
        parked_at, _ = self._unwritten.get(place, (LONG_AGO, None))
        # An older one may have been written although no answer came.
        is_written = parked_at <= self._clock.now() - YOUNG_SECS
        is_taken = self._try(partial(self._removed, _field(place))) if is_written else False
        if is_taken is None:
            return None
        self._unwritten.pop(place, None)
        if is_taken and not self._has_told:
            self._has_told = True
            self._log.info(
                "This worker could not reach Redis for %(secs)g s or longer. Other workers have"
                " taken over its waiting requests, so they are dropped here",
                secs=LEASE_SECS,
            )
        return not is_taken

    def _removed(self, field: str) -> bool:
        """Remove a request that came out; return whether another worker has taken it over.

        It asks for what was left behind, not for what is gone: neither a Redis that has lost its
        data nor a call that was repeated makes a request another's.
        """
        with self._server.pipeline() as pipe:
            pipe.hdel(self._key("parked", self._me), field)
            pipe.sismember(self._key("taken", self._me), field)
            return bool(pipe.execute()[-1])

    def others_wait(self) -> bool:
        """Return whether requests wait in other workers. This worker has nothing left to do.

        Workers that are done as well do not count: their parked requests go back into the queue
        when they end. While Redis is silent requests may wait.
        """
        self._waits = False
        if self._try(self._renew) is None:
            return self.is_holding
        return any(self._try(self._look) or ())

    def close(self, parked: Iterable[tuple[Place, Request]], *, keep: bool) -> int:
        """Move the requests that are still *parked* into the queue, or drop them.

        Return how many requests could not be written, and are lost.
        """
        if self._ticking is not None:
            self._ticking.stop()
        self._rests_until = LONG_AGO
        try:
            lost = self._try(partial(self._hand_back, parked if keep else (), keep=keep))
            return len(self._unwritten) if lost is None else lost
        finally:
            if self._server is not self._queue.server:
                self._server.connection_pool.disconnect()

    def _hand_back(self, parked: Iterable[tuple[Place, Request]], *, keep: bool) -> int:
        """Move what is parked in this worker into the queue; return how much is lost.

        In an order in which a kill loses nothing and doubles nothing: what was not moved is
        moved by another worker or in the next run.
        """
        lost = 0
        if keep:
            self._renew()  # while the lease is held no other worker takes them
            taken = {_text(each) for each in self._server.smembers(self._key("taken", self._me))}
            # All of them: Redis may have lost some.
            own = ((place, request) for place, request in parked if _field(place) not in taken)
            while chunk := dict(islice(own, _AT_ONCE)):
                lost += len(chunk) - self._renew(chunk)
            self._server.delete(self._key("lease", self._me))
            while self._move(self._me)[0]:
                pass
        self._forget(self._me)
        return lost

    # From time to time.

    def _tick(self) -> None:
        now = self._clock.now()
        old = takewhile(lambda item: item[1][0] <= now - YOUNG_SECS, self._unwritten.items())
        due = iter([(place, request) for place, (_, request) in old])
        while True:  # once at least: a Redis that does not answer is noticed soon
            chunk = dict(islice(due, _AT_ONCE))
            if self._try(partial(self._renew, chunk)) is None:
                return
            for place in chunk:
                del self._unwritten[place]
            if len(chunk) < _AT_ONCE:
                break
        if now >= self._look_at:
            self._look_at = now + LEASE_SECS / 3
            self._try(self._look)

    def _renew(self, chunk: Mapping[Place, Request] = MappingProxyType({})) -> int:
        """Renew the lease, and write *chunk*; return how many of its requests can be written.

        The lease is "waits", or "done" if other workers need not wait for this one.
        """
        encoded = {_field(place): self._encoded(request) for place, request in chunk.items()}
        parked = {field: data for field, data in encoded.items() if data is not None}
        lease = "waits" if self._waits else "done"
        with self._server.pipeline() as pipe:
            pipe.set(self._key("lease", self._me), lease, px=int(LEASE_SECS * 1000))
            pipe.sadd(self._key("workers"), self._me)
            if parked:
                pipe.hset(self._key("parked", self._me), mapping=parked)
            pipe.execute()
        return len(parked)

    def _encoded(self, request: Request) -> Any:
        try:
            return self._queue._encode_request(request)  # noqa: SLF001  # as it pushes
        except Exception as error:  # noqa: BLE001  # a request may carry objects of any class
            self._warn(error_text(error))
            return None

    # The workers.

    def _look(self) -> tuple[int, int]:
        """Move what the dead have parked into the queue.

        Return how many requests were moved, and how many wait in workers that are not done.
        """
        seen = [self._move(worker) for worker in self._others()]
        moved = sum(each for each, _ in seen)
        if moved:
            self._log.info(
                "Requests that waited in a worker that has died, and are back in the queue:"
                " %(count)d",
                count=moved,
            )
            self._engine.wake()
        return moved, sum(left for _, left in seen)

    def _others(self) -> list[str]:
        found = self._server.srandmember(self._key("workers"), _WORKERS)
        return [name for name in map(_text, found) if name != self._me and _NAME.fullmatch(name)]

    def _move(self, worker: str) -> tuple[int, int]:
        """Move what a worker without a lease has parked, or a part of it, into the queue."""
        keys = [self._key(name, worker) for name in ("parked", "lease", "taken")]
        keys += [self._key("workers"), self._queue.key]
        args = [worker, self._push, MOVED_AT_ONCE, _REMEMBERED_SECS]
        moved, left = self._take_over(keys=keys, args=args)
        return moved, left

    def _forget(self, *workers: str) -> None:
        """Drop the requests that are parked in *workers*."""
        with self._server.pipeline() as pipe:
            for worker in workers:
                pipe.delete(*(self._key(name, worker) for name in ("parked", "lease", "taken")))
                pipe.srem(self._key("workers"), worker)
            pipe.execute()

    def _key(self, *names: str) -> str:
        return ":".join([self._queue.key, "koster", *names])

    # A Redis that fails.

    def _try(self, call: Callable[[], T]) -> T | None:
        """Return the result of *call*, or None if Redis fails or has just failed."""
        now = self._clock.now()
        if now < self._rests_until:
            return None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001  # the client may be of any class
            # A server that refuses a call does answer. It lets no worker take over requests,
            # either.
            if not any(kind.__name__ == "ResponseError" for kind in type(error).__mro__):
                self._rests_until, self.is_holding = self._clock.now() + REST_SECS, True
            # Without its text: a server may quote the password.
            self._warn(type(error).__name__)
            return None
        if self.is_holding:
            self.is_holding = False
            self._engine.wake()
        return result

    def _warn(self, error: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._log.warning(
                "Waiting requests cannot be written to the Redis of scrapy-redis (%(error)s). They"
                " are kept in memory, and lost if this process is killed. The write is retried:"
                " check the Redis server",
                error=error,
            )


def backup_of(crawler: Crawler, scheduler: Any, engine: Engine, clock: Clock) -> RedisBackup | None:
    """Return the backup for a *scheduler* of scrapy-redis, None for any other."""
    queue = getattr(scheduler, "queue", None)
    push = push_of(queue)
    if push is None:
        return None
    log = ServerLog(__name__, crawler, _server_of(queue))
    return RedisBackup(log, engine, clock, queue, push)


def _field(place: Place) -> str:
    """Return the field of a request in Redis: the score that its queue gives it, and its number."""
    score, number = place
    return f"{max(-_SCORE, min(_SCORE, score))} {number}"


def _prompt(server: Any) -> Any:
    """Return a client of the same server that does not wait for long and tries once.

    That of scrapy-redis waits for 30 seconds, and may try ten times. Where it is no plain client
    (of a Sentinel, of a Cluster) it is used itself.
    """
    pool: Any = getattr(server, "connection_pool", None)
    if type(pool).__name__ != "ConnectionPool":
        return server
    options = {**pool.connection_kwargs, "socket_timeout": _TIMEOUT_SECS}
    if "path" not in options:  # a socket on this machine takes none
        options["socket_connect_timeout"] = _TIMEOUT_SECS
    options |= {"retry": None, "retry_on_timeout": False, "retry_on_error": []}
    own = type(pool)(connection_class=pool.connection_class, **options)
    return type(server)(connection_pool=own)


def _server_of(queue: Any) -> str:
    """Return where the server of *queue* is, "" if that is not known."""
    pool = getattr(getattr(queue, "server", None), "connection_pool", None)
    options = getattr(pool, "connection_kwargs", {})
    if "path" in options:
        return str(options["path"])
    return f"{options['host']}:{options.get('port', 6379)}" if "host" in options else ""


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode("latin-1")


def push_of(queue: Any) -> str | None:
    """Return the command by which *queue* pushes, None if it is not one of scrapy-redis."""
    if not all(hasattr(queue, name) for name in ("_encode_request", "server", "key")):
        return None
    pushes = (_PUSHES.get(kind.__name__) for kind in type(queue).__mro__)
    return next(filter(None, pushes), None)
