"""Compares copies and failures by time, and adapts stored ones to today's settings."""

from dataclasses import replace

from scrapy_koster.protocol.access import (
    CachedRobots,
    CacheEntry,
    FetchFailure,
    has_been,
    last_copy,
    longest_deferral_secs,
    longest_life_secs,
)
from scrapy_koster.protocol.policy import Policy

LATE_SECS = 86400.0
"""If a stored time is ahead of a new time by more than this, a wrong clock wrote it."""


def supersedes(new: CacheEntry, old: CacheEntry | None) -> bool:
    """Return whether *new* replaces *old*, the stored value or None.

    Several processes may write, so a later *old* is kept. If *old* is later by more than LATE_SECS,
    a wrong clock wrote it, and *new* replaces it.
    """
    if old is None:
        return True
    late_secs = recorded_at(old) - recorded_at(new)
    return not 0 < late_secs <= LATE_SECS


def is_newer(found: CacheEntry, known: CacheEntry | None, *, now: float) -> bool:
    """Return whether *found* is newer than *known*.

    A time more than a minute ahead of *now* comes from a wrong clock. If *found* has such a time,
    the result is False. If only *known* has such a time, the result is True.
    """
    is_later = (
        known is None
        or recorded_at(known) < recorded_at(found)
        or not has_been(recorded_at(known), now)
    )
    return is_later and has_been(recorded_at(found), now)


def clamped_to_policy(
    known: CacheEntry | None, *, policy: Policy, max_bytes: int
) -> CacheEntry | None:
    """Return the stored *known*, adapted to today's settings *policy* and *max_bytes*.

    A copy expires, and a failure is retried, no later than *policy* allows. A cut copy is dropped
    if *max_bytes* is larger today, because a 304 would renew the cut copy. Then the result is None,
    or the failure without its stale copy.
    """
    copy = last_copy(known)
    if copy is not None:
        is_short = copy.cut_bytes is not None and copy.cut_bytes < max_bytes
        expires = min(copy.expires, copy.fetched + longest_life_secs(copy, policy))
        copy = None if is_short else replace(copy, expires=expires)
    if not isinstance(known, FetchFailure):
        return copy
    retry = min(known.retry, known.asked + longest_deferral_secs(policy))
    return replace(known, stale=copy, retry=retry)


def recorded_at(known: CacheEntry) -> float:
    """Return the time of the fetch or failure *known*, in seconds since the epoch."""
    return known.fetched if isinstance(known, CachedRobots) else known.asked
