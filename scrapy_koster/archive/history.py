"""The versions of a site's robots.txt, and what has changed from one to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from scrapy_koster.archive.folder import Outcome
from scrapy_koster.protocol.access import Copy

_CHANGES_MOST = 500


@dataclass(frozen=True, slots=True)
class Version:
    """An answer that a site gave for some time."""

    first: Outcome
    """The first that has it."""
    copy: Copy
    """Without its body."""
    first_seen: float
    """When the site first gave it, in seconds since the epoch."""
    last_seen: float
    """When the site last gave it or confirmed it, in seconds since the epoch."""
    seen: int
    """How often it did."""


def versions(outcomes: Iterable[Outcome]) -> list[Version]:
    """Return the versions in *outcomes*, the oldest first. Failures are none.

    They are dated by what the site answered: a copy that comes out of a storage,
    or that several workers share, counts once.
    """
    dated = [
        (outcome.known.fetched, outcome.known, outcome)
        for outcome in outcomes
        if isinstance(outcome.known, Copy)
    ]
    found: list[Version] = []
    for fetched, copy, outcome in sorted(dated, key=lambda each: each[0]):
        last = found[-1] if found else None
        if last is None or (last.copy.status, last.copy.digest) != (copy.status, copy.digest):
            found.append(Version(outcome, copy, fetched, fetched, 1))
        elif fetched > last.last_seen:
            found[-1] = replace(last, last_seen=fetched, seen=last.seen + 1)
    return found


def changes(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the lines that differ: the number in *old* or 0, the number in *new* or 0, the line.

    They are the fewest possible (Myers, 1986). Of files that differ in more than 500
    lines, all lines between the first difference and the last are yielded: finding the fewest
    would take time that grows with the square.
    """
    head, most = 0, min(len(old), len(new))
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    for i, j in _edits(a, b):
        if i is None:
            assert j is not None
            yield 0, head + j + 1, b[j]
        else:
            yield head + i + 1, 0, a[i]


def _edits(a: Sequence[bytes], b: Sequence[bytes]) -> Iterator[tuple[int, None] | tuple[None, int]]:
    """Yield the index of each line that is gone, and of each that is new."""
    reached = _reached(a, b)
    if reached is None:
        yield from ((i, None) for i in range(len(a)))
        yield from ((None, j) for j in range(len(b)))
        return
    edits: list[tuple[int, None] | tuple[None, int]] = []
    i, j = len(a), len(b)
    for before in reversed(reached):
        diagonal = i - j
        down = before.get(diagonal - 1, -1) < before.get(diagonal + 1, -1)
        start = before[diagonal + 1] if down else before[diagonal - 1]
        if down:
            i, j = start, start - (diagonal + 1)
            edits.append((None, j))
        else:
            i, j = start, start - (diagonal - 1)
            edits.append((i, None))
    yield from reversed(edits)


def _reached(a: Sequence[bytes], b: Sequence[bytes]) -> list[dict[int, int]] | None:
    """Return how far each diagonal comes with 0, 1, 2 ... edits; None if too many are needed."""
    reach: dict[int, int] = {1: 0}
    before: list[dict[int, int]] = []
    for edits in range(min(len(a) + len(b), _CHANGES_MOST) + 1):
        now: dict[int, int] = {}
        for diagonal in range(-edits, edits + 1, 2):
            if reach.get(diagonal - 1, -1) < reach.get(diagonal + 1, -1):
                i = reach[diagonal + 1]
            else:
                i = reach[diagonal - 1] + 1
            j = i - diagonal
            while i < len(a) and 0 <= j < len(b) and a[i] == b[j]:
                i, j = i + 1, j + 1
            now[diagonal] = i
            if i >= len(a) and j >= len(b):
                return before
        before.append(now)
        reach = now
    return None
