"""The rules of a large file, in at most 16 bytes each, and which of them may match a path."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from math import inf

from scrapy_koster.protocol.line import PATH_LINE
from scrapy_koster.protocol.path import in_query

END = "\n"
"""The end of a path, in a piece. A path with a %0A passes a test more, and no test less."""

_HASH = 0xFFFF_FFFF  # of str: another one in each process, so no file can be made to collide
_KEY_CHARS = 4


class RuleIndex:
    """The rules of a robot: of each, the place in the file, and a hash of two keys.

    A rule is a prefix, or pieces between stars. The prefix is both keys. Else the keys are the ends
    of the two longest pieces: a path can only match if it has them in this order.
    """

    __slots__ = ("_firsts", "_lengths", "_lines", "_numbers", "_seconds", "_sizes", "_text")

    def __init__(
        self, text: str, lines: Iterable[int], rules: Iterable[tuple[int, Sequence[str]]]
    ) -> None:
        """Take the index in *text* of each line, and the number of its line for each rule.

        The rule that decides first is first.
        """
        self._text, self._lines = text, array("I", lines)
        self._lengths, self._sizes = set[int](), set[int]()
        """Of prefixes and other keys. They are few: their sum is at most the file's length."""
        rows = [(number, *self._keys(pieces)) for number, pieces in rules]
        columns = zip(*rows, strict=True)
        self._numbers, self._firsts, self._seconds = (array("I", each) for each in columns)

    def __getitem__(self, number: int) -> Sequence[str]:
        """Return the groups of PATH_LINE for a line."""
        line = PATH_LINE.match(self._text, self._lines[number])
        assert line is not None
        return line.groups("")

    def candidates(self, path: str) -> Iterator[int]:
        """Yield the numbers of the lines whose rules may match *path*."""
        path = in_query(path) + END
        parts = [(hash(path[:length]) & _HASH, 0) for length in self._lengths]
        places = range(len(path)) if self._sizes else ()
        parts += [(hash(path[n : n + k]) & _HASH, n) for n in places for k in self._sizes]
        first_at, last_at = dict(reversed(parts)), dict(parts)
        rows = zip(self._numbers, self._firsts, self._seconds, strict=True)
        return (n for n, a, b in rows if b in last_at and first_at.get(a, inf) <= last_at[b])

    def _keys(self, pieces: Sequence[str]) -> tuple[int, int]:
        keys = list(map(in_query, pieces))
        if len(keys) == 1:
            self._lengths.add(len(keys[0]))
        else:
            longest = sorted(range(len(keys)), key=lambda n: (len(keys[n]), n))[-2:]
            keys = [keys[n][-_KEY_CHARS:] for n in sorted(longest)]
            self._sizes.update(map(len, keys))
        return hash(keys[0]) & _HASH, hash(keys[-1]) & _HASH
