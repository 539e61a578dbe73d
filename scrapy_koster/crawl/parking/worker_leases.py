"""The leases of the workers of scrapy-redis, and their parked requests next to the queue."""

from __future__ import annotations

import re
from secrets import token_hex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# The most that one look takes, and moves of each.
_WORKERS = 1_000
MOVED_AT_ONCE = 10_000
# A call holds the loop. One that fails is made again later.
_TIMEOUT_SECS = 1.0
# How long a worker that was suspended can learn which of its requests others have taken over.
_REMEMBERED_SECS = 7 * 24 * 3600
_NAME = re.compile(r"[0-9a-f]{16}", re.ASCII)

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


class WorkerLeases:
    """This worker and the others: a set of names, and for each worker a lease and two hashes.

    - ``parked``: the requests that wait in the worker, as the queue would have them, by field.
    - ``taken``: the fields that another worker has moved into the queue after the lease expired.

    Requests are written by the serializer of scrapy-redis, and read only by it. Calls are
    synchronous, like those of scrapy-redis. They use connections to its server that wait for a
    second at most, and raise the errors of its client.
    """

    def __init__(self, queue: Any, push: str) -> None:
        """*queue* is that of scrapy-redis, *push* the command by which it pushes."""
        self._queue = queue
        self._server = _prompt(queue.server)
        self._is_own = self._server is not queue.server
        self._push = push
        self._me = token_hex(8)
        self._take_over = self._server.register_script(_TAKE_OVER)

    def renew(self, secs: float, lease: str, parked: Mapping[str, Any]) -> None:
        """Hold the lease for *secs*, and write what is parked.

        The lease is "waits", or "done" if other workers need not wait for this one.
        """
        with self._server.pipeline() as pipe:
            pipe.set(self._key("lease", self._me), lease, px=int(secs * 1000))
            pipe.sadd(self._key("workers"), self._me)
            if parked:
                pipe.hset(self._key("parked", self._me), mapping=dict(parked))
            pipe.execute()

    def taken(self) -> set[str]:
        """Return the fields of what other workers have taken over from this one."""
        return {_text(field) for field in self._server.smembers(self._key("taken", self._me))}

    def close(self) -> None:
        """Close the connections, if those are not the queue's."""
        if self._is_own:
            self._server.connection_pool.disconnect()

    def remove(self, field: str) -> bool:
        """Remove a request that came out; return whether another worker has taken it over.

        It asks for what was left behind, not for what is gone: neither a Redis that
        has lost its data nor a call that was repeated makes a request another's.
        """
        with self._server.pipeline() as pipe:
            pipe.hdel(self._key("parked", self._me), field)
            pipe.sismember(self._key("taken", self._me), field)
            return bool(pipe.execute()[-1])

    def look(self) -> tuple[int, int]:
        """Move what the dead have parked into the queue.

        Return how many requests were moved, and how many wait in workers that are not done.
        """
        seen = [self._move(worker) for worker in self._others()]
        return sum(moved for moved, _ in seen), sum(left for _, left in seen)

    def hand_back(self) -> None:
        """Move what is parked in this worker into the queue.

        In an order in which a kill loses nothing and doubles nothing: what was not moved is
        moved by another worker or in the next run.
        """
        self._server.delete(self._key("lease", self._me))
        while self._move(self._me)[0]:
            pass
        self.forget()

    def forget(self) -> int:
        """Drop what is parked in this worker, which ends. Return 0, the number of those lost."""
        self._forget(self._me)
        return 0

    def forget_others(self) -> None:
        """Drop what is parked in the other workers, as the queue is emptied."""
        for worker in self._others():
            self._forget(worker)

    def _forget(self, worker: str) -> None:
        with self._server.pipeline() as pipe:
            pipe.delete(*(self._key(name, worker) for name in ("parked", "lease", "taken")))
            pipe.srem(self._key("workers"), worker)
            pipe.execute()

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

    def _key(self, *names: str) -> str:
        return ":".join([self._queue.key, "koster", *names])


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


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode("latin-1")


def push_of(queue: Any) -> str | None:
    """Return the command by which *queue* pushes, None if it is not one of scrapy-redis."""
    if not all(hasattr(queue, name) for name in ("_encode_request", "server", "key")):
        return None
    pushes = (_PUSHES.get(kind.__name__) for kind in type(queue).__mro__)
    return next(filter(None, pushes), None)
