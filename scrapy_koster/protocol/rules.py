"""The rules of a robot, and the rule that decides on a path.

3.2.2: "in the order they occur in the record. The first match found is used." RFC 9309, 2.2.2:
"The most specific match found MUST be used. The most specific match is the match that has the
most octets", and of equal rules Allow "SHOULD be used".

Very many rules are kept in one text (``ruleindex``): a file of 512,000 bytes takes a few
times its bytes, and a decision reads few of its rules, but for the first three decisions.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

from scrapy_koster.protocol.line import PATH_LINE
from scrapy_koster.protocol.path import in_query, unescape, unescape_by_rfc9309
from scrapy_koster.protocol.records import Group
from scrapy_koster.protocol.ruleindex import END, Rule, RuleIndex

Matcher: TypeAlias = Callable[[str], bool]
"""A function that returns whether a rule of RFC 9309 matches a path.

The path is a result of ``unescape_by_rfc9309``.
"""
Test: TypeAlias = str | Matcher
"""The test of a rule: the prefix of a path, or a function."""

_FEW_CHARS = 5_000
_MANY_BYTES = 320_000
"""Rules that would take more as texts and functions are kept in a ``RuleIndex``."""
_READ_ANEW = 3
"""The decisions before an index is made, which takes ten times as long as reading the file."""
_NO_RULE = Rule(-1, is_disallow=False, path="")

_NO_URI_OCTET = re.compile(r"[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]")


@lru_cache(maxsize=1)  # the two standards often obey the same groups
def _rules_in(text: str, groups: tuple[Group, ...]) -> list[tuple[str, str]]:
    return [rule for each in groups for rule in PATH_LINE.findall(text, each.rules, each.end)]


class Rules:
    """The rules of a robot by the draft, in the order of the file."""

    __slots__ = (
        *("_groups", "_index", "_is_large", "_matchers", "_prefixes", "_rules", "_tests"),
        *("_text", "_times_left"),
    )

    unescape = staticmethod(unescape)
    """Decodes a path for the comparison."""

    def __init__(self, text: str, groups: Sequence[Group]) -> None:
        """Take the rules of *groups*, the groups for the robot in the file *text*."""
        self._groups = array("I", chain.from_iterable(groups))
        rules = _rules_in(text, tuple(groups))
        may_be_large = bool(rules) and len(text) > _FEW_CHARS
        self._is_large = may_be_large and _bytes(text, rules, groups) > _MANY_BYTES
        self._text, self._times_left = text if self._is_large else "", _READ_ANEW
        self._index: RuleIndex | None = None
        self._rules: list[tuple[str, str]] = [] if self._is_large else rules
        # Most pages match no Disallow line, so the other lines are read only if one matches.
        disallow = self._tests_of(rule for rule in self._rules if rule[0])
        self._prefixes = tuple([test for test in disallow if isinstance(test, str)])
        self._matchers = [test for test in disallow if not isinstance(test, str)]
        self._tests: list[Test] | None = None

    @property
    def groups(self) -> list[Group]:
        """The groups for the robot."""
        return [*map(Group, *(self._groups[n::3] for n in range(3)))]

    def disallow(self, path: str) -> bool:
        """Return whether the deciding rule disallows *path*. False if no rule matches."""
        if self._is_large:
            return self._in_large_file(path).is_disallow
        if path.startswith(self._prefixes) or any(matches(path) for matches in self._matchers):
            return bool(self._rules[self.deciding(path)][0])
        return False

    def deciding(self, path: str) -> int:
        """Return the index of the rule that decides on *path*, or -1 if no rule matches."""
        if self._is_large:
            return self._in_large_file(path).number
        if self._tests is None:
            self._tests = self._tests_of(self._rules)
        found = (
            place
            for place, test in enumerate(self._tests)
            if (path.startswith(test) if isinstance(test, str) else test(path))
        )
        return self._first(found, self._rules)

    def _in_large_file(self, path: str) -> Rule:
        """Return the rule that decides on *path*, or a rule with the number -1.

        The file is read anew, until an index is worth its time.
        """
        if self._index is None:
            rules = _rules_in(self._text, tuple(self.groups))
            if self._times_left:
                self._times_left -= 1
                found = (n for n, (_, rule) in enumerate(rules) if self._matches(rule, path))
                place = self._first(found, rules)
                return (
                    Rule(place, bool(rules[place][0]), rules[place][1]) if place >= 0 else _NO_RULE
                )
            self._index, self._text = self._index_of(rules), ""
        matching = (rule for rule in self._index.candidates(path) if self._matches(rule.path, path))
        return next(matching, _NO_RULE)

    def _matches(self, rule: str, path: str) -> bool:
        test = self._test(rule)
        return path.startswith(test) if isinstance(test, str) else test(path)

    def _index_of(self, rules: list[tuple[str, str]]) -> RuleIndex:
        numbers: dict[str, int] = {}  # of rules with the same path, only the first one decides
        for number in sorted(range(len(rules)), key=lambda n: self._order(*rules[n])):
            numbers.setdefault(rules[number][1], number)
        return RuleIndex(rules, numbers.values(), self._pieces)

    def _tests_of(self, rules: Iterable[tuple[str, str]]) -> list[Test]:
        return [
            self._test(path) if "%" in path or "*" in path or "$" in path else path
            for _, path in rules
        ]

    def _first(self, places: Iterator[int], _rules: Sequence[tuple[str, str]]) -> int:
        """Return the index of the deciding rule, or -1 if *places* is empty.

        *places* are the indexes of the matching rules in *_rules*, in file order.
        """
        return next(places, -1)

    def _order(self, _kind: str, _path: str) -> tuple[int, str]:
        """Return the order of a rule. If several have the same, the first in the file decides."""
        return 0, ""

    def _pieces(self, path: str) -> Sequence[str]:
        """Return the prefix, or the pieces, of the rule *path* for the index."""
        return [unescape(path)]

    def _test(self, path: str) -> Test:
        # C6: "*" and "$" are ordinary characters. So a path that begins with "*" never matches.
        return unescape(path)


class RulesOfRfc9309(Rules):
    """The rules of the groups that a robot obeys by RFC 9309."""

    __slots__ = ()

    unescape = staticmethod(unescape_by_rfc9309)

    def _first(self, places: Iterator[int], rules: Sequence[tuple[str, str]]) -> int:
        return min(places, key=lambda place: self._order(*rules[place]), default=-1)

    def _order(self, kind: str, path: str) -> tuple[int, str]:
        return -octets_of_rule(path), kind.lower()  # the kind of Allow is "", so Allow is first

    def _matches(self, rule: str, path: str) -> bool:
        if "%" not in rule and rule.rstrip("*$").rpartition("*")[2] not in path:
            return False  # for speed
        return super()._matches(rule, path)

    def _pieces(self, path: str) -> Sequence[str]:
        is_anchored = path.endswith("$")
        return [*_pieces(path[:-1] + END if is_anchored else path.rstrip("*"))]

    def _test(self, path: str) -> Test:
        # A star at the end has no effect.
        prefix = path.rstrip("*")
        is_pattern = "*" in prefix or path.endswith("$")
        return matcher_of(path) if is_pattern else unescape_by_rfc9309(prefix)


def _bytes(text: str, rules: list[tuple[str, str]], groups: Sequence[Group]) -> int:
    """Return about how many bytes *rules* take as texts and functions."""
    stars, dollars, escapes = (
        sum(text.count(sign, each.rules, each.end) for each in groups) for sign in "*$%"
    )
    chars = sum(each.end - each.rules for each in groups)
    longest = max(len(path) for _, path in rules)  # decoded, each character can take two bytes
    return chars + 150 * len(rules) + 250 * stars + 350 * dollars + 12 * escapes + 5 * longest


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
