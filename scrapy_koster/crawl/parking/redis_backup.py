"""Copies of parked requests in the Redis of scrapy-redis, in case this worker is killed.

Redis has a set of the names of workers. A worker has a lease, which expires, and two more keys:

- ``parked``: a hash of the requests that wait in the worker, encoded as in the queue.
- ``taken``: a set of the fields that another worker has moved into the queue after the lease
  expired. A worker that was only suspended drops these requests.

Only the serializer of scrapy-redis writes and reads requests. Calls are synchronous, like the calls
of scrapy-redis. Connecting and reading wait for a second at most, except with other connection
pools than that of the client's default, such as those of a Sentinel or a Cluster.
"""

from collections.abc import Callable, Iterable
from functools import partial
from secrets import token_hex
from typing import Any, TypeVar

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_koster.crawl.clock import LONG_AGO, Clock, Ticks
from scrapy_koster.crawl.engine.private import Engine
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.parking.parked_file import Place
from scrapy_koster.protocol.printable import error_text

T = TypeVar("T")

LEASE_SECS = 30.0
# The time between two writes. Usually a request to a new site is parked for a shorter time, and is
# never written.
TICK_SECS = 0.75
_AT_ONCE = 500
# A call without an answer blocks the loop for a second. Then no call is made for REST_SECS.
REST_SECS = 5.0
_TIMEOUT_SECS = 1.0
# About the largest number of requests that a call of the script moves.
MOVED_AT_ONCE = 10_000
# How long ``taken`` is kept. A worker that was suspended for longer crawls its requests again.
_REMEMBERED_SECS = 7 * 24 * 3600

# The command that pushes to a queue of scrapy-redis, by class name. The classes are not imported,
# because scrapy-redis may not be installed.
_PUSHES = {"PriorityQueue": "ZADD", "FifoQueue": "LPUSH", "LifoQueue": "LPUSH"}

# Moves the parked requests of a worker into the queue, unless the lease of the worker is valid.
# Returns the number of moved requests, and the number of requests that are still parked.
# Requests that cannot be pushed stay parked. Needs Redis 5 or later.
_TAKE_OVER = """
local parked, lease, taken, workers, queue = unpack(KEYS)
local worker, push, at_once, remembered = unpack(ARGV)
if redis.call('GET', lease) then
    return {0, redis.call('HLEN', parked)}
end
local moved, cursor = 0, '0'
repeat
    local page = redis.call('HSCAN', parked, cursor, 'COUNT', 500)
    cursor = page[1]
    for i = 1, #page[2], 2 do
        local field, request = page[2][i], page[2][i + 1]
        if redis.call('HEXISTS', parked, field) == 1 then
            if push == 'ZADD' then
                redis.call('ZADD', queue, field:match('^%S+'), request)
            else
                redis.call('LPUSH', queue, request)
            end
            redis.call('SADD', taken, field)
            redis.call('HDEL', parked, field)
            moved = moved + 1
        end
    end
until cursor == '0' or moved >= tonumber(at_once)
redis.call('EXPIRE', taken, remembered)
local left = redis.call('HLEN', parked)
if left == 0 then redis.call('SREM', workers, worker) end
return {moved, left}
"""


