"""Which of two facts about a site is the later one, and what a stored one is worth today."""

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
"""A time that is later by more was read off a wrong clock. See ``supersedes``."""
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
    """Return whether *found* says more of a site than what is *known* of it.

    A time that is ahead of *now* was read off a wrong clock, and says nothing.
    """
    if known is None or not has_been(learnt(known), now):
        return has_been(learnt(found), now)
    return learnt(known) < learnt(found) and has_been(learnt(found), now)


def sound(found: object) -> Known | None:
    """Return what a storage has *found*; StorageError if it is not a valid Copy or Failure."""
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
    """Return *value*, which a storage gave for seconds; StorageError if it is none."""
    if isinstance(value, (int, float)) and 0 <= value <= _MOST:
        return value
    raise StorageError(f"it returned {printable(repr(value), 50)} in place of seconds")


def judged(known: Known | None, *, policy: Policy, max_bytes: int) -> Known | None:
    """Return *known*, which may have been stored under other settings, by those of today.

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
    """Return when it was learnt, in seconds since the epoch."""
    return known.fetched if isinstance(known, Copy) else known.asked
