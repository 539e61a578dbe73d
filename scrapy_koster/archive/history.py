"""The versions of a site's robots.txt, and what has changed from one to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from scrapy_koster.protocol.access import Copy
from scrapy_koster.storage.latest import learnt

if TYPE_CHECKING:
    from scrapy_koster.archive.folder import Outcome

_COMPARED_LINES = 1000


@dataclass(frozen=True, slots=True)
class Version:
    """An answer that a site gave for some time."""

    first: Outcome
    """The first that has it."""
    copy: Copy
    """Without its body. The site first sent it when it was ``fetched``."""
    last_seen: float
    """When the site last gave it or confirmed it, in seconds since the epoch."""
    seen: int
    """How often it did."""


def versions(outcomes: Iterable[Outcome]) -> list[Version]:
    """Return the versions in *outcomes*, the oldest first. Failures are none.

    They are dated by what the site answered: a copy that comes out of a storage,
    or that several workers share, counts once.
    """
    found: list[Version] = []
    for outcome in sorted(outcomes, key=lambda outcome: learnt(outcome.known)):
        if not isinstance(copy := outcome.known, Copy):
            continue
        last = found[-1] if found else None
        if last is None or (last.copy.status, last.copy.digest) != (copy.status, copy.digest):
            found.append(Version(outcome, copy, copy.fetched, 1))
        elif copy.fetched > last.last_seen:
            found[-1] = replace(last, last_seen=copy.fetched, seen=last.seen + 1)
    return found


def changes(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the lines that differ: the number in *old* or 0, the number in *new* or 0, the line.

    If more than 1,000 lines lie between the first difference and the last, all of them are
    yielded: the time to compare them grows faster than their number.
    """
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    edits: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(a), 0, len(b))]
    if max(len(a), len(b)) <= _COMPARED_LINES:
        edits = SequenceMatcher(None, a, b).get_opcodes()
    for edit, i, i_end, j, j_end in edits:
        if edit != "equal":
            yield from ((head + n + 1, 0, a[n]) for n in range(i, i_end))
            yield from ((0, head + n + 1, b[n]) for n in range(j, j_end))


def _common(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    """Return how many lines are the same at the start of both files."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(old), len(new)))
