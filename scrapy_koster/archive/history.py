"""The versions of a site's robots.txt, and the changes between versions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from scrapy_koster.archive.record import Outcome
from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.storage.latest import recorded_at

_COMPARED_LINES = 1000


@dataclass(frozen=True, slots=True)
class Version:
    """A robots.txt, with its HTTP status, that did not change over some time."""

    first: Outcome
    """The first result with this version."""
    copy: CachedRobots
    """The first copy, without the body. Its ``fetched`` is the first known time of this version."""
    last_seen: float
    """Time when the site last sent or confirmed this version, in seconds since the epoch."""
    seen: int
    """Number of responses that sent or confirmed this version."""


def versions(outcomes: Iterable[Outcome]) -> list[Version]:
    """Return the versions in *outcomes*, the oldest first. Failures are ignored.

    A response counts once, even if its copy was read from the storage or shared by workers.
    """
    found: list[Version] = []
    for outcome in sorted(outcomes, key=lambda outcome: recorded_at(outcome.known)):
        if not isinstance(copy := outcome.known, CachedRobots):
            continue
        last = found[-1] if found else None
        if last is None or (last.copy.status, last.copy.digest) != (copy.status, copy.digest):
            found.append(Version(outcome, copy, copy.fetched, 1))
        elif copy.fetched > last.last_seen:
            found[-1] = replace(last, last_seen=copy.fetched, seen=last.seen + 1)
    return found


def changes(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Yield removed lines as (number in *old*, 0, line), added lines as (0, number in *new*, line).

    If more than 1,000 lines are between the first and the last difference, all of them are yielded
    as changed, because a comparison would be slow.
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
    """Return the number of equal lines at the start of both files."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(old), len(new)))