class RedisBackup:
    """Copies parked requests to the Redis of the queue, once in TICK_SECS.

    A worker renews its lease. If the lease expires, another worker moves the copied requests into
    the queue.

    While Redis does not answer, another worker may take over requests. So no request comes out
    until Redis answers, and Redis is called every few seconds.
    """

    def __init__(self, log: Log, engine: Engine, clock: Clock, queue: Any, push: str) -> None:
        """*queue* is a queue of scrapy-redis, *push* the Redis command that pushes to it."""
        self._log = log
        self._engine = engine
        self._clock = clock
        self._queue = queue
        self._push = push
        self._server = _prompt(queue.server)
        self._take_over = self._server.register_script(_TAKE_OVER)
        self._me = token_hex(8)
        self._unwritten: dict[Place, Request] = {}
        """The requests to write at the next tick."""
        self._look_at = LONG_AGO
        self._rests_until = LONG_AGO
        self.is_holding = False
        """Whether no request can come out, because Redis does not answer."""
        self._ticking: Ticks | None = None

    def open(self, *, anew: bool) -> None:
        """Move the requests of dead workers into the queue, now and from time to time.

        With *anew*, first drop the requests of all other workers, including live workers.
        """
        if anew:
            self._try(lambda: self._forget(*self._others()))
        self._tick()
        self._ticking = Ticks(self._clock, TICK_SECS, self._tick)

    def add(self, place: Place, request: Request) -> None:
        """Write *request* at the next tick, unless ``remove`` is called for *place* before."""
        self._unwritten[place] = request

    def remove(self, place: Place) -> bool | None:
        """Return whether the request at *place* can come out. Remove its copy.

        False: another worker has taken over the request, which is to be dropped here. None: Redis
        does not answer, or returns an error, and the request must not come out yet.
        """
        # After a failure, an ``_unwritten`` request may be in Redis: the answer can be lost.
        is_written = place not in self._unwritten or self._rests_until != LONG_AGO
        is_taken = self._try(partial(self._removed, _field(place))) if is_written else False
        if is_taken is None:
            return None
        self._unwritten.pop(place, None)
        if is_taken and self._log.is_first("taken over"):
            self._log.info(
                "This worker could not reach Redis for %(secs)g s or longer. Other workers have"
                " taken over its waiting requests, so they are dropped here",
                secs=LEASE_SECS,
            )
        return not is_taken

    def _removed(self, field: str) -> bool:
        """Remove the copy of a request. Return whether another worker has taken over the request.

        Only the set ``taken`` proves a takeover. A copy may also be missing after a repeated call,
        or if Redis has lost data.
        """
        with self._server.pipeline() as pipe:
            pipe.hdel(self._key("parked", self._me), field)
            pipe.sismember(self._key("taken", self._me), field)
            return bool(pipe.execute()[-1])

    def others_wait(self) -> bool:
        """Return whether requests wait in other workers, or have just come from dead workers.

        True while Redis does not answer, too.
        """
        found = self._try(self._look)
        return self.is_holding if found is None else any(found)

    def close(self, parked: Iterable[tuple[Place, Request]], *, keep: bool) -> int:
        """Move the *parked* requests into the queue if *keep*, or drop these requests.

        Return the number of requests that are lost, because they could not be written.
        """
        if self._ticking is not None:
            self._ticking.stop()
        self._rests_until = LONG_AGO
        lost = self._try(partial(self._hand_back, parked, keep=keep))
        if self._server is not self._queue.server:
            self._server.connection_pool.disconnect()
        return len(self._unwritten) if lost is None else lost

    def _hand_back(self, parked: Iterable[tuple[Place, Request]], *, keep: bool) -> int:
        """Move the requests of this worker into the queue if *keep*. Return how many are lost.

        The order of the steps matters. If the process is killed between two steps, another worker
        or the next run moves the rest, and no request is lost or crawled again.
        """
        lost = 0
        if keep:
            self._renew()  # while the lease is valid, no other worker takes requests over
            taken = {_text(each) for each in self._server.smembers(self._key("taken", self._me))}
            # Write these requests again, because Redis may have lost some.
            left = [each for each in parked if _field(each[0]) not in taken]
            chunks = (left[at : at + _AT_ONCE] for at in range(0, len(left), _AT_ONCE))
            lost = sum(map(self._renew, chunks))
            self._server.delete(self._key("lease", self._me))
            while self._move(self._me)[0]:
                pass
        self._forget(self._me)
        return lost

    # At each tick.

    def _tick(self) -> None:
        now = self._clock.now()
        parked = list(self._unwritten.items())
        if self._try(partial(self._renew, parked)) is not None and now >= self._look_at:
            self._look_at = now + LEASE_SECS / 3
            self._try(self._look)

    def _renew(self, parked: Iterable[tuple[Place, Request]] = ()) -> int:
        """Renew the lease, and write *parked*. Return how many requests cannot be encoded."""
        encoded = {place: self._encoded(request) for place, request in parked}
        written = {_field(place): data for place, data in encoded.items() if data is not None}
        with self._server.pipeline() as pipe:
            pipe.set(self._key("lease", self._me), "", px=int(LEASE_SECS * 1000))
            pipe.sadd(self._key("workers"), self._me)
            if written:
                pipe.hset(self._key("parked", self._me), mapping=written)
            pipe.execute()
        for place in encoded:
            self._unwritten.pop(place, None)
        return len(encoded) - len(written)

    def _encoded(self, request: Request) -> Any:
        try:
            return self._queue._encode_request(request)  # noqa: SLF001  # as for a push
        except Exception as error:  # noqa: BLE001  # a request may carry objects of any class
            self._warn(error_text(error))
            return None

    # The workers.

    def _look(self) -> tuple[int, int]:
        """Move the requests of dead workers into the queue.

        Return the number of moved requests, and the number that still wait in other workers.
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
        found = self._server.smembers(self._key("workers"))
        return [name for name in map(_text, found) if name != self._me]

    def _move(self, worker: str) -> tuple[int, int]:
        """Move requests of *worker* into the queue, unless the lease of *worker* is valid.

        Return the number of moved requests, and the number of requests that are still parked.
        """
        keys = [self._key(name, worker) for name in ("parked", "lease", "taken")]
        keys += [self._key("workers"), self._queue.key]
        args = [worker, self._push, MOVED_AT_ONCE, _REMEMBERED_SECS]
        moved, left = self._take_over(keys=keys, args=args)
        return moved, left

    def _forget(self, *workers: str) -> None:
        """Delete the keys of *workers*, with their parked requests."""
        with self._server.pipeline() as pipe:
            for worker in workers:
                pipe.delete(*(self._key(name, worker) for name in ("parked", "lease", "taken")))
                pipe.srem(self._key("workers"), worker)
            pipe.execute()

    def _key(self, *names: str) -> str:
        return ":".join([self._queue.key, "koster", *names])

    # A Redis that fails.

    def _try(self, call: Callable[[], T]) -> T | None:
        """Return the result of *call*, or None if Redis fails.

        After a call without an answer, no call is made for REST_SECS.
        """
        now = self._clock.now()
        if now < self._rests_until:
            return None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001  # the client may be of any class
            # A ResponseError does not hold back the other requests: a server that refuses this call
            # refuses takeovers, too, so no other worker has these requests.
            if not any(kind.__name__ == "ResponseError" for kind in type(error).__mro__):
                self._rests_until, self.is_holding = self._clock.now() + REST_SECS, True
            # Log only the class: in the text, a server may quote the password.
            self._warn(type(error).__name__)
            return None
        if self.is_holding:
            self.is_holding = False
            self._engine.wake()
        return result

    def _warn(self, error: str) -> None:
        self._log.warning_once(
            "Waiting requests cannot be written to the Redis of scrapy-redis (%(error)s). They"
            " are kept in memory, and lost if this process is killed. The write is retried:"
            " check the Redis server",
            error=error,
        )


def backup_of(crawler: Crawler, scheduler: Any, engine: Engine, clock: Clock) -> RedisBackup | None:
    """Return the backup for a *scheduler* of scrapy-redis; None for another scheduler or queue."""
    queue = getattr(scheduler, "queue", None)
    for kind in type(queue).__mro__:
        if kind.__module__ == "scrapy_redis.queue" and kind.__name__ in _PUSHES:
            push = _PUSHES[kind.__name__]
            return RedisBackup(Log(__name__, crawler), engine, clock, queue, push)
    return None


def _field(place: Place) -> str:
    """Return the field of a request in ``parked``: the score in the queue, a space, the number."""
    score, number = place
    return f"{score} {number}"


def _prompt(server: Any) -> Any:
    """Return a client of the same server with a short timeout and without retries.

    The client of scrapy-redis waits for 30 seconds, and may retry ten times. A client with another
    kind of pool, for example of a Sentinel or a Cluster, is returned unchanged.
    """
    pool: Any = getattr(server, "connection_pool", None)
    if type(pool).__name__ != "ConnectionPool":
        return server
    options = {**pool.connection_kwargs, "socket_timeout": _TIMEOUT_SECS}
    if "path" not in options:  # a Unix socket takes no such option
        options["socket_connect_timeout"] = _TIMEOUT_SECS
    options |= {"retry": None, "retry_on_timeout": False, "retry_on_error": []}
    own = type(pool)(connection_class=pool.connection_class, **options)
    return type(server)(connection_pool=own)


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode("latin-1")
