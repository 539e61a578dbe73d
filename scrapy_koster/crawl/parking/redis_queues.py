"""Parked requests in the Redis of scrapy-redis: a queue for each site, which all workers share.

A queue is of the class of the main queue, under a key of its own. A request is written when it is
parked, and taken by the worker that opens the site. So a request is in one place at any moment: in
a queue, or in the downloader of a worker. A set has the names of the queues. A worker that starts,
or has no other work, serves the queues in this set, too: their worker may have died.

Calls are synchronous, like the calls of scrapy-redis. Connecting and reading wait for a second at
most, except with other connection pools than that of the client's default, such as those of a
Sentinel or a Cluster. A server that hangs executes late what it has received. So a PING comes
before a call that adds or removes a request, which would be doubled or lost.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import uuid4

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import CallLaterResult

from scrapy_koster.crawl.clock import LONG_AGO, Clock
from scrapy_koster.crawl.engine.private import Engine
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.parking.parked_file import Place

_T = TypeVar("_T")

# A call without an answer blocks the loop for a second. Then no call is made for REST_SECS.
REST_SECS = 5.0
_TIMEOUT_SECS = 1.0
# The classes are not imported, because scrapy-redis may not be installed.
_CLASSES = {"PriorityQueue", "FifoQueue", "LifoQueue"}
_UNIQUE = "koster_parked"
"""A meta key of requests in Redis."""
_UNLOADABLE = (
    "Waiting requests in Redis cannot be loaded, and are lost (%(error)s). This spider does not"
    " have their callbacks or classes: run the same version in all workers"
)


class RedisQueues:
    """The queues of parked requests in Redis.

    While Redis does not answer, no request comes out, because its requests are there.
    """

    lasts = is_shared = True

    def __init__(self, log: Log, clock: Clock, engine: Engine, main: Any) -> None:
        """*main* is the main queue of scrapy-redis."""
        self._log, self._clock, self._engine, self._main = log, clock, engine, main
        self._server = _short_timeout_client(main.server)
        self._names = f"{main.key}:koster:sites"
        self._unusable: set[str] = set()
        """The names of queues that this worker leaves alone: their keys are of another type."""
        self._rests_until = LONG_AGO
        self._timer: CallLaterResult | None = None

    @property
    def is_silent(self) -> bool:
        """Whether Redis does not answer."""
        return self._clock.now() < self._rests_until

    def names(self) -> set[str]:
        """Return the names of the queues with requests. Empty if Redis does not answer."""
        found = self._try(lambda: self._server.smembers(self._names)) or ()
        names = {name if isinstance(name, str) else name.decode() for name in found}
        return names - self._unusable

    def write(self, name: str, _place: Place, request: Request) -> bool:
        """Put *request* into the queue of *name*. Return whether *request* could be written."""

        def push() -> bool:
            # The queue of priorities is a set, in which equal requests would be one.
            unique = request.replace(meta={**request.meta, _UNIQUE: uuid4().hex})
            self._server.ping()
            with self._server.pipeline() as pipe:
                self._queue(name, pipe).push(unique)
                pipe.sadd(self._names, name)
                pipe.execute()
            return True

        return self._try(push, is_write=True) or False

    def take(self, name: str, _place: Place) -> Request | None:
        """Return the next request in the queue of *name*. None if there is none, or Redis fails.

        Requests that cannot be loaded are skipped.
        """
        queue = self._queue(name, self._server)
        while not self.is_silent:
            try:
                self._server.ping()
                request: Request | None = queue.pop()
            except Exception as error:  # noqa: BLE001  # the client, or the spider, may be any
                if not _is(error, "RedisError", "OSError"):
                    self._log.warning_once(_UNLOADABLE, error=type(error).__name__)
                elif not self._failed(error):
                    self._unusable.add(name)
                    return None
                continue
            if request is None:
                self._try(lambda: self._forget(name, queue))
            else:
                request.meta.pop(_UNIQUE, None)
            return request
        return None

    def _forget(self, name: str, queue: Any) -> None:
        """Remove the name of an empty *queue*, unless another worker has just pushed a request."""
        self._server.srem(self._names, name)
        if len(queue):
            self._server.sadd(self._names, name)

    def drop(self) -> None:
        """Drop the parked requests of all workers."""
        keys = [self._queue(name, self._server).key for name in self.names()]
        self._try(lambda: self._server.delete(self._names, *keys))

    def close(self) -> None:
        """Close the connections. The requests stay for other workers, and for the next run."""
        if self._timer is not None:
            self._timer.cancel()
        if self._server is not self._main.server:
            self._server.connection_pool.disconnect()

    def _queue(self, name: str, server: Any) -> Any:
        main, key = self._main, f"{self._main.key}:koster:parked:{name}"
        return type(main)(server, main.spider, key.replace("%", "%%"), main.serializer)

    def _try(self, call: Callable[[], _T], *, is_write: bool = False) -> _T | None:
        """Return the result of *call*, or None if Redis fails, or has just failed."""
        if self.is_silent:
            return None
        try:
            return call()
        except Exception as error:  # noqa: BLE001  # a request may carry objects of any class
            self._failed(error, is_write=is_write)
            return None

    def _failed(self, error: Exception, *, is_write: bool = False) -> bool:
        """Log *error*. Return whether Redis rests now, and may answer later.

        It does not rest after an error that stays. If the server refuses a new request, such as for
        a lack of memory, others can be taken.
        """
        stays = _is(error, "NoPermissionError") or "WRONGTYPE" in str(error)
        is_refused = is_write and _is(error, "ResponseError")
        rests = _is(error, "RedisError", "OSError") and not (stays or is_refused)
        if rests:
            self._rests_until = self._clock.now() + REST_SECS
            self._timer = self._clock.call_later(REST_SECS, self._engine.wake)
        # Log only the class: in the text, a server may quote the password.
        self._log.warning_once(
            "Waiting requests cannot be written to the Redis of scrapy-redis, or read from there"
            " (%(error)s). Requests that cannot be written are kept in memory, and lost if this"
            " process is killed. Check the Redis server, and the rights in docs/fleet.md",
            error=type(error).__name__,
        )
        return rests


def _is(error: Exception, *names: str) -> bool:
    # The classes of redis-py are not imported either.
    return any(kind.__name__ in names for kind in type(error).__mro__)


def queues_of(crawler: Crawler, scheduler: Any, engine: Engine, clock: Clock) -> RedisQueues | None:
    """Return the queues for a *scheduler* of scrapy-redis; None for another scheduler or queue."""
    main = getattr(scheduler, "queue", None)
    for kind in type(main).__mro__:
        if kind.__module__ == "scrapy_redis.queue" and kind.__name__ in _CLASSES:
            return RedisQueues(Log(__name__, crawler), clock, engine, main)
    return None


def _short_timeout_client(server: Any) -> Any:
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
