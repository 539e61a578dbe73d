"""3.2, 3.2.1: the records of a /robots.txt file, which RFC 9309 calls groups (2.1, 2.2.1).

The letters and numbers in the comments (A1, B12, ...) are the rows of the
decision table in docs/semantics.md, for questions that the draft leaves open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeAlias

from scrapy_koster.protocol.line import AGENT_LINE, LINE, Line, lowered, numbered, with_line_feeds
from scrapy_koster.protocol.ruling import Heading

# Section 6: a record can have as many agent lines as a file has room for.
_AGENTS_NAMED = 100


class Record(NamedTuple):
    """3.2: User-agent lines, followed by the instructions to those robots."""

    agents: list[Line]
    rules: list[Line]
    """3.3: ruleline = (disallowline | allowline | extension)."""


class Group(NamedTuple):
    """The place of a record in the text of a file."""

    start: int
    """Of the first User-agent line."""
    rules: int
    """Of the line after the last User-agent line."""
    end: int


Found: TypeAlias = tuple[list[Group], list[Group]]
"""The records of a file for a robot by name, and by "*" if there is no record by name."""


def parse(body: bytes) -> list[Record]:
    """Return the records of a file, in order. Never raises."""
    text = with_line_feeds(body)
    return list(records(text, (group for _, group in _with_rules(text)), text))


@lru_cache(maxsize=16)  # called for every request to a site without rules
def has_record(body: bytes) -> bool:
    """Whether a file has a record. An empty file and an HTML page have no record."""
    return next(_with_rules(with_line_feeds(body)), None) is not None


def groups(text: str, rule_line: re.Pattern[str]) -> Iterator[tuple[list[str], Group]]:
    """Yield the groups of a file, with the values of their agent lines.

    A group begins with agent lines, and ends before the next agent line after a
    *rule_line* (B13). Blank lines are ignored (B12), and so are lines without a colon or with an
    invalid field (B6, B11). Rules before the first agent line are in no group (B14).
    """
    agents: list[str] = []
    start = rules = 0
    for agent in AGENT_LINE.finditer(text):
        if agents and rule_line.search(text, rules, agent.start()):
            yield agents, Group(start, rules, agent.start())
            agents = []
        if not agents:
            start = agent.start()
        agents.append(agent[1])
        rules = agent.end()
    if agents:
        yield agents, Group(start, rules, len(text))


def _with_rules(text: str, rule_line: re.Pattern[str] = LINE) -> Iterator[tuple[list[str], Group]]:
    """Yield the records of the draft, as ``groups`` does."""
    for agents, group in groups(text, rule_line):
        # B15: a record has 1*ruleline. Only the last record can lack a ruleline.
        if group.end < len(text) or rule_line.search(text, group.rules):
            yield agents, group


def record_of_draft(text: str, token: str, rule_line: re.Pattern[str]) -> Found:
    """Return the record that the robot *token* must obey (3.2.1).

    "If no record satisfied either condition, or no records are present at all, access is
    unlimited."
    """
    # Most files name few robots: then the first record for "*" is enough.
    is_named = token not in ("", "*") and token in lowered(text)  # A10
    default: list[Group] = []
    for agents, group in _with_rules(text, rule_line):
        # "The robot must obey the first record in /robots.txt that contains a
        # User-Agent line whose value contains the name token of the robot as a
        # substring. The name comparisons are case-insensitive."
        if is_named and token in "\n".join(agents).lower():
            return [group], default
        # "If no such record exists, it should obey the first record with a
        # User-agent line with a "*" value, if present."
        if not default and "*" in agents:
            default = [group]
            if not is_named:
                break
    return [], default


def groups_of_rfc9309(text: str, token: str, rule_line: re.Pattern[str]) -> Found:
    """Return the groups that the robot *token*, in lower case, must obey (2.2.1).

    "If there is more than one group matching the user-agent, the matching
    groups' rules MUST be combined into one group." "If no matching group
    exists, crawlers MUST obey the group with a user-agent line with the "*"
    value, if present."
    """
    named: list[Group] = []
    default: list[Group] = []
    # "Crawlers MUST use case-insensitive matching to find the group"
    is_named = token not in ("", "*") and token in lowered(text)
    for agents, group in groups(text, rule_line):
        if is_named and token in map(str.lower, agents):
            named.append(group)
        elif "*" in agents:
            default.append(group)
    return named, default


def records(text: str, found: Iterable[Group], ends: str) -> Iterator[Record]:
    """Yield the records at the groups *found*, which are in order. *ends*: see ``numbered``."""
    number = counted = 0
    for group in found:
        number += ends.count("\n", counted, group.start)
        counted = group.start
        record = Record([], [])
        for line in numbered(LINE.finditer(text, counted, group.end), ends, number, counted):
            (record.agents if line.field == b"user-agent" else record.rules).append(line)
        yield record


def heading(text: str, group: Group, ends: str) -> Heading:
    """Return the first hundred agent lines of a group. *ends*: see ``numbered``."""
    lines = numbered(LINE.finditer(text, group.start, group.rules), ends)
    return Heading(list(islice((n for n in lines if n.field == b"user-agent"), _AGENTS_NAMED)))
