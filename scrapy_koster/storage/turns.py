"""Whose visit to a host is next, of processes that keep delays of their own (Crawl-delay)."""

from __future__ import annotations

from typing import NamedTuple

from scrapy_koster.storage.port import held_secs

# A visitor with a shorter delay gives way for so many of its delays at most.
GIVES_WAY_TIMES = 10
# It comes so much later than the one that it gives way to may, and no more than its own delay.
GRACE_SECS = 0.5


class Visited(NamedTuple):
    """The last visit to a host."""

    at: float
    """When it began, in seconds since the epoch."""
    wanted_secs: float = 0.0
    """The longest delay of a visitor that was too early since; 0 for none."""


def turn(
    last: Visited | None, *, now: float, secs: float, begun: bool = False
) -> tuple[float, Visited]:
    """Return for how many seconds a visitor with a delay of *secs* is too early, and what to keep.

    A visitor judges the last visit by its own delay, whoever made it. One with a longer delay than
    the others would always be too early: once it was, they give way until its time has come.
    """
    if last is None:
        return 0.0, Visited(now)
    needed = secs
    if last.wanted_secs > secs:
        grace = min(GRACE_SECS, secs)
        needed = max(secs, min(last.wanted_secs + grace, GIVES_WAY_TIMES * secs))
    left = 0.0 if begun else held_secs(needed - (now - last.at), needed)
    if left:
        return left, last._replace(wanted_secs=max(last.wanted_secs, secs))
    is_still_wanted = begun and last.wanted_secs > secs
    return 0.0, Visited(now, last.wanted_secs if is_still_wanted else 0.0)
