"""How the time of a reader grows with its text: at most 2.3 times at twice the length.

Times are noisy and a quadratic reader is not: it shows at every length, and the longer the
clearer. So what seems to grow too fast is measured again at twice the length, more often, until it
does not, or until there is no doubt.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from statistics import median
from time import process_time

MOST = 2.3
"""How many times as long twice the text may take."""

COUNTER = "\N{NUMERO SIGN}"
"""In a pump: the number of the round, so that no two are the same."""

_RUNS = (2, 4, 8)
# What is read as fast as it is copied grows by steps: those of the caches and of malloc.
_COPIED_SECS = 40e-9
_NO_DOUBT_SECS = 0.5

Read = Callable[[str], object]


@dataclass(frozen=True)
class Reader:
    """What reads hostile text."""

    read: Read
    chars: int = 16_000
    """How many the first measurement takes."""
    most_chars: int = 512_000
    """How many the last one takes at most."""


@dataclass(frozen=True)
class Pattern:
    """A text of any length: a start, a pump that is repeated, an end."""

    start: str
    pump: str
    end: str

    def text(self, chars: int) -> str:
        start, end = (part.replace(COUNTER, "1") for part in (self.start, self.end))
        if COUNTER not in self.pump:
            return start + self.pump * (chars // len(self.pump)) + end
        rounds = chars // len(self.pump.replace(COUNTER, "12345"))
        pumped = (self.pump.replace(COUNTER, str(n)) for n in range(10_000, 10_000 + rounds))
        return start + "".join(pumped) + end


def patterns(pieces: Sequence[str], chance: Random) -> Iterator[Pattern]:
    """Yield patterns of random pieces without end."""

    def some(least: int, most: int) -> str:
        return "".join(chance.choices(pieces, k=chance.randint(least, most)))

    while True:
        yield Pattern(some(0, 3), some(1, chance.choice([1, 2, 4, 8])), some(0, 2))


def growth(reader: Reader, text: Callable[[int], str]) -> float:
    """Return how many times as long twice the text takes, measured until it is below MOST."""
    chars = reader.chars
    with _no_collections():
        once = _secs(reader.read, text(chars), 1)
        while 2 * chars <= reader.most_chars:
            twice = _secs(reader.read, text(2 * chars), 1)
            if twice > MOST * once and twice > 2 * chars * _COPIED_SECS:
                break
            if once > chars * _COPIED_SECS:
                return twice / once
            chars, once = 2 * chars, twice
        else:
            return 0.0
        return _confirmed(reader, text, chars)


def _confirmed(reader: Reader, text: Callable[[int], str], chars: int) -> float:
    """Measure again what seemed to grow too fast.

    Of three doublings the one in the middle counts: one may be a step, where a text becomes too
    long for a cache, or for what malloc keeps, and takes four times as long from then on.
    """
    growing = 0.0
    for runs in _RUNS:
        chars = min(chars, reader.most_chars // 8)
        secs = [_secs(reader.read, text(chars << doublings), runs) for doublings in range(4)]
        growing = median(twice / once for once, twice in pairwise(secs))
        if growing <= MOST or secs[-1] > _NO_DOUBT_SECS:
            break
        chars *= 2
    return growing


def _secs(read: Read, text: str, runs: int) -> float:
    secs: list[float] = []
    while len(secs) < runs and sum(secs) < _NO_DOUBT_SECS:
        began = process_time()
        read(text)
        secs.append(process_time() - began)
    return min(secs)


@contextmanager
def _no_collections() -> Iterator[None]:
    gc.collect(0)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
