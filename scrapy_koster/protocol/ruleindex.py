"""The rules of a large file, in 16 bytes and their text each, and which may match a path."""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, compress, count
from operator import and_
from typing import NamedTuple

from scrapy_koster.protocol.path import in_query

END = "\n"
"""The end of a path, in a piece. A path with a %0A passes a test more, and no test less."""

_HASH = 0xFFFF_FFFF  # of str: another one in each process, so no file can be made to collide
_FRAGMENT_CHARS = (0, 1, 2, 2, 4, 4, 4, 4, 8)
"""The length of the fragments of a piece, by the length of the piece. A longer piece has 8, too."""
_DISALLOW, _ALLOW = "da"


class Rule(NamedTuple):
    """A rule of an index."""

    number: int
    """The place among the rules of the robot, in file order."""
    is_disallow: bool
    path: str


class RuleIndex:
    """The rules of a robot: of each, the text, the number, and a hash of two keys.

    A rule is a prefix, or pieces between stars. The prefix is both keys. Else the keys are two
    fragments of the pieces, those that the fewest rules have: many rules may have a common ending.
    A path can only match if it has the keys in this order.
    """

    __slots__ = ("_firsts", "_lengths", "_numbers", "_seconds", "_sizes", "_starts", "_text")

    def __init__(self, rules: Sequence[tuple[Rule, Sequence[str]]]) -> None:
        """Take each rule with its pieces. The rule that decides first is first."""
        fragments = [_fragments([*map(in_query, pieces)]) for _, pieces in rules]
        rules_with = Counter(chain.from_iterable(map(set, fragments)))
        keys = [_keys(each, rules_with) for each in fragments]
        self._lengths, self._sizes = set[int](), set[int]()
        """Of prefixes and other keys. They are few: their sum is at most the file's length."""
        for (_, pieces), pair in zip(rules, keys, strict=True):
            (self._lengths if len(pieces) == 1 else self._sizes).update(map(len, pair))
        self._firsts = array("I", (hash(first) & _HASH for first, _ in keys))
        self._seconds = array("I", (hash(second) & _HASH for _, second in keys))
        self._numbers = array("I", (rule.number for rule, _ in rules))
        texts = [(_DISALLOW if rule.is_disallow else _ALLOW) + rule.path for rule, _ in rules]
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
                yield Rule(self._numbers[row], rule[0] == _DISALLOW, rule[1:])


def _fragments(pieces: list[str]) -> list[str]:
    """Return the only piece, or fragments of 8, 4, 2 or 1 characters that cover all pieces."""
    if len(pieces) == 1:
        return pieces
    fragments = []
    for piece in filter(None, pieces):
        size = _FRAGMENT_CHARS[min(len(piece), 8)]
        fragments += [piece[n : n + size] for n in range(0, len(piece) - size, size)]
        fragments.append(piece[-size:])
    return fragments


def _keys(fragments: list[str], rules_with: Counter[str]) -> tuple[str, str]:
    """Return the two *fragments* that the fewest rules have, in their order."""
    if len(fragments) == 1:
        return fragments[0], fragments[0]
    rarest = sorted((rules_with[part], -len(part), -n) for n, part in enumerate(fragments))
    first, second = sorted(-n for *_, n in rarest[:2])
    return fragments[first], fragments[second]
