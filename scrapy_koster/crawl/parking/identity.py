"""A description of values that is the same in each process, and after they were pickled."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ADDRESS = re.compile(r"\bat 0x[0-9A-Fa-f]+")
SCALARS = (bool, bytes, complex, float, int, str, type(None))
"""Of these nobody notices whether it is the same object or a copy."""
_DEPTH_MOST = 50


def digest(value: object) -> bytes:
    """Return a digest of *value*, which says nothing of the order of sets and dicts.

    What differs between processes is left out: the addresses in the representation of an object,
    and what is nested deeper than anybody nests it. It takes linear time, whatever is shared.
    """
    return _Digests().of(value, 0)


class _Digests:
    """The digests of objects, by id; those that contain themselves have none inside."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, bytes]] = {}
        """With each object, so that no other takes its id."""

    def of(self, value: object, depth: int) -> bytes:
        kind = type(value)
        if kind in SCALARS:
            return _hashed(kind.__name__, [repr(value).encode("utf-8", "surrogatepass")])
        if depth > _DEPTH_MOST:
            return b""
        if id(value) not in self._known:
            self._known[id(value)] = value, b""
            hashed = _hashed(kind.__qualname__, self._parts(value, depth + 1))
            self._known[id(value)] = value, hashed
        return self._known[id(value)][1]

    def _parts(self, value: object, depth: int) -> Iterable[bytes]:
        try:
            match value:
                case Mapping():
                    return sorted(self._pair(*pair, depth) for pair in value.items())
                case AbstractSet():
                    return sorted(self.of(each, depth) for each in value)
                case list() | tuple() | deque():
                    return [self.of(each, depth) for each in value]
                case _ if names := _field_names(type(value)):
                    return [self._pair(name, getattr(value, name), depth) for name in names]
                case _:
                    return [_ADDRESS.sub("", repr(value)).encode("utf-8", "surrogatepass")]
        except Exception:  # noqa: BLE001  # what a request carries may be anybody's
            return []

    def _pair(self, name: object, value: object, depth: int) -> bytes:
        return self.of(name, depth) + self.of(value, depth)


def _field_names(kind: type) -> list[str]:
    """Return the fields of a dataclass, or of a class made by attrs."""
    attributes = getattr(kind, "__attrs_attrs__", ())
    return [*getattr(kind, "__dataclass_fields__", ()), *(each.name for each in attributes)]


def _hashed(kind: str, parts: Iterable[bytes]) -> bytes:
    hashed = hashlib.blake2b(kind.encode(), digest_size=16)
    for part in parts:
        hashed.update(b"%d:" % len(part) + part)
    return hashed.digest()
