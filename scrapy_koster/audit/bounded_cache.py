"""A cache of a bounded size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_KEY_LENGTH = 512

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dict that makes missing values: ``cache[key]`` calls *make* with a new key.

    A full cache is emptied, which costs less than to know the oldest value. The value of a long key
    is not stored.
    """

    def __init__(self, make: Callable[[Any], V], most: int) -> None:
        """*most* is the number of values of a full cache."""
        super().__init__()
        self._make = make
        self._most = most

    def __missing__(self, key: Any) -> V:
        value = self._make(key)
        if isinstance(key, (int, float)) or len(key) <= _KEY_LENGTH:
            if len(self) >= self._most:
                self.clear()
            self[key] = value
        return value
