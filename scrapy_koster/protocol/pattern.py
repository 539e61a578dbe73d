"""RFC 9309, 2.2.2 and 2.2.3: "*" and "$" in the path of a rule, and the longest that matches."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress
from typing import NamedTuple, TypeAlias

from scrapy_koster.protocol.path import ENCODED_QUESTION, ENCODED_SLASH, unescape_by_rfc9309
from scrapy_koster.protocol.precedence import in_use

# The theory. "The most specific match found MUST be used. The most specific match is the
# match that has the most octets", and of equal ones Allow "SHOULD be used". So rules that
# are sorted, the longest first and Allow before Disallow, are tried as the draft tries those
# of a record: the first that matches decides. Of
#
#     1  Allow: /a/b
#     2  Disallow: /*.gif$
#     3  Disallow: /a/*/c
#     4  Disallow: /d/*
#     5  Allow: /d$
#
# /a/x/c.gif is decided by 2, of 7 octets: it is tried before 3, of 6, and 1, of 4.
#
# 1 and 4 match what begins with /a/b and /d/: what the draft finds of such paths by one
# search is found so here (``precedence``). 5 matches one path. Only 2 and 3 are patterns. They
# are split at their stars, and each piece is looked for from the end of the one before,
# leftmost: what is found further left leaves more room for the rest, so nothing is ever
# tried again. The first piece stands at the start of the path, the last at its end where there
# is a "$".
#
# Most patterns do not match, and most of those lack a piece. So the longest piece, the
# hint, is looked for first. Of many patterns only those are looked at of which the path has
# three octets: the three of the hint that the fewest others have. To find these octets takes as
# long as 20 decisions without them (25,000 patterns) to 100 (100 patterns). So that is done after
# 20: most files decide on fewer pages, and none takes more than twice the time.

Rule: TypeAlias = tuple[str, str]
"""An Allow or Disallow line: "" or, in any case, "d", and its path as it stands."""

Matcher: TypeAlias = Callable[[str], bool]
"""Whether a rule matches a path, as ``unescape_by_rfc9309`` returns it, without its first slash."""

NO_RULE = 1 << 32
"""The rank of the rule that decides where none matches: behind all."""

_FEW = 100
_FEW_PREFIXES = 64
_DECISIONS_WITHOUT_GRAMS = 20
_GRAM = 3
_HINT_OCTETS = 64
_ENCODED = re.compile(f"[{ENCODED_SLASH}{ENCODED_QUESTION}]")
_NO_URI_OCTET = re.compile(r"[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]")


def octets(path: str) -> int:
    """Return how many octets *path*, which is decoded, has in a comparison (2.2.2).

    What is neither reserved nor unreserved is percent-encoded before: that is three.
    """
    return len(path) + 2 * len(_NO_URI_OCTET.findall(path))


def is_special(path: str) -> bool:
    """Whether the path of a rule has a special character (2.2.3): "$" is one at its end."""
    return "*" in path or path.endswith("$")


_Hinted: TypeAlias = list[tuple[str, int, str]]
"""Rules with a star: the hint, the rank, the path as it stands."""


class Pattern(NamedTuple):
    """The path of a rule with a star in it, without its first slash."""

    head: str
    """What stands before the first star."""
    pieces: list[str]
    """What stands between the stars, and behind the last where there is no "$"."""
    tail: str
    """What stands before a "$", empty where there is none."""

    def matches(self, path: str) -> bool:
        """Whether *path*, as ``unescape_by_rfc9309`` returns it, matches."""
        if not path.startswith(self.head):
            return False
        at = len(self.head)
        for piece in self.pieces:
            found = path.find(piece, at)
            if found < 0:
                found = _in_query(piece, path, at)
                if found < 0:
                    return False
            at = found + len(piece)
        return not self.tail or _ends_with(self.tail, path, at)


def read_pattern(path: str) -> Pattern:
    """Return the path of a rule, which begins with a slash and has a star."""
    ends = path.endswith("$")
    head, *pieces = _pieces(path[1:-1] if ends else path[1:])
    tail = pieces.pop() if ends else ""
    return Pattern(head, [piece for piece in pieces if piece], tail)


def matcher_of(path: str) -> Matcher:
    """Return what matches the path of one rule, which begins with a slash."""
    if not is_special(path):
        prefix = unescape_by_rfc9309(path[1:])
        return lambda path: path.startswith(prefix)
    if "*" in path:
        return read_pattern(path).matches
    return unescape_by_rfc9309(path[1:-1]).__eq__


def _pieces(path: str) -> Iterator[str]:
    """Yield what stands before, between and behind the stars, as it is compared."""
    query = ""
    for piece in path.split("*"):
        yield unescape_by_rfc9309(query + piece)[len(query) :]
        query = query or ("?" if "?" in piece else "")


def _hint(path: str) -> str:
    """Return a long part of the path of a rule, which each path has that matches."""
    path = path[1:-1] if path[-1] == "$" else path[1:]
    if "%" not in path:
        last = path[path.rfind("*") + 1 :]
        return last if len(last) > _GRAM else max(path.split("*"), key=len)
    return max(chain.from_iterable(map(_ENCODED.split, _pieces(path))), key=len)


def _in_query(piece: str, path: str, start: int) -> int:
    """Return where *piece* stands in the query, whose slashes are all data (2.2.2)."""
    if not _ENCODED.search(piece) or "?" not in path:
        return -1
    return path.find(_as_data(piece), max(start, path.index("?") + 1))


def _ends_with(tail: str, path: str, start: int) -> bool:
    at = len(path) - len(tail)
    if at < start:
        return False
    return path.endswith(tail) or ("?" in path[:at] and path.endswith(_as_data(tail)))


def _as_data(piece: str) -> str:
    return piece.replace(ENCODED_SLASH, "/").replace(ENCODED_QUESTION, "?")


def in_order(rules: Sequence[Rule]) -> list[int]:
    """Return the places of *rules*, the one that decides first: a place in that is a rank."""
    size = octets_of_rule if _needs_escapes(rules) else len
    # The most octets first, of as many Allow first; of what is left the first in the file.
    keys = [(1 if disallows else 0) - 2 * size(path) for disallows, path in rules]
    return sorted(range(len(rules)), key=keys.__getitem__)


def _needs_escapes(rules: Sequence[Rule]) -> bool:
    return _NO_URI_OCTET.search("".join([path for _, path in rules])) is not None


def octets_of_rule(path: str) -> int:
    """Return how many octets the path of a rule has in a comparison (2.2.2), as it stands there."""
    if not _NO_URI_OCTET.search(path):
        return len(path)
    return sum(map(octets, _pieces(path))) + path.count("*")


class Patterns:
    """The rules of a robot: that of the lowest rank of those that match decides."""

    __slots__ = (
        "_around",
        "_decisions",
        "_exact",
        "_grams",
        "_hinted",
        "_prefixes",
        "_ranked",
        "_ranks",
        "_read",
    )

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._ranked = [rules[place] for place in in_order(rules)]
        self._exact: dict[str, int] = {}
        self._hinted: _Hinted = []
        self._read: dict[str, Pattern] = {}
        prefixes: list[tuple[int, str]] = []
        for rank, (_, path) in enumerate(self._ranked):
            if "*" not in path and path[-1] != "$":
                prefixes.append((rank, path[1:]))
            elif 0 < path.find("*") < len(path) - 1:
                self._hinted.append((_hint(path), rank, path))
            else:
                self._add(prefixes, rank, path)
        self._ranks = [rank for rank, _ in prefixes]
        self._prefixes = tuple(
            [unescape_by_rfc9309(path) if "%" in path else path for _, path in prefixes]
        )
        self._around: list[int] | None = None
        if len(prefixes) > _FEW_PREFIXES:
            self._sort_by_path()
        self._decisions = 0
        """Those for which many patterns were looked at, until there are ``_grams``."""
        self._grams: _Grams | None = None

    def _add(self, prefixes: list[tuple[int, str]], rank: int, path: str) -> None:
        """Add what is neither a prefix as it stands nor a pattern as it stands."""
        if path[0] == "*":
            # A star at the start stands for the first slash, and more; or for nothing.
            if (behind := path.lstrip("*"))[:1] == "/":
                self._add(prefixes, rank, behind)
            path = f"/{path}"
        star = path.find("*")
        if 0 <= star < len(path) - 1:
            self._hinted.append((_hint(path), rank, path))
        elif path[-1] == "$":
            self._exact.setdefault(unescape_by_rfc9309(path[1:-1]), rank)
        else:
            prefixes.append((rank, path[1:star] if star > 0 else path[1:]))

    def _sort_by_path(self) -> None:
        """Leave out the prefixes that are never used, and sort the others: one search finds one."""
        used = list(in_use([("", path) for path in self._prefixes]))
        places = {place: n for n, (place, _) in enumerate(used)} | {-1: -1}
        self._around = [places[around] for _, around in used]
        self._ranks = [self._ranks[place] for place, _ in used]
        self._prefixes = tuple([self._prefixes[place] for place, _ in used])

    def disallow(self, path: str) -> bool:
        """Whether the rule that decides on *path*, which has lost its first slash, disallows."""
        rank = self.deciding(path)
        return rank != NO_RULE and bool(self._ranked[rank][0])

    def deciding(self, path: str) -> int:
        """Return the rank of the rule that decides on *path*, or NO_RULE."""
        best = self._exact.get(path, NO_RULE)
        if self._around is not None or path.startswith(self._prefixes):
            best = min(best, self._prefix(path))
        hinted = self._hinted
        for hint, rank, rule in hinted if len(hinted) <= _FEW else self._of_many(path):
            if hint in path:
                if best < rank:
                    break
                if self._pattern(rule).matches(path):
                    return rank
        return best

    def _prefix(self, path: str) -> int:
        """Return the lowest rank of the prefixes of *path*."""
        if self._around is None:
            return next(compress(self._ranks, map(path.startswith, self._prefixes)))
        at = bisect_right(self._prefixes, path) - 1
        while at >= 0 and not path.startswith(self._prefixes[at]):
            at = self._around[at]
        return NO_RULE if at < 0 else self._ranks[at]

    def _of_many(self, path: str) -> _Hinted:
        """Return those of many patterns that may match *path*, in their order."""
        if self._grams is None:
            self._decisions += 1
            if self._decisions <= _DECISIONS_WITHOUT_GRAMS:
                return self._hinted
            self._grams = _Grams(self._hinted)
        return self._grams.of(path)

    def _pattern(self, rule: str) -> Pattern:
        if rule not in self._read:
            self._read[rule] = read_pattern(rule)
        return self._read[rule]


class _Grams:
    """Many patterns, by three octets of their hints."""

    __slots__ = ("_hinted", "_places")

    def __init__(self, hinted: _Hinted) -> None:
        grams = [_grams(hint[:_HINT_OCTETS]) for hint, *_ in hinted]
        counts = Counter(chain.from_iterable(grams))
        self._hinted = hinted
        self._places: dict[str, list[int]] = {}
        for place, found in enumerate(grams):
            rarest = min(found, key=counts.__getitem__, default="")
            self._places.setdefault(rarest, []).append(place)

    def of(self, path: str) -> _Hinted:
        """Return those that may match *path*, in their order."""
        known = self._places.keys() & {"", *_grams(path)}
        places = sorted(chain.from_iterable(self._places[gram] for gram in known))
        return [self._hinted[place] for place in places]


def _grams(text: str) -> list[str]:
    return [text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)]
