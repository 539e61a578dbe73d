"""The rules of a large file, in 16 bytes and their text each, and which may match a path."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, compress, count
from operator import and_
from typing import NamedTuple

from scrapy_koster.protocol.matching import END
from scrapy_koster.protocol.path import in_query

_HASH = 0xFFFF_FFFF  # of str: another one in each process, so no file can be made to collide
_FRAGMENT_CHARS = 8
_ALLOW = "a"


class Rule(NamedTuple):
    """A rule of an index."""

    number: int
    """The place among the rules of the robot, in file order."""
    is_disallow: bool
    path: str


class RuleIndex:
    """The rules of a robot: of each, the text, the number, and a hash of two keys.

    A rule is a prefix, or pieces between stars. The prefix is both keys. Else the keys are the two
    fragments of the pieces that the fewest rules have, as many may have a common ending. A path can
    only match if it has the keys in this order.
    """

    __slots__ = ("_firsts", "_lengths", "_numbers", "_seconds", "_sizes", "_starts", "_text")

    def __init__(
        self,
        rules: Sequence[tuple[str, str]],
        numbers: Iterable[int],
        pieces_of: Callable[[str], Sequence[str]],
    ) -> None:
        """Take the groups of PATH_LINE for each rule.

        *numbers* are the indexes of the rules to keep, the one that decides first is first.
        *pieces_of* returns the pieces of a path.
        """
        self._numbers = array("I", numbers)
        kept = [rules[number] for number in self._numbers]
        pieces = [[*map(in_query, pieces_of(path))] for _, path in kept]
        fragments = [each if len(each) == 1 else _fragments(each) for each in pieces]
        rules_with = Counter(chain.from_iterable(map(set, fragments)))
        keys = [_rarest_two(each, rules_with) if each[1:] else each * 2 for each in fragments]
        self._lengths, self._sizes = set[int](), set[int]()
        """Of prefixes and other keys. They are few: their sum is at most the file's length."""
        for each, pair in zip(pieces, keys, strict=True):
            (self._sizes if each[1:] else self._lengths).update(map(len, pair))
        self._firsts = array("I", (hash(first) & _HASH for first, _ in keys))
        self._seconds = array("I", (hash(second) & _HASH for _, second in keys))
        texts = [(kind or _ALLOW) + path for kind, path in kept]
        self._text = "".join(texts)
        self._starts = array("I", accumulate(map(len, texts), initial=0))

    def candidates(self, path: str) -> Iterator[Rule]:
        """Yield the rules that may match *path*."""
        path = in_query(path) + END
        parts = [(hash(path[:length]) & _HASH, 0) for length in self._lengths]
        places = range(len(path)) if self._sizes else ()
        parts += [(hash(path[n : n + k]) & _HASH, n) for n in places for k in self._sizes]
        first_at, last_at = dict(reversed(parts)), dict(parts)
        have_first = map(first_at.__contains__, self._firsts)
        have_second = map(last_at.__contains__, self._seconds)
        for row in compress(count(), map(and_, have_first, have_second)):
            if first_at[self._firsts[row]] <= last_at[self._seconds[row]]:
                rule = self._text[self._starts[row] : self._starts[row + 1]]
                yield Rule(self._numbers[row], rule[0] != _ALLOW, rule[1:])


def _fragments(pieces: list[str]) -> list[str]:
    """Return fragments of at most eight characters that cover *pieces*."""
    fragments, size = [], _FRAGMENT_CHARS
    for piece in filter(None, pieces):
        if len(piece) > size:
            fragments += [piece[n : n + size] for n in range(0, len(piece) - size, size)]
        fragments.append(piece[-size:])
    return fragments


def _rarest_two(fragments: list[str], rules_with: Counter[str]) -> list[str]:
    """Return the two *fragments* that the fewest rules have, in their order. Later ones first."""
    rarest = fragments[::-1]
    rarest.sort(key=rules_with.__getitem__)
    return sorted(rarest[:2], key=fragments.index)
