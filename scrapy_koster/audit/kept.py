"""What was worked out last, so that it need not be again."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

_KEY_LENGTH = 512

K = TypeVar("K")
V = TypeVar("V")


class Kept(dict[K, V]):
    """Values by their keys: ``kept[key]`` is worked out where it is not there.

    At most *most* are kept; then it begins anew, which costs less than to know the oldest.
    None is kept of a long key.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __missing__(self, key: Any) -> V:
        value = self.made(key)
        if isinstance(key, (int, float)) or len(key) <= _KEY_LENGTH:
            if len(self) >= self._most:
                self.clear()
            self[key] = value
        return value

    @abstractmethod
    def made(self, key: K) -> V:
        """Return the value of *key*."""
