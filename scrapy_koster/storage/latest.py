"""The later of two facts about a site, and stored facts under today's settings."""

from __future__ import annotations

from dataclasses import replace

from scrapy_koster.protocol.access import (
    Copy,
    Failure,
    Known,
    has_been,
    last_copy,
    longest_deferral_secs,
    longest_life_secs,
)
from scrapy_koster.protocol.line import whole_lines
from scrapy_koster.protocol.policy import Policy
from scrapy_koster.protocol.printable import printable
from scrapy_koster.storage.encoding import COPY_FIELDS, FAILURE_FIELDS, known_from
from scrapy_koster.storage.port import StorageError

LATE_SECS = 86400.0
"""A larger difference comes from a wrong clock. See ``supersedes``."""
_MOST = 1e15


def supersedes(new: Known, old: Known | None) -> bool:
    """Return whether *new* takes the place of *old*: the later one is kept.

    Writers race by the time of one fetch. A time that is further ahead was
    read off a wrong clock, and must not keep its place until that time comes.
    """
    if old is None:
        return True
    late_secs = learnt(old) - learnt(new)
    return not 0 < late_secs <= LATE_SECS


def is_news(found: Known, known: Known | None, *, now: float) -> bool:
    """Return whether *found* is newer than *known*.

    A time that is ahead of *now* was read off a wrong clock, and says nothing.
    """
    if known is None or not has_been(learnt(known), now):
        return has_been(learnt(found), now)
    return learnt(known) < learnt(found) and has_been(learnt(found), now)


def sound(found: object) -> Known | None:
    """Return *found*, the result of a storage; StorageError for an invalid Copy or Failure."""
    if found is None:
        return None
    kind = type(found).__name__
    if not isinstance(found, (Copy, Failure)):
        raise StorageError(f"it returned a {kind} in place of a Copy, a Failure or None")
    try:
        failure = _fields(found, FAILURE_FIELDS) if isinstance(found, Failure) else None
        return known_from(_fields(last_copy(found), COPY_FIELDS), failure)
    except (AttributeError, TypeError, ValueError) as error:
        raise StorageError(f"it returned an invalid {kind}: {error}") from error


def _fields(known: object, names: tuple[str, ...]) -> dict[str, object] | None:
    return None if known is None else {name: getattr(known, name) for name in names}


def seconds(value: object) -> float:
    """Return *value*, a number of seconds from a storage; StorageError for another value."""
    if isinstance(value, (int, float)) and 0 <= value <= _MOST:
        return value
    raise StorageError(f"it returned {printable(repr(value), 50)} in place of seconds")


def judged(known: Known | None, *, policy: Policy, max_bytes: int) -> Known | None:
    """Return *known*, perhaps stored under other settings, adapted to today's settings.

    None for a copy that was cut where today more of the file is read: it must
    be fetched again, for a 304 would renew what was cut.
    """
    copy = last_copy(known)
    if copy is not None:
        copy = _judged(copy, policy, max_bytes)
    if not isinstance(known, Failure):
        return copy
    retry = min(known.retry, known.asked + longest_deferral_secs(policy))
    return replace(known, stale=copy, retry=retry)


def _judged(copy: Copy, policy: Policy, max_bytes: int) -> Copy | None:
    if copy.cut_bytes is not None and copy.cut_bytes < max_bytes:
        return None
    return replace(
        copy,
        body=whole_lines(copy.body, max_bytes),
        expires=min(copy.expires, copy.fetched + longest_life_secs(copy, policy)),
        cut_bytes=copy.cut_bytes if len(copy.body) <= max_bytes else max_bytes,
    )


def learnt(known: Known) -> float:
    """Return the time of the fetch or failure, in seconds since the epoch."""
    return known.fetched if isinstance(known, Copy) else known.asked
