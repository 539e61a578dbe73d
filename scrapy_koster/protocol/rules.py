"""The rules of a robot, in the order in which they are tried: the first that matches decides.

3.2.2: "in the order they occur in the record. The first match found is used." RFC 9309, 2.2.2:
"The most specific match found MUST be used. The most specific match is the match that has the
most octets", and of equal ones Allow "SHOULD be used". So both standards are evaluated alike, once
the rules of RFC 9309 are sorted: the longest first, and Allow before Disallow.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from scrapy_koster.protocol.path import (
    ENCODED_QUESTION,
    ENCODED_SLASH,
    unescape,
    unescape_by_rfc9309,
)

Matcher: TypeAlias = Callable[[str], bool]
"""Whether a rule of RFC 9309 matches a path, as ``unescape_by_rfc9309`` returns it."""

_ENCODED = re.compile(f"[{ENCODED_SLASH}{ENCODED_QUESTION}]")
_AS_DATA = str.maketrans({ENCODED_SLASH: "/", ENCODED_QUESTION: "?"})
_NO_URI_OCTET = re.compile(r"[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]")


class Rule(NamedTuple):
    """An Allow or Disallow line of a file."""

    disallows: bool
    path: str
    """As it stands."""
    start: int
    """Of the path, in the text of the file."""


class _Run:
    """Rules in a row that all allow or all disallow. They are tried in one go."""

    __slots__ = ("_patterns", "_prefixes", "_starts", "_tests", "disallows")

    def __init__(self, rules: Iterable[Rule], test_of: Callable[[str], str | Matcher]) -> None:
        """*test_of* returns how a rule is compared with a path: its prefix, or its pattern."""
        rules = list(rules)
        self.disallows = rules[0].disallows
        self._starts = array("I", [rule.start for rule in rules])
        self._tests = tuple([test_of(rule.path) for rule in rules])
        self._prefixes = tuple([test for test in self._tests if isinstance(test, str)])
        self._patterns = [test for test in self._tests if not isinstance(test, str)]

    def matches(self, path: str) -> bool:
        if path.startswith(self._prefixes):
            return True
        return bool(self._patterns) and any(matches(path) for matches in self._patterns)

    def start(self, path: str) -> int:
        """Return the start of the first rule that matches *path*: one does."""
        found = (
            start
            for start, test in zip(self._starts, self._tests, strict=True)
            if (path.startswith(test) if isinstance(test, str) else test(path))
        )
        return next(found)


class Rules:
    """The rules of a robot, in the order in which they are tried."""

    __slots__ = ("_runs", "unescape")

    def __init__(
        self,
        rules: Iterable[Rule],
        test_of: Callable[[str], str | Matcher],
        unescape: Callable[[str], str],
    ) -> None:
        """*unescape* returns a path as it is compared."""
        self.unescape = unescape
        runs = groupby(rules, attrgetter("disallows"))
        self._runs = [_Run(run, test_of) for _, run in runs]

    def disallow(self, path: str) -> bool:
        """Whether the rule that decides on *path* disallows it."""
        run = self._deciding(path)
        return run is not None and run.disallows

    def start(self, path: str) -> int | None:
        """Return the start of the rule that decides on *path*, None if none matches."""
        run = self._deciding(path)
        return None if run is None else run.start(path)

    def _deciding(self, path: str) -> _Run | None:
        for run in self._runs:
            if run.matches(path):
                return run
        return None


def rules_of_draft(rules: Iterable[Rule]) -> Rules:
    """Return the rules of a record. C5: a path without a slash in front matches nothing."""
    return Rules(rules, unescape, unescape)


def rules_of_rfc9309(rules: Iterable[Rule]) -> Rules:
    """Return the rules of all groups that a robot obeys."""
    # The most octets first, of as many Allow first; of what is left the first in the file.
    ordered = sorted(rules, key=lambda rule: (-octets_of_rule(rule.path), rule.disallows))
    return Rules(ordered, _test_of_rfc9309, unescape_by_rfc9309)


def _test_of_rfc9309(path: str) -> str | Matcher:
    # A star at the end matches what no star matches.
    prefix = path.rstrip("*")
    is_pattern = "*" in prefix or path.endswith("$")
    return matcher_of(path) if is_pattern else unescape_by_rfc9309(prefix)


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


def _pieces(path: str) -> Iterable[str]:
    """Return the pieces before, between and after the stars, as they are compared."""
    pieces = path.split("*")
    return _decoded(pieces) if "%" in path else pieces


def _decoded(pieces: list[str]) -> Iterator[str]:
    query = ""
    for piece in pieces:
        yield unescape_by_rfc9309(query + piece)[len(query) :]
        query = query or ("?" if "?" in piece else "")


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
