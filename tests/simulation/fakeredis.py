"""So much of a Redis as scrapy-redis and the queues of parked requests use."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

    from simulation.loop import Clock


PARKED = ":parked:"


class Data:
    """What the server holds."""

    def __init__(self, clock: Clock, chance: Random) -> None:
        self.clock = clock
        self.chance = chance
        self.keys: dict[str, Any] = {}
        self.failing = ""
        """How: it is away, its answers are lost, or it refuses to be written to."""
        self.forgot_at = -1.0

    def forget(self) -> None:
        self.keys.clear()
        self.forgot_at = self.clock.now

    def get(self, key: str) -> Any:
        return self.keys.get(key)

    def delete(self, *keys: str) -> int:
        return sum(self.keys.pop(key, None) is not None for key in keys)

    def members(self, key: str, kind: Callable[[], Any]) -> Any:
        return self.keys.setdefault(key, kind())

    def dropped_if_empty(self, key: str) -> None:
        if not self.keys.get(key, True):
            self.delete(key)


class RedisError(Exception):
    """The base of the errors of redis-py."""


class ResponseError(RedisError):
    """As redis-py raises if a server refuses something."""


class Server:
    """A client of it, as one process has it. What it returns is what redis-py returns."""

    def __init__(self, data: Data, owner: Any) -> None:
        """*owner* is the process, which may be dead."""
        self.data = data
        self._owner = owner

    def _alive(self, *, parks: bool = False, writes: bool = False) -> None:
        """Raise if the server does not do it. Only what is *parked* fails while a process lives."""
        refuses = writes and self.data.failing == "refuses"
        if self._owner.dead or (parks and (refuses or self.data.failing == "away")):
            self._owner.journal_failed_at = self.data.clock.now
            raise ResponseError if refuses else ConnectionError("Redis is away")

    def _answers(self, *requests: bytes) -> None:
        """Raise if the answer to what was done is lost, and whether *requests* are in the queue."""
        if self.data.failing == "unanswered":
            self._owner.journal_failed_at = self.data.clock.now
            for data in requests:
                entry = self._owner.history.ledger.entries[pickle.loads(data)["meta"]["n"]]
                entry.may_be_lost = entry.may_be_twice = "the answer of Redis was lost"
            raise ConnectionError("no answer")

    # What the queues and the dupefilter of scrapy-redis use.

    def execute_command(self, command: str, key: str, score: float, data: bytes) -> None:
        self._alive()
        assert command == "ZADD"
        self.data.members(key, dict)[data] = score

    def zcard(self, key: str) -> int:
        self._alive(parks=PARKED in key)
        return len(self.data.get(key) or ())

    llen = zcard

    def lpush(self, key: str, data: bytes) -> None:
        self._alive()
        self.data.members(key, list).insert(0, data)

    def rpop(self, key: str) -> bytes | None:
        return self._popped(key, -1)

    def lpop(self, key: str) -> bytes | None:
        return self._popped(key, 0)

    def _popped(self, key: str, at: int) -> bytes | None:
        self._alive(parks=PARKED in key)
        found: list[bytes] | None = self.data.get(key)
        popped = [found.pop(at)] if found else []
        self.data.dropped_if_empty(key)
        if PARKED in key:
            self._answers(*popped)
        return popped[0] if popped else None

    def sadd(self, key: str, member: Any) -> int:
        self._alive()
        members = self.data.members(key, dict)
        added = member not in members
        members[member] = None
        return int(added)

    # What the queues of parked requests use, too.

    def delete(self, *keys: str) -> int:
        self._alive(parks=True)
        count = self.data.delete(*keys)
        self._answers()
        return count

    def smembers(self, key: str) -> set[bytes]:
        self._alive(parks=True)
        return {member.encode() for member in self.data.get(key) or ()}

    def pipeline(self) -> Pipeline:
        return Pipeline(self)

    def srem(self, key: str, member: str) -> int:
        self._alive(parks=True)
        members = self.data.get(key) or {}
        found = member in members
        members.pop(member, None)
        self._answers()
        return int(found)


class Pipeline:
    """Commands that are done in one go."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._data = server.data
        self._calls: list[Callable[[], Any]] = []
        self._parks = False
        self._requests: list[bytes] = []
        """Those that it has pushed or popped."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._calls.clear()

    def execute(self) -> list[Any]:
        self._server._alive(parks=self._parks, writes=bool(self._requests))
        done = [call() for call in self._calls]
        self._calls.clear()
        if self._parks:
            self._server._answers(*self._requests)
        return done

    def multi(self) -> None:
        """All of them are."""

    def zrange(self, key: str, first: int, last: int) -> Pipeline:
        self._parks = PARKED in key
        self._calls.append(lambda: self._lowest(key))
        return self

    def zremrangebyrank(self, key: str, first: int, last: int) -> Pipeline:
        self._calls.append(lambda: self._remove_lowest(key))
        return self

    def _lowest(self, key: str) -> list[bytes]:
        rows: dict[bytes, float] = self._data.get(key) or {}
        return sorted(rows, key=lambda data: (rows[data], data))[:1]

    def _remove_lowest(self, key: str) -> int:
        lowest = self._lowest(key)
        for data in lowest:
            del self._data.keys[key][data]
            self._requests.append(data)
        self._data.dropped_if_empty(key)
        return len(lowest)

    def sadd(self, key: str, member: str) -> None:
        self._calls.append(lambda: self._data.members(key, dict).setdefault(member))

    def execute_command(self, command: str, key: str, score: float, data: bytes) -> None:
        self._pushes(data)
        self._calls.append(lambda: self._data.members(key, dict).__setitem__(data, score))

    def lpush(self, key: str, data: bytes) -> None:
        self._pushes(data)
        self._calls.append(lambda: self._data.members(key, list).insert(0, data))

    def _pushes(self, data: bytes) -> None:
        self._parks = True
        self._requests.append(data)
