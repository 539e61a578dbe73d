"""The rules of a robot, and the rule that decides on a path (3.2.2; RFC 9309, 2.2.2)."""

from array import array
from collections.abc import Sequence
from itertools import chain

from scrapy_koster.protocol.large_rules import LargeRules, rules_in
from scrapy_koster.protocol.matching import Matching, Test
from scrapy_koster.protocol.records import Group

_FEW_CHARS = 5_000
_MANY_BYTES = 320_000
"""Rules that would take more as texts and functions are ``LargeRules``."""


class Rules:
    """The rules of a robot, in the order of the file."""

    __slots__ = ("_groups", "_large", "_matchers", "_prefixes", "_rules", "_tests", "matching")

    def __init__(self, text: str, groups: Sequence[Group], matching: Matching) -> None:
        """Take the rules of *groups*, the groups for the robot in the file *text*."""
        self.matching = matching
        self._groups = array("I", chain.from_iterable(groups))
        self._rules = rules_in(text, tuple(groups))
        self._large: LargeRules | None = None
        may_be_large = bool(self._rules) and len(text) > _FEW_CHARS
        if may_be_large and _bytes(text, self._rules, groups) > _MANY_BYTES:
            self._large, self._rules = LargeRules(text, self.groups, matching), []
        # Most pages match no Disallow line, so the other lines are read only if one matches.
        disallow = self._tests_of([path for kind, path in self._rules if kind])
        self._prefixes = tuple([test for test in disallow if isinstance(test, str)])
        self._matchers = [test for test in disallow if not isinstance(test, str)]
        self._tests: list[Test] | None = None

    @property
    def groups(self) -> list[Group]:
        """The groups for the robot."""
        return [*map(Group, *(self._groups[n::3] for n in range(3)))]

    def disallow(self, path: str) -> bool:
        """Return whether the deciding rule disallows *path*. False if no rule matches."""
        if self._large is not None:
            return self._large.deciding(path).is_disallow
        if path.startswith(self._prefixes) or any(matches(path) for matches in self._matchers):
            return bool(self._rules[self.deciding(path)][0])
        return False

    def deciding(self, path: str) -> int:
        """Return the index of the rule that decides on *path*, or -1 if no rule matches."""
        if self._large is not None:
            return self._large.deciding(path).number
        if self._tests is None:
            self._tests = self._tests_of([path for _, path in self._rules])
        found = (
            place
            for place, test in enumerate(self._tests)
            if (path.startswith(test) if isinstance(test, str) else test(path))
        )
        return self.matching.first(found, self._rules)

    def _tests_of(self, paths: list[str]) -> list[Test]:
        return [
            self.matching.test(path) if "%" in path or "*" in path or "$" in path else path
            for path in paths
        ]


def _bytes(text: str, rules: list[tuple[str, str]], groups: Sequence[Group]) -> int:
    """Return about how many bytes *rules* take as texts and functions."""
    stars, dollars, escapes = (
        sum(text.count(sign, each.rules, each.end) for each in groups) for sign in "*$%"
    )
    chars = sum(each.end - each.rules for each in groups)
    longest = max(len(path) for _, path in rules)  # decoded, each character can take two bytes
    return chars + 150 * len(rules) + 250 * stars + 350 * dollars + 12 * escapes + 5 * longest
