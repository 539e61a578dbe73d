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
from collections.abc import Mapping
from dataclasses import fields
from operator import attrgetter
from typing import TypeVar

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
_values_of_copy = attrgetter(*COPY_FIELDS)
# The copy is beside the failure. A defect is the robot's own, and whether a name exists
# each crawl finds out for itself.
FAILURE_FIELDS = ("reason", "attempts", "since", "asked", "retry")


def copy_fields(copy: Copy) -> dict[str, object]:
    """Return *copy* by fields; StorageError where its body is one that would not be read back."""
    if len(copy.body) > BODY_MAX_BYTES:
        raise StorageError(
            f"a robots.txt of {len(copy.body)} bytes is not stored, only up to "
            f"{BODY_MAX_BYTES} are: lower KOSTER_MAX_BYTES"
        )
    return dict(zip(COPY_FIELDS, _values_of_copy(copy), strict=True))


def failure_fields(failure: Failure) -> dict[str, object]:
    """Return *failure* by fields, without its stale copy."""
    return {name: getattr(failure, name) for name in FAILURE_FIELDS}


def known_from(copy: Mapping[str, object] | None, failure: Mapping[str, object] | None) -> Known:
    """Return what these fields say is known; ValueError where one is not valid."""
    stale = None if copy is None else _copy(**copy)
    if failure is not None:
        return _failure(stale, **failure)
    if stale is None:
        raise ValueError("neither a copy nor a failure")
    return stale


def encoded(known: Known) -> bytes:
    """Return *known* as octets: a head in JSON, a line feed and the body, compressed by zlib.

    Raises ValueError for a text that is not of Unicode, and StorageError as
    ``copy_fields`` does.
    """
    head: dict[str, object] = {}
    body: object = b""
    copy = last_copy(known)
    if copy is not None:
        head["copy"] = fields_of_copy = copy_fields(copy)
        body = fields_of_copy.pop("body")
    if isinstance(known, Failure):
        head["failure"] = failure_fields(known)
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


def _copy(
    *,
    url: object,
    status: object,
    body: object,
    etag: object,
    last_modified: object,
    fetched: object,
    expires: object,
    cut_bytes: object,
    life_stated: object,
    digest: object,
    record_id: object,
) -> Copy:
    return Copy(
        url=_line(url),
        status=_count(status, range(100, 1000)),
        body=_typed(body, bytes),
        etag=None if etag is None else _line(etag),
        last_modified=None if last_modified is None else _line(last_modified),
        fetched=_time(fetched),
        expires=_time(expires),
        cut_bytes=None if cut_bytes is None else _count(cut_bytes, range(1, 2**63)),
        life_stated=bool(_count(life_stated, range(2))),
        digest=_digest(digest),
        record_id=None if record_id is None else _line(record_id),
    )


def _failure(
    stale: Copy | None,
    *,
    reason: object,
    attempts: object,
    since: object,
    asked: object,
    retry: object,
) -> Failure:
    return Failure(
        reason=_text(reason),
        attempts=_count(attempts, range(1, 2**31)),
        since=_time(since),
        asked=_time(asked),
        retry=_time(retry),
        stale=stale,
    )


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


def _count(value: object, allowed: range) -> int:
    number = _typed(value, int)
    if number not in allowed:
        raise ValueError(f"{number} is not of {allowed}")
    return number


def _time(value: object) -> float:
    time = _typed(value, float)
    if not math.isfinite(time):
        raise ValueError(f"{time} is not a time")
    return time
