"""The rules of a robot, in the order in which they are tried: the first that matches decides.

3.2.2: "in the order they occur in the record. The first match found is used." RFC 9309, 2.2.2:
"The most specific match found MUST be used. The most specific match is the match that has the
most octets", and of equal ones Allow "SHOULD be used". So both standards are evaluated alike, once
the rules of RFC 9309 are sorted: the longest first, and Allow before Disallow.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from scrapy_koster.protocol.path import (
    ENCODED_QUESTION,
    ENCODED_SLASH,
    unescape,
    unescape_by_rfc9309,
)

Rule: TypeAlias = tuple[str, str]
"""An Allow or Disallow line: "" or, in any case, "d", and its path as it stands."""

Matcher: TypeAlias = Callable[[str], bool]
"""Whether a rule of RFC 9309 matches a path, as ``unescape_by_rfc9309`` returns it."""

NO_RULE = 1 << 32
"""The rank of the rule that decides if none matches: behind all."""

# As many prefixes as are tried one by one in less time than they are searched in.
_FEW_PREFIXES = 64
_ENCODED = re.compile(f"[{ENCODED_SLASH}{ENCODED_QUESTION}]")
_AS_DATA = str.maketrans({ENCODED_SLASH: "/", ENCODED_QUESTION: "?"})
_NO_URI_OCTET = re.compile(r"[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]")


class Rules:
    """The rules of a robot. A rule is known by its rank, its place in their order.

    Rules without "*" and "$" are prefixes. The others, only of RFC 9309, are patterns.

    In sorted order all that begins with a prefix follows right behind it: the prefixes around a
    path are on a stack. Of two such the inner one is only used if it is tried first. So of those
    that are kept the innermost decides, and one search finds it.
    """

    __slots__ = (
        "_around",
        "_disallows",
        "_only_disallow",
        "_patterns",
        "_prefixes",
        "_ranks",
        "_read",
        "places",
        "unescape",
    )

    def __init__(
        self,
        rules: Sequence[Rule],
        places: Sequence[int],
        *,
        prefixes: Sequence[tuple[str, int]],
        patterns: Sequence[tuple[int, str]],
        unescape: Callable[[str], str],
    ) -> None:
        """*places* are those of *rules* by rank. *unescape* returns a path as it is compared."""
        self.places = places
        self.unescape = unescape
        self._disallows = bytes([1 if rules[place][0] else 0 for place in places])
        self._patterns = tuple([(_hint(path), rank, path) for rank, path in patterns])
        self._read: dict[str, Matcher] | None = {} if patterns else None
        self._ranks = array("I")
        self._around: dict[int, int] | None = None
        self._prefixes = tuple(self._kept(dict(reversed(prefixes))))
        is_few = len(self._prefixes) <= _FEW_PREFIXES
        self._only_disallow = is_few and not patterns and 0 not in self._disallows

    def disallow(self, path: str) -> bool:
        """Whether the rule that decides on *path* disallows it."""
        if self._only_disallow:
            return path.startswith(self._prefixes)
        rank = self.deciding(path)
        return rank != NO_RULE and self._disallows[rank] == 1

    def deciding(self, path: str) -> int:
        """Return the rank of the rule that decides on *path*, or NO_RULE."""
        # The innermost prefix is the last one that is not behind *path*, or around that.
        at = bisect_right(self._prefixes, path) - 1
        while at >= 0 and not path.startswith(self._prefixes[at]):
            at = self._around.get(at, -1) if self._around else -1
        best = self._ranks[at] if at >= 0 else NO_RULE
        for hint, rank, rule in self._patterns:
            if rank > best:
                break
            if hint in path and self._matcher(rule)(path):
                return rank
        return best

    def _matcher(self, rule: str) -> Matcher:
        assert self._read is not None
        if rule not in self._read:
            self._read[rule] = matcher_of(rule)
        return self._read[rule]

    def _kept(self, ranks: dict[str, int]) -> Iterator[str]:
        """Yield the prefixes that are used, in sorted order."""
        inside: list[tuple[str, int, int]] = []
        for prefix in sorted(ranks):
            while inside and not prefix.startswith(inside[-1][0]):
                inside.pop()
            rank, at = ranks[prefix], len(self._ranks)
            if inside:
                _, outer, around = inside[-1]
                if outer < rank:
                    continue
                self._around = self._around or {}
                self._around[at] = around
            inside.append((prefix, rank, at))
            self._ranks.append(rank)
            yield prefix


def rules_of_draft(rules: Sequence[Rule]) -> Rules:
    """Return the rules of a record. C5: a path without a slash in front matches nothing."""
    paths = [unescape(path) if "%" in path else path for _, path in rules]
    places = range(len(rules))
    prefixes = list(zip(paths, places, strict=True))
    return Rules(rules, places, prefixes=prefixes, patterns=(), unescape=unescape)


def rules_of_rfc9309(rules: Sequence[Rule]) -> Rules:
    """Return the rules of all groups that a robot obeys."""
    is_plain = not _NO_URI_OCTET.search("".join([path for _, path in rules]))
    size: Callable[[str], int] = len if is_plain else octets_of_rule
    # The most octets first, of as many Allow first; of what is left the first in the file.
    keys = [(1 if disallows else 0) - 2 * size(path) for disallows, path in rules]
    places = array("I", sorted(range(len(rules)), key=keys.__getitem__))
    prefixes, patterns = [], []
    for rank, place in enumerate(places):
        path = rules[place][1]
        # A star at the end matches what no star matches.
        prefix = path.rstrip("*")
        if "*" in prefix or path[-1] == "$":
            patterns.append((rank, path))
        else:
            prefixes.append((unescape_by_rfc9309(prefix) if "%" in prefix else prefix, rank))
    return Rules(rules, places, prefixes=prefixes, patterns=patterns, unescape=unescape_by_rfc9309)


def octets_of_rule(path: str) -> int:
    """Return how many octets the path of a rule has in a comparison (RFC 9309, 2.2.2).

    What is neither reserved nor unreserved is percent-encoded before: that is three.
    """
    if not _NO_URI_OCTET.search(path):
        return len(path)
    compared = "*".join(_pieces(path))
    return len(compared) + 2 * len(_NO_URI_OCTET.findall(compared))


def is_special(path: str) -> bool:
    """Whether the path of a rule has a special character (2.2.3): "$" is one at its end."""
    return "*" in path or path.endswith("$")


def matcher_of(path: str) -> Matcher:
    """Return what matches the path of a rule (RFC 9309, 2.2.3).

    The path is split at its stars. Each piece is looked for from the end of the one before,
    leftmost: what is found further left leaves more room for the rest, so nothing is ever tried
    again. The first piece stands at the start, the last at the end if there is a "$".
    """
    is_anchored = path.endswith("$")
    head, *pieces = _pieces(path.removesuffix("$"))
    if not pieces:
        return head.__eq__ if is_anchored else lambda compared: compared.startswith(head)
    tail = pieces.pop() if is_anchored else ""

    def matches(compared: str) -> bool:
        if not compared.startswith(head):
            return False
        at = len(head)
        for piece in pieces:
            found = _find(piece, compared, at)
            if found < 0:
                return False
            at = found + len(piece)
        return not tail or _ends_with(tail, compared, at)

    return matches


def _pieces(path: str) -> Iterator[str]:
    """Yield the pieces before, between and after the stars, as they are compared."""
    query = ""
    for piece in path.split("*"):
        yield unescape_by_rfc9309(query + piece)[len(query) :]
        query = query or ("?" if "?" in piece else "")


def _hint(path: str) -> str:
    """Return the longest part of the path of a rule that each path has which it matches."""
    pieces: Iterable[str] = path.removesuffix("$").split("*")
    if "%" in path:
        pieces = chain.from_iterable(map(_ENCODED.split, _pieces(path.removesuffix("$"))))
    return max(pieces, key=len)


def _find(piece: str, path: str, start: int) -> int:
    """Return where *piece* stands in *path*, or -1. In a query all slashes are data (2.2.2)."""
    found = path.find(piece, start)
    if found < 0 and _ENCODED.search(piece) and "?" in path:
        return path.find(piece.translate(_AS_DATA), max(start, path.index("?") + 1))
    return found


def _ends_with(tail: str, path: str, start: int) -> bool:
    at = len(path) - len(tail)
    if at < start:
        return False
    return path.endswith(tail) or ("?" in path[:at] and path.endswith(tail.translate(_AS_DATA)))
