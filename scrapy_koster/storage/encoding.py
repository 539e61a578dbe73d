"""What is known of a site as fields, and as octets, that others may write.

Whoever can write to the place where it is kept may have written it. So what
is read back is checked here, whichever storage it comes from; it is data, and
nothing of it is run.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from scrapy_koster.protocol.access import Copy, Failure, Known, last_copy
from scrapy_koster.protocol.exchange import is_digest
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.storage.port import StorageError

_T = TypeVar("_T")

BODY_MAX_BYTES = 10 * 2**20
TEXT_MAX_BYTES = 2**16
# Four texts, each of whose octets JSON may write as six, and some numbers.
_HEAD_MAX_BYTES = 4 * 6 * TEXT_MAX_BYTES + 2**10
_ZLIB_LEVEL = 6
OCTETS_MAX = BODY_MAX_BYTES + _HEAD_MAX_BYTES + 2**14
"""No more than so many are made of what can be read back."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

COPY_FIELDS = tuple(field.name for field in fields(Copy))
# The copy is beside the failure. A defect is the robot's own, and whether a name exists
# each crawl finds out for itself.
FAILURE_FIELDS = ("reason", "attempts", "since", "asked", "retry")


def known_from(copy: Mapping[str, object] | None, failure: Mapping[str, object] | None) -> Known:
    """Return what these fields say is known; ValueError where one is not valid."""
    stale = None if copy is None else Copy(**_checked(copy, _OF_COPY))
    if failure is not None:
        return Failure(**_checked(failure, _OF_FAILURE), stale=stale)
    if stale is None:
        raise ValueError("neither a copy nor a failure")
    return stale


def encoded(known: Known) -> bytes:
    """Return *known* as octets: a head in JSON, a line feed and the body, compressed by zlib.

    Raises ValueError for a text that is not of Unicode, and StorageError for a body that would not
    be read back.
    """
    head: dict[str, object] = {}
    body: object = b""
    copy = last_copy(known)
    if copy is not None:
        body = copy.body
        if len(body) > BODY_MAX_BYTES:
            raise StorageError(
                f"a robots.txt of {len(body)} bytes is not stored, only up to {BODY_MAX_BYTES}"
                " are: lower KOSTER_MAX_BYTES"
            )
        head["copy"] = {name: getattr(copy, name) for name in COPY_FIELDS if name != "body"}
    if isinstance(known, Failure):
        head["failure"] = {name: getattr(known, name) for name in FAILURE_FIELDS}
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode() + b"\n" + _typed(body, bytes), _ZLIB_LEVEL)


def decoded(octets: bytes) -> Known:
    """Return what ``encoded`` made *octets* of; ValueError where they are not valid."""
    unpack = zlib.decompressobj()
    try:
        data = unpack.decompress(octets, _HEAD_MAX_BYTES + BODY_MAX_BYTES)
    except (TypeError, zlib.error):
        raise ValueError("not of zlib") from None
    if not unpack.eof or unpack.unused_data:
        raise ValueError("cut, too long, or followed by something")
    head, _, body = data.partition(b"\n")
    if len(body) > BODY_MAX_BYTES:
        raise ValueError("a body too long")
    try:
        said = _typed(json.loads(head), dict)
        copy = said.get("copy")
        return known_from(None if copy is None else {**copy, "body": body}, said.get("failure"))
    except (TypeError, RecursionError):
        raise ValueError("not of these fields") from None


def site_named(name: object) -> Site | None:
    """Return the site of which *name* is the one spelling, None if it is of none."""
    try:
        site = site_of(_text(name))
    except ValueError:
        return None
    return site if str(site) == name else None


def _typed(value: object, kind: type[_T]) -> _T:
    if isinstance(value, kind):
        return value
    raise ValueError(f"not of type {kind.__name__}")


def _text(value: object) -> str:
    text = _typed(value, str)
    # UnicodeEncodeError, a ValueError, where it was not UTF-8
    if len(text.encode()) > TEXT_MAX_BYTES:
        raise ValueError("a text too long")
    return text


def _line(value: object) -> str:
    """Return a text that may be sent as a header and written to a terminal."""
    text = _text(value)
    if _CONTROL.search(text):
        raise ValueError("a control character")
    return text


def _digest(value: object) -> str:
    text = _typed(value, str)
    if not is_digest(text):
        raise ValueError("not a digest")
    return text


def _count(allowed: range) -> Callable[[object], int]:
    def check(value: object) -> int:
        number = _typed(value, int)
        if number not in allowed:
            raise ValueError(f"{number} is not of {allowed}")
        return number

    return check


def _time(value: object) -> float:
    if isinstance(value, (int, float)):
        try:
            time = float(value)
        except OverflowError:
            time = math.inf
        if math.isfinite(time):
            return time
    raise ValueError("not a time")


def _or_none(check: Callable[[object], _T]) -> Callable[[object], _T | None]:
    return lambda value: None if value is None else check(value)


_OF_COPY: Mapping[str, Callable[[object], Any]] = {
    "url": _line,
    "status": _count(range(100, 1000)),
    "body": lambda value: _typed(value, bytes),
    "etag": _or_none(_line),
    "last_modified": _or_none(_line),
    "fetched": _time,
    "expires": _time,
    "cut_bytes": _or_none(_count(range(1, 2**63))),
    "life_stated": lambda value: bool(_count(range(2))(value)),
    "digest": _digest,
    "record_id": _or_none(_line),
}
_OF_FAILURE: Mapping[str, Callable[[object], Any]] = {
    "reason": _text,
    "attempts": _count(range(1, 2**31)),
    "since": _time,
    "asked": _time,
    "retry": _time,
}


def _checked(fields: object, checks: Mapping[str, Callable[[object], Any]]) -> dict[str, Any]:
    if not isinstance(fields, Mapping) or fields.keys() != checks.keys():
        raise ValueError("other fields")
    return {name: check(fields[name]) for name, check in checks.items()}
