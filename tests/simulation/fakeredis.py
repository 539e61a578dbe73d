"""So much of a Redis as scrapy-redis and the journal of parked requests use."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

    from simulation.loop import Clock


class Data:
    """What the server holds."""

    def __init__(self, clock: Clock, chance: Random) -> None:
        self.clock = clock
        self.chance = chance
        self.keys: dict[str, Any] = {}
        self.ends: dict[str, float] = {}
        self.failing = ""
        """How: it is away, its answers are lost, or it refuses to be written to."""
        self.forgot_at = -1.0

    def forget(self) -> None:
        self.keys.clear()
        self.ends.clear()
        self.forgot_at = self.clock.now

    def get(self, key: str) -> Any:
        if self.ends.get(key, self.clock.now + 1) <= self.clock.now:
            self.delete(key)
        return self.keys.get(key)

    def delete(self, *keys: str) -> int:
        for key in keys:
            self.ends.pop(key, None)
        return sum(self.keys.pop(key, None) is not None for key in keys)

    def set(self, key: str, value: Any, px: int) -> None:
        self.keys[key] = value
        self.ends[key] = self.clock.now + px / 1000

    def members(self, key: str, kind: Callable[[], Any]) -> Any:
        return self.keys.setdefault(key, kind())

    def dropped_if_empty(self, key: str) -> None:
        if not self.keys.get(key, True):
            self.delete(key)


class ResponseError(Exception):
    """As redis-py raises if a server refuses something."""


class Server:
    """A client of it, as one process has it. What it returns is what redis-py returns."""

    def __init__(self, data: Data, owner: Any) -> None:
        """*owner* is the process, which may be dead."""
        self.data = data
        self._owner = owner

    def _alive(self, *, journal: bool = False, writes: bool = False) -> None:
        refuses = writes and self.data.failing == "refuses"
        if self._owner.dead or (journal and (refuses or self.data.failing == "away")):
            self._owner.journal_failed_at = self.data.clock.now
            raise ResponseError if refuses else ConnectionError("Redis is away")

    def _answers(self) -> None:
        """Raise if the answer to what was done is lost."""
        if self.data.failing == "unanswered":
            self._owner.journal_failed_at = self.data.clock.now
            raise ConnectionError("no answer")

    # What the queues and the dupefilter of scrapy-redis use.

    def execute_command(self, command: str, key: str, score: float, data: bytes) -> None:
        self._alive()
        assert command == "ZADD"
        self.data.members(key, dict)[data] = score

    def zcard(self, key: str) -> int:
        self._alive()
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
        self._alive()
        found: list[bytes] | None = self.data.get(key)
        return found.pop(at) if found else None

    def sadd(self, key: str, member: Any) -> int:
        self._alive()
        members = self.data.members(key, dict)
        added = member not in members
        members[member] = None
        return int(added)

    # What the journal uses.

    def delete(self, *keys: str) -> int:
        self._alive(journal=True)
        count = self.data.delete(*keys)
        self._answers()
        return count

    def smembers(self, key: str) -> set[bytes]:
        self._alive(journal=True)
        return {member.encode() for member in self.data.get(key) or ()}

    def pipeline(self) -> Pipeline:
        return Pipeline(self)

    def register_script(self, script: str) -> Any:
        assert "HSCAN" in script
        return self._take_over

    def _take_over(self, *, keys: list[str], args: list[Any]) -> list[int]:
        """Do what the script of ``workers`` does."""
        self._alive(journal=True, writes=True)
        data = self.data
        parked, lease, taken, workers, queue = keys
        worker, push, at_once, _ = args
        held = data.get(lease)
        if held is not None:
            return [0, len(data.get(parked) or ())]
        moved, rows = 0, data.get(parked) or {}
        for field, request in list(rows.items())[:at_once]:
            if push == "ZADD":
                data.members(queue, dict)[request] = float(field.split()[0])
            else:
                data.members(queue, list).insert(0, request)
            data.members(taken, dict)[field] = None
            del rows[field]
            moved += 1
        data.dropped_if_empty(parked)
        if not rows:
            (data.get(workers) or {}).pop(worker, None)
        self._answers()
        return [moved, len(rows)]


class Pipeline:
    """Commands that are done in one go."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._data = server.data
        self._calls: list[Callable[[], Any]] = []
        self._is_journals = True
        self._writes = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._calls.clear()

    def execute(self) -> list[Any]:
        self._server._alive(journal=self._is_journals, writes=self._writes)
        done = [call() for call in self._calls]
        self._calls.clear()
        if self._is_journals:
            self._server._alive(journal=False)
            self._server._answers()
        return done

    def multi(self) -> None:
        self._is_journals = False  # it is the queue's

    def zrange(self, key: str, first: int, last: int) -> Pipeline:
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
        self._data.dropped_if_empty(key)
        return len(lowest)

    def set(self, key: str, value: str, px: int) -> None:
        self._writes = True  # takes memory
        self._calls.append(lambda: self._data.set(key, value, px))

    def sadd(self, key: str, member: str) -> None:
        self._calls.append(lambda: self._data.members(key, dict).setdefault(member))

    def srem(self, key: str, member: str) -> None:
        self._calls.append(lambda: (self._data.get(key) or {}).pop(member, None))

    def hset(self, key: str, mapping: dict[str, bytes]) -> None:
        self._calls.append(lambda: self._data.members(key, dict).update(mapping))

    def hdel(self, key: str, *fields: str) -> None:
        def call() -> None:
            for field in fields:
                (self._data.get(key) or {}).pop(field, None)
            self._data.dropped_if_empty(key)

        self._calls.append(call)

    def sismember(self, key: str, member: str) -> None:
        self._calls.append(lambda: member in (self._data.get(key) or {}))

    def delete(self, *keys: str) -> None:
        self._calls.append(lambda: self._data.delete(*keys))
