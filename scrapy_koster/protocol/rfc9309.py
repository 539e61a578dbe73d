"""RFC 9309: which groups and rules a /robots.txt has, and what they say of a URL.

The lines are those of the draft (``line``). Where RFC 9309 is silent, what
docs/semantics.md says of the two standards holds; where readers of today go
beyond its text (misspelt fields, lines without a colon), this does not.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from scrapy_koster.protocol.line import (
    AGENT_LINE,
    ANY_CASE,
    PATH_LINE,
    RULE_LINE,
    SP,
    Line,
    in_lower_case,
    line_around,
    path_lines,
    remembered,
    with_line_feeds,
)
from scrapy_koster.protocol.nametoken import other_tokens
from scrapy_koster.protocol.path import unescape_by_rfc9309
from scrapy_koster.protocol.pattern import NO_RULE, Patterns, Rule, in_order, is_special
from scrapy_koster.protocol.precedence import flatten
from scrapy_koster.protocol.reading import Decision, Reading, Record, by_prefixes
from scrapy_koster.protocol.robotstxt import records
from scrapy_koster.protocol.ruling import Heading, Ruling, Standard, heading

# Attach, 3: "rule =/ content-usage". No other field ends the agent lines (2.2.4: "other records"
# such as Content-Signal).
_RULE_LINE_OF_ATTACH = re.compile(f"\n{SP}(?:disallow|allow|content-usage){SP}:", ANY_CASE)


class Group(NamedTuple):
    """Where the rules of a group stand in the text of a file."""

    start: int
    """Of the first rule; where there is none, the end of the file."""
    end: int


def groups(text: str, token: str, rule_line: re.Pattern[str] = RULE_LINE) -> list[Group]:
    """Return the groups that the robot *token*, in lower case, must obey (2.2.1).

    "If there is more than one group matching the user-agent, the matching
    groups' rules MUST be combined into one group." "If no matching group
    exists, crawlers MUST obey the group with a user-agent line with the "*"
    value, if present." Where the list is empty, "no rules apply". *rule_line* is
    what a rule begins with.
    """
    return _groups_named(text, token, rule_line) or list(_groups_of(text, "*", rule_line))


def _groups_named(text: str, token: str, rule_line: re.Pattern[str] = RULE_LINE) -> list[Group]:
    # Most files name few robots.
    if token and token in in_lower_case(text):
        return list(_groups_of(text, token, rule_line))
    return []


@lru_cache(maxsize=256)  # a crawl has few robots
def _agent_line(token: str) -> re.Pattern[str]:
    # "Crawlers MUST use case-insensitive matching to find the group"
    return re.compile(f"\n{SP}user-agent{SP}:{SP}{re.escape(token)}{SP}(?=[#\n]|\\Z)", ANY_CASE)


def _groups_of(text: str, token: str, rule_line: re.Pattern[str]) -> Iterator[Group]:
    """Yield the groups that have *token* in a line of their own.

    2.1: "One or more user-agent lines that are followed by one or more rules.
    The group is terminated by a user-agent line or end of file." 2.2.4: other
    lines "MUST NOT interfere": they end neither the agents nor the rules.
    """
    agent_line = _agent_line(token)
    at = 0
    while agent := agent_line.search(text, at):
        rule = rule_line.search(text, agent.end())
        following = AGENT_LINE.search(text, rule.end()) if rule else None
        at = following.start() if following else len(text)
        yield Group(rule.start() if rule else at, at)


@remembered(2)  # for two names of a robot, a file is compared and then read
def group_rules(text: str, token: str) -> list[Rule]:
    """Return the rules that the robot *token* must obey: those of its groups as one (2.2.1)."""
    return [rule for group in groups(text, token) for rule in path_lines(text, *group)]


def longest_first(rules: list[Rule]) -> list[Rule]:
    """Return rules without special characters so that the first match is the longest.

    Without the first slash. Of two that match a path one is the beginning of the other: it
    stands before it in the order of the paths. Of equal ones Allow comes first.
    """
    plain = [
        (disallows, unescape_by_rfc9309(path[1:]) if "%" in path else path[1:])
        for disallows, path in rules
    ]
    plain.sort(key=itemgetter(0))
    plain.sort(key=itemgetter(1), reverse=True)
    return plain


class Rfc9309(Reading):
    """A /robots.txt file as RFC 9309 reads it."""

    __slots__ = ()

    standard = Standard.RFC_9309
    agents_section = "2.2.1"
    _unescape = staticmethod(unescape_by_rfc9309)

    def records(self, robot: str | bytes) -> list[Record]:
        """Return the groups that *robot* must obey (2.2.1), with all their lines."""
        text = with_line_feeds(self._body)
        found = sorted({g for name in self.names(robot) for g in groups(text, name)})
        return list(records(text, [(_start(text, group), group.end) for group in found]))

    def _records_of_preferences(self, text: str, token: str) -> list[Record]:
        # For Allow and Disallow lines the grouping stays that of RFC 9309 itself.
        found = groups(text, token, _RULE_LINE_OF_ATTACH)
        spans = [(_start(text, group, _RULE_LINE_OF_ATTACH), group.end) for group in found]
        return list(records(text, spans))

    def names(self, robot: str | bytes) -> list[str]:
        """Return the names whose groups *robot* obeys, in lower case."""
        # Which token of a header is the product token cannot be told. The groups of the others
        # may only forbid more: none of them takes the place of those of the name token, or of "*".
        names = [self.name_of(robot)]
        if others := other_tokens(robot):
            text = with_line_feeds(self._body)
            names += [agent for agent in _agents(text) if agent in others]
        return names

    @staticmethod
    def _is_named(text: str, token: str) -> bool:
        return token != "*" and bool(_groups_named(text, token))

    def _read(self, text: str, token: str) -> Decision:
        rules = group_rules(text, token)
        paths = "".join([path for _, path in rules])
        if "*" not in paths and "$" not in paths:
            return by_prefixes(*flatten(longest_first(rules)))
        return (), Patterns(rules).disallow

    def _find(self, text: str, token: str) -> _Index | None:
        found = groups(text, token)
        return _Index(text, found) if found else None


class _Index:
    """Where the rules of a robot stand in the text of a file."""

    __slots__ = ("_groups", "_headings", "_patterns", "_starts")

    def __init__(self, text: str, found: list[Group]) -> None:
        lines = [line for group in found for line in PATH_LINE.finditer(text, *group)]
        rules = [(line[1], line[2]) for line in lines]
        self._groups = found
        self._headings: dict[Group, Heading] = {}
        self._patterns = Patterns(rules)
        self._starts = array("I", [lines[place].start(2) for place in in_order(rules)])

    def ruling(self, text: str, path: str) -> Ruling:
        # "The /robots.txt URI is implicitly allowed." "If no match is found [...] the URI
        # is allowed."
        rank = NO_RULE if path == "robots.txt" else self._patterns.deciding(path)
        if rank == NO_RULE:
            return self._ruled(self._heading(text, self._groups[0]), None)
        start = self._starts[rank]
        group = self._groups[bisect_right(self._groups, (start, len(text))) - 1]
        return self._ruled(self._heading(text, group), line_around(text, start))

    def _ruled(self, record: Heading, rule: Line | None) -> Ruling:
        return Ruling(
            allowed=rule is None or rule.field == b"allow",
            section="2.2.3" if rule and is_special(rule.value.decode("latin-1")) else "2.2.2",
            record=record,
            rule=rule,
            standard=Standard.RFC_9309,
        )

    def _heading(self, text: str, group: Group) -> Heading:
        if group not in self._headings:
            self._headings[group] = heading(text, _start(text, group), group.start)
        return self._headings[group]


@remembered(1)  # a file is compared with the draft, and then read
def _agents(text: str) -> list[str]:
    """Return the values of all User-agent lines, in lower case, each once."""
    return list(dict.fromkeys(AGENT_LINE.findall(in_lower_case(text))))


def _start(text: str, group: Group, rule_line: re.Pattern[str] = RULE_LINE) -> int:
    """Return where the agent lines of *group* begin: behind the last rule before its own."""
    start = text.rfind("\n", 0, group.start)
    while start > 0 and not rule_line.match(text, start):
        start = text.rfind("\n", 0, start)
    agent = AGENT_LINE.search(text, max(start, 0))
    assert agent is not None
    return agent.start()
