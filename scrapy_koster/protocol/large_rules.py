"""The rules of a large file: a file of 512,000 bytes takes a few times its bytes."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from scrapy_koster.protocol.line import PATH_LINE
from scrapy_koster.protocol.matching import Matching
from scrapy_koster.protocol.records import Group
from scrapy_koster.protocol.ruleindex import Rule, RuleIndex

_READ_ANEW = 3
"""The decisions before an index is made, which takes ten times as long as reading the file."""
_NO_RULE = Rule(-1, is_disallow=False, path="")


@lru_cache(maxsize=1)  # the two standards often obey the same groups
def rules_in(text: str, groups: tuple[Group, ...]) -> list[tuple[str, str]]:
    """Return the kind and the path of each rule of *groups* in the file *text* (PATH_LINE)."""
    return [*chain.from_iterable(PATH_LINE.findall(text, each.rules, each.end) for each in groups)]


class LargeRules:
    """The rules of a robot in a large file.

    The first decisions read the file anew. Then an index is made, with which a decision reads few
    rules.
    """

    __slots__ = ("_groups", "_index", "_matching", "_text", "_times_left")

    def __init__(self, text: str, groups: Sequence[Group], matching: Matching) -> None:
        self._text, self._groups, self._matching = text, tuple(groups), matching
        self._times_left = _READ_ANEW
        self._index: RuleIndex | None = None

    def deciding(self, path: str) -> Rule:
        """Return the rule that decides on *path*, or a rule with the number -1."""
        if self._index is None and self._times_left:
            self._times_left -= 1
            return self._read_anew(path)
        if self._index is None:
            rules = rules_in(self._text, self._groups)
            self._index, self._text, self._groups = self._index_of(rules), "", ()
        candidates = self._index.candidates(path)
        return next((r for r in candidates if self._matching.matches(r.path, path)), _NO_RULE)

    def _read_anew(self, path: str) -> Rule:
        rules, matches = rules_in(self._text, self._groups), self._matching.matches
        found = (n for n, (_, rule) in enumerate(rules) if matches(rule, path))
        place = self._matching.first(found, rules)
        return Rule(place, bool(rules[place][0]), rules[place][1]) if place >= 0 else _NO_RULE

    def _index_of(self, rules: list[tuple[str, str]]) -> RuleIndex:
        numbers: dict[str, int] = {}  # of rules with the same path, only the first one decides
        for number in sorted(range(len(rules)), key=lambda n: self._matching.order(*rules[n])):
            numbers.setdefault(rules[number][1], number)
        return RuleIndex(rules, numbers.values(), self._matching.pieces)
