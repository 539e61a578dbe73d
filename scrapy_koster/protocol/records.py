"""3.2, 3.2.1: the records of a /robots.txt file, which RFC 9309 calls groups (2.1, 2.2.1).

The letters and numbers in the comments (A1, B12, ...) are the rows of the
decision table in docs/semantics.md, for questions that the draft leaves open.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeAlias

from scrapy_koster.protocol.line import AGENT_LINE, LINE, Line, lowered, numbered, with_line_feeds
from scrapy_koster.protocol.ruling import Heading

# The limit of agent lines in a Heading. A hostile file can have very many (section 6).
_AGENTS_NAMED = 100


class Record(NamedTuple):
    """User-agent lines, and the instructions for the robots that the lines name (3.2)."""

    agents: list[Line]
    rules: list[Line]
    """The other lines. 3.3: ruleline = (disallowline | allowline | extension)."""


class Group(NamedTuple):
    """The place of a record, as indexes in the text of a file."""

    start: int
    """Index of the line feed before the first User-agent line."""
    rules: int
    """Index of the end of the last User-agent line's value, where the search for rules begins."""
    end: int
    """Index of the next record, or of the end of the text."""


Found: TypeAlias = tuple[list[Group], list[Group]]
"""The records for a robot's name, and for "*". The second list applies if the first is empty."""


def parse(body: bytes) -> list[Record]:
    """Return the records of a file by the draft, in order. Never raises."""
    text = with_line_feeds(body)
    return list(records(text, (group for _, group in _with_rules(text)), text))


@lru_cache(maxsize=16)  # called for every request if KOSTER_MISSING is "disallow"
def has_record(body: bytes) -> bool:
    """Whether a file has a record by the draft: a User-agent line, then a rule line (B15)."""
    return next(_with_rules(with_line_feeds(body)), None) is not None


def groups(text: str, rule_line: re.Pattern[str]) -> Iterator[tuple[list[str], Group]]:
    """Yield the groups of a file, each with the values of its agent lines.

    If a match of *rule_line* is between two agent lines, the second begins the next group (B13).
    The last group may have no rule. Blank lines are ignored (B12), and so are lines without a colon
    or with an invalid field (B6, B11). Rules before the first agent line are in no group (B14).
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
    """Yield the ``groups`` that are records of the draft: the groups with a rule."""
    for agents, group in groups(text, rule_line):
        # B15: a record has 1*ruleline. Only the last group can lack a ruleline.
        if group.end < len(text) or rule_line.search(text, group.rules):
            yield agents, group


def record_of_draft(text: str, token: str, rule_line: re.Pattern[str]) -> Found:
    """Return the first record for the name *token*, and the first record for "*" (3.2.1).

    A list is empty if there is no such record. If the first list has a record, the second list does
    not count, and can be empty because the search has ended.

    "If no record satisfied either condition, or no records are present at all, access is
    unlimited."
    """
    # For speed: if the name is nowhere in the file, the search ends at the first "*" record.
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
    """Return the groups for the name *token* (in lower case), and the groups for "*" (2.2.1).

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
    """Yield the records of *found*, groups in file order. *ends* is as in ``numbered``."""
    number = counted = 0
    for group in found:
        number += ends.count("\n", counted, group.start)
        counted = group.start
        record = Record([], [])
        for line in numbered(LINE.finditer(text, counted, group.end), ends, number, counted):
            (record.agents if line.field == b"user-agent" else record.rules).append(line)
        yield record


def heading(text: str, group: Group, ends: str) -> Heading:
    """Return the first hundred agent lines of a group. *ends* is as in ``numbered``."""
    lines = numbered(LINE.finditer(text, group.start, group.rules), ends)
    return Heading(list(islice((n for n in lines if n.field == b"user-agent"), _AGENTS_NAMED)))
