"""How a rule is compared with a path, and which of the matching rules decides.

3.2.2: "in the order they occur in the record. The first match found is used." RFC 9309, 2.2.2:
"The most specific match found MUST be used. The most specific match is the match that has the
most octets", and of equal rules Allow "SHOULD be used".
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from scrapy_koster.protocol.path import in_query, unescape, unescape_by_rfc9309

Matcher: TypeAlias = Callable[[str], bool]
"""A function that returns whether a rule of RFC 9309 matches a path.

The path is a result of ``unescape_by_rfc9309``.
"""
Test: TypeAlias = str | Matcher
"""The test of a rule: the prefix of a path, or a function."""
END = "\n"
"""The end of a path, in a piece. A path with a %0A passes a test more, and no test less."""

_NO_URI_OCTET = re.compile(r"[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]")


class Matching:
    """Compares rules with paths, by the draft. A rule is its kind and its path (PATH_LINE)."""

    unescape = staticmethod(unescape)
    """Decodes a path for the comparison."""

    def test(self, path: str) -> Test:
        """Return the test of the rule *path*."""
        # C6: "*" and "$" are ordinary characters. So a path that begins with "*" never matches.
        return unescape(path)

    def matches(self, rule: str, path: str) -> bool:
        """Return whether *rule*, the path of a rule, matches *path*."""
        test = self.test(rule)
        return path.startswith(test) if isinstance(test, str) else test(path)

    def first(self, places: Iterator[int], _rules: Sequence[tuple[str, str]]) -> int:
        """Return the index of the deciding rule, or -1 if *places* is empty.

        *places* are the indexes of the matching rules in *_rules*, in file order.
        """
        return next(places, -1)

    def order(self, _kind: str, _path: str) -> tuple[int, str]:
        """Return the order of a rule. If several have the same, the first in the file decides."""
        return 0, ""

    def pieces(self, path: str) -> Sequence[str]:
        """Return the prefix, or the pieces, of the rule *path* for the index."""
        return [unescape(path)]


class MatchingOfRfc9309(Matching):
    """Compares rules with paths, by RFC 9309."""

    unescape = staticmethod(unescape_by_rfc9309)

    def test(self, path: str) -> Test:
        """Return the test of the rule *path*."""
        # A star at the end has no effect.
        prefix = path.rstrip("*")
        is_pattern = "*" in prefix or path.endswith("$")
        return matcher_of(path) if is_pattern else unescape_by_rfc9309(prefix)

    def matches(self, rule: str, path: str) -> bool:
        """Return whether *rule*, the path of a rule, matches *path*."""
        if "%" not in rule and rule.rstrip("*$").rpartition("*")[2] not in path:
            return False  # for speed
        return super().matches(rule, path)

    def first(self, places: Iterator[int], rules: Sequence[tuple[str, str]]) -> int:
        """Return the index of the deciding rule, or -1 if *places* is empty."""
        return min(places, key=lambda place: self.order(*rules[place]), default=-1)

    def order(self, kind: str, path: str) -> tuple[int, str]:
        """Return the order of a rule: the longest is first, and of equal ones Allow."""
        return -octets_of_rule(path), kind.lower()  # the kind of Allow is ""

    def pieces(self, path: str) -> Sequence[str]:
        """Return the prefix, or the pieces, of the rule *path* for the index."""
        is_anchored = path.endswith("$")
        return [*_pieces(path[:-1] + END if is_anchored else path.rstrip("*"))]


def octets_of_rule(path: str) -> int:
    """Return the length in bytes of a rule's path, to find the longest match (RFC 9309, 2.2.2).

    A byte outside the reserved and unreserved characters is percent-encoded and counts as three.
    """
    if not _NO_URI_OCTET.search(path):
        return len(path)
    compared = "*".join(_pieces(path))
    return len(compared) + 2 * len(_NO_URI_OCTET.findall(compared))


def is_special(path: str) -> bool:
    """Whether the path of a rule has a special character (2.2.3): "$" counts only at the end."""
    return "*" in path or path.endswith("$")


def matcher_of(path: str) -> Matcher:
    """Return a function that tests whether the rule's *path* matches a path (RFC 9309, 2.2.3).

    *path* is split at the stars. The compared path must begin with the first piece. If *path* ends
    with a "$", the compared path must end with the last piece. The remaining pieces are searched
    from left to right. The leftmost match of a piece leaves most room for the next pieces, so no
    search is repeated.
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


def _pieces(path: str) -> Iterable[str]:
    """Return the pieces of a rule's *path* between the stars, decoded for the comparison."""
    pieces = path.split("*")
    return _decoded(pieces) if "%" in path else pieces


def _decoded(pieces: list[str]) -> Iterator[str]:
    query = ""
    for piece in pieces:
        yield unescape_by_rfc9309(query + piece)[len(query) :]
        query = query or ("?" if "?" in piece else "")


def _find(piece: str, path: str, start: int) -> int:
    """Return the index of *piece* in *path* from *start* on, or -1.

    In a query, "/" equals "%2F" (2.2.2).
    """
    found = path.find(piece, start)
    if found < 0 and "?" in path and (data := in_query(piece)) != piece:
        return path.find(data, max(start, path.index("?") + 1))
    return found


def _ends_with(tail: str, path: str, start: int) -> bool:
    at = len(path) - len(tail)
    is_end = path.endswith(tail) or ("?" in path[:at] and path.endswith(in_query(tail)))
    return at >= start and is_end
