"""Encoding of copies and failures as bytes, and validation of decoded values.

Other programs may be able to write to a storage, so every field is checked. The bytes are data and
are never run as code.
"""

import json
import re
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from scrapy_koster.protocol.access import CachedRobots, CacheEntry, FetchFailure, last_copy
from scrapy_koster.protocol.exchange import is_digest
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.storage.port import StorageError

BODY_MAX_BYTES = 10 * 2**20
TEXT_MAX_BYTES = 2**16
# Room for the texts and numbers of a value. JSON may use six bytes for one byte of a text.
_HEAD_MAX_BYTES = 4 * 6 * TEXT_MAX_BYTES + 2**10
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
OCTETS_MAX = BODY_MAX_BYTES + _HEAD_MAX_BYTES + 2**14
"""Size in bytes of the longest encoded value that can be read back."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

Fields: TypeAlias = dict[str, Any] | None


def fields_of(known: CacheEntry) -> tuple[Fields, Fields]:
    """Return two dicts: the stored fields of the copy and of the failure in *known*.

    A missing copy or failure is None. ``is_defect`` and ``no_such_host`` are not stored.
    """
    copy = last_copy(known)
    failure = known if isinstance(known, FetchFailure) else None
    return (
        {name: getattr(copy, name) for name in _OF_COPY} if copy else None,
        {name: getattr(failure, name) for name in _OF_FAILURE} if failure else None,
    )


def known_from(copy: Fields, failure: Fields) -> CacheEntry:
    """Return the copy, or the failure with the copy as ``stale``.

    Raises ValueError if both are None, or if a field is invalid. Some values of a wrong type raise
    TypeError or AttributeError.
    """
    stale = None if copy is None else CachedRobots(**_checked(copy, _OF_COPY))
    if failure is not None:
        return FetchFailure(**_checked(failure, _OF_FAILURE), stale=stale)
    if stale is None:
        raise ValueError("neither a copy nor a failure")
    return stale


def encoded(known: CacheEntry) -> bytes:
    """Return *known* as bytes: a head in JSON, a line feed and the body, packed by zlib.

    Raises ValueError for a text with lone surrogates, and for a body too long to be read back.
    """
    copy, failure = fields_of(known)
    body = copy.pop("body") if copy else b""
    _check_length(body)
    head = _JSON.encode({"copy": copy, "failure": failure}).encode()
    packer = zlib.compressobj(1, memLevel=5)  # most values are short: so it begins faster
    return packer.compress(head + b"\n" + body) + packer.flush()


def check_storable(known: CacheEntry) -> None:
    """Raise ValueError if no storage can keep *known*, because it would not be read back."""
    copy, failure = fields_of(known)
    _check_length(copy["body"] if copy else b"")
    known_from(copy, failure)


def _check_length(body: bytes) -> None:
    if len(body) > BODY_MAX_BYTES:
        raise ValueError(
            f"it has {len(body)} bytes, and a storage keeps {BODY_MAX_BYTES} at most. Lower"
            " KOSTER_MAX_BYTES"
        )


def decoded(octets: bytes) -> CacheEntry:
    """Return the copy or failure in *octets*. Raises ValueError for an invalid value."""
    unpack = zlib.decompressobj()
    try:
        data = unpack.decompress(octets, _HEAD_MAX_BYTES + BODY_MAX_BYTES)
        if not unpack.eof or unpack.unused_data:
            raise ValueError("cut, too long, or followed by something")
        head, _, body = data.partition(b"\n")
        said = json.loads(head)
        copy = said.get("copy")
        return known_from(None if copy is None else {**copy, "body": body}, said.get("failure"))
    except (TypeError, AttributeError, RecursionError, zlib.error) as error:
        raise ValueError("not of these fields") from error


def site_named(name: object) -> Site | None:
    """Return the site with the canonical name *name*, or None if there is no such site."""
    try:
        site = site_of(name) if isinstance(name, str) and _is_text(name) else None
    except ValueError:
        return None
    return site if str(site) == name else None


def validated_entry(found: object) -> CacheEntry | None:
    """Return *found*, the result of a storage. Raises StorageError for an invalid value."""
    if found is None:
        return None
    kind = type(found).__name__
    if not isinstance(found, (CachedRobots, FetchFailure)):
        raise StorageError(
            f"it returned a {kind} in place of a CachedRobots, a FetchFailure or None"
        )
    try:
        return known_from(*fields_of(found))
    except (AttributeError, TypeError, ValueError) as error:
        raise StorageError(f"it returned an invalid {kind}: {error}") from error


def seconds(value: object) -> float:
    """Return *value*, the seconds from a storage. Raises StorageError for an invalid value."""
    if isinstance(value, (int, float)) and 0 <= value <= 1e15:
        return value
    raise StorageError(f"it returned {printable(repr(value), 50)} in place of seconds")


def _checked(given: Mapping[str, Any], checks: Mapping[str, Callable[[Any], bool]]) -> Any:
    if given.keys() != checks.keys():
        raise ValueError("other fields")
    for name, is_valid in checks.items():
        if not is_valid(given[name]):
            raise ValueError(f"its {name} is not valid")
    return given


def _is_text(value: Any) -> bool:
    # encode() raises UnicodeEncodeError, a ValueError, for a lone surrogate.
    return isinstance(value, str) and len(value.encode()) <= TEXT_MAX_BYTES


def _is_line(value: Any) -> bool:
    """Return whether *value* is a text without ASCII control characters, such as line feeds."""
    return _is_text(value) and not _CONTROL.search(value)


def _is_line_or_none(value: Any) -> bool:
    return value is None or _is_line(value)


def _is_count(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and least <= value <= most


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= sys.float_info.max


_OF_COPY: Mapping[str, Callable[[Any], bool]] = {
    "url": _is_line,
    "status": lambda value: _is_count(value, 100, 999),
    "body": lambda value: isinstance(value, bytes) and len(value) <= BODY_MAX_BYTES,
    "etag": _is_line_or_none,
    "last_modified": _is_line_or_none,
    "fetched": _is_time,
    "expires": _is_time,
    "cut_bytes": lambda value: value is None or _is_count(value, 1, 2**63 - 1),
    "life_stated": lambda value: _is_count(value, 0, 1),
    "digest": is_digest,
    "record_id": _is_line_or_none,
}
_OF_FAILURE: Mapping[str, Callable[[Any], bool]] = {
    "reason": _is_text,
    "attempts": lambda value: _is_count(value, 1, 2**31 - 1),
    "since": _is_time,
    "asked": _is_time,
    "retry": _is_time,
}
