"""3.2: the format of a /robots.txt file, and what it says of a URL.

The letters and numbers in the comments (A1, B12, ...) are the rows of the
decision table in docs/semantics.md, for what the draft leaves open.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from scrapy_koster.protocol.line import (
    AGENT_LINE,
    ANY_CASE,
    LINE,
    LINE_OR_NONE,
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
from scrapy_koster.protocol.path import unescape
from scrapy_koster.protocol.precedence import flatten, in_use
from scrapy_koster.protocol.reading import Decision, Reading, Record, by_prefixes
from scrapy_koster.protocol.ruling import Heading, Ruling, Standard, heading

# 3.3: ruleline, which is a line with any other field.
_RULE_LINE = re.compile(f"(?!\n{SP}user-agent{SP}:){LINE.pattern}", ANY_CASE)


def parse(body: bytes) -> list[Record]:
    """Return the records of a file, in their order. Never raises."""
    text = with_line_feeds(body)
    return list(records(text, (span for _, span in _spans(text))))


@lru_cache(maxsize=16)  # each request to a site that has none asks again
def has_record(body: bytes) -> bool:
    """Whether a file has a record: of an empty one, an HTML page and the like it is false."""
    text = with_line_feeds(body)
    agent = AGENT_LINE.search(text)
    return agent is not None and _RULE_LINE.search(text, agent.end()) is not None


_Span: TypeAlias = tuple[int, int]
"""Where a record stands in a text: from its first agent line to its end."""


def _spans(text: str) -> Iterator[tuple[list[str], _Span]]:
    """Yield the values of each record's agent lines, and its span.

    A record is one or more agent lines and all up to the next agent line that
    has a rule line before it (B13). B12: a blank line inside it is ignored. B6,
    B11: so is a line that has no colon or whose field is no token. B14: rules
    before any agent line are in no record.
    """
    agents: list[str] = []
    start = end = 0
    for agent in AGENT_LINE.finditer(text):
        if agents and LINE.search(text, end, agent.start()):
            yield agents, (start, agent.start())
            agents = []
        if not agents:
            start = agent.start()
        agents.append(agent[1])
        end = agent.end()
    if agents and LINE.search(text, end):  # B15: a record has 1*ruleline
        yield agents, (start, len(text))


def records(text: str, spans: Iterable[_Span]) -> Iterator[Record]:
    """Yield the records that stand at *spans*, which are in order."""
    number = counted = 0
    for start, end in spans:
        number += text.count("\n", counted, start)
        counted = start
        record = Record([], [])
        found = LINE_OR_NONE.findall(text, start, end)
        for at, (name, value) in enumerate(found, number + 1):
            if not name:
                continue
            field = name.lower().encode()
            line = Line(at, field, value.encode("latin-1"))
            (record.agents if field == b"user-agent" else record.rules).append(line)
        yield record


def _find(text: str, token: str) -> _Span | None:
    """Return where the record stands that the robot *token* must obey."""
    default, named = _records_for(text, token)
    return named or default


def _records_for(text: str, token: str) -> tuple[_Span | None, _Span | None]:
    """Return where the record for all robots stands, and the one that has *token*.

    The first may be left out if there is the second.
    """
    # Most files name few robots: then the first record for all is enough.
    named = token not in ("", "*") and token in in_lower_case(text)  # A10
    default = None
    for agents, span in _spans(text):
        # "The robot must obey the first record in /robots.txt that contains a
        # User-Agent line whose value contains the name token of the robot as a
        # substring. The name comparisons are case-insensitive."
        if named and token in "\n".join(agents).lower():
            return default, span
        # "If no such record exists, it should obey the first record with a
        # User-agent line with a "*" value, if present."
        if default is None and "*" in agents:
            default = span
            if not named:
                break
    # "If no record satisfied either condition, or no records are present at
    # all, access is unlimited."
    return default, None


def instructions(record: Record) -> Iterator[tuple[str, Line]]:
    """Yield the Allow and Disallow lines of a record that can match anything.

    Each with its path, in the order in which they are tried (C1). C2: a line
    without a path matches nothing.
    """
    for rule in record.rules:
        if rule.value and rule.field in (b"disallow", b"allow"):
            path = rule.value.decode("latin-1")
            yield (unescape(path) if "%" in path else path), rule


@remembered(1)  # a file that is read is compared with RFC 9309 as well
def obeyed_rules(text: str, token: str) -> list[tuple[str, str]]:
    """Return the Allow and Disallow lines that the robot *token* must obey.

    Each as "d" or "" and its path without the first slash. C5: a path that has
    none in front matches nothing.
    """
    span = _find(text, token)
    first = span and RULE_LINE.search(text, *span)
    if span is None or first is None:
        return []
    found = path_lines(text, first.start(), span[1])
    if text.find("%", *span) >= 0:
        return [(dis, unescape(path[1:])) for dis, path in found if path[0] == "/"]
    return [(dis, path[1:]) for dis, path in found if path[0] == "/"]


class RobotsTxt(Reading):
    """A /robots.txt file as the draft reads it."""

    __slots__ = ()

    standard = Standard.DRAFT
    agents_section = "3.2.1"
    _unescape = staticmethod(unescape)

    def record(self, robot: str | bytes) -> Record | None:
        """Return the record that *robot* must obey (3.2.1)."""
        text = with_line_feeds(self._body)
        span = _find(text, self.name_of(robot))
        return next(records(text, [span])) if span else None

    def records(self, robot: str | bytes) -> list[Record]:
        """Return the record that *robot* must obey (3.2.1), if there is one."""
        record = self.record(robot)
        return [record] if record else []

    @staticmethod
    def _is_named(text: str, token: str) -> bool:
        return _records_for(text, token)[1] is not None

    def _records_of_preferences(self, text: str, token: str) -> list[Record]:
        # 3.3: ruleline = (disallowline | allowline | extension)
        span = _find(text, token)
        return list(records(text, [span])) if span else []

    def _read(self, text: str, token: str) -> Decision:
        return by_prefixes(*flatten(obeyed_rules(text, token)))

    def _find(self, text: str, token: str) -> _Index | None:
        return _indexed(text, token)


class _Index(NamedTuple):
    """Where the rules of a record that are in use stand in the text of a file."""

    heading: Heading
    starts: array[int]
    """Of the path of each, behind its first slash, in the order of the paths."""
    arounds: array[int]
    """The place in ``starts`` of the one around each, -1 where there is none."""

    def ruling(self, text: str, path: str) -> Ruling:
        # "in the order they occur in the record. The first match found is
        # used. If no match is found, the default assumption is that the URL is
        # allowed."
        # "The /robots.txt URL is always allowed"
        first = None if path == "robots.txt" else _first_match(text, self, path)
        allowed = first is None or first.field == b"allow"
        return Ruling(allowed, "3.2.2", self.heading, first)


def _indexed(text: str, token: str) -> _Index | None:
    """Return where the rules stand that the robot *token* must obey."""
    span = _find(text, token)
    if span is None:
        return None
    found = [line for line in PATH_LINE.finditer(text, *span) if line[2][0] == "/"]
    rules = list(in_use([(line[1], unescape(line[2][1:])) for line in found]))
    order = {place: n for n, (place, _) in enumerate(rules)} | {-1: -1}
    return _Index(
        heading(text, *span),
        array("I", [found[place].start(2) + 1 for place, _ in rules]),
        array("i", [order[around] for _, around in rules]),
    )


def _first_match(text: str, index: _Index, path: str) -> Line | None:
    """Return the first line in the file whose path *path* starts with."""

    def path_at(start: int) -> str:
        # What is longer than *path* need not be read: it is no start of it.
        rule = text[start : _end(text, start)].partition("#")[0].rstrip(" \t")
        return unescape(rule[: 3 * len(path) + 3])

    at = bisect_right(index.starts, path, key=path_at) - 1
    while at >= 0:
        start = index.starts[at]
        if path.startswith(path_at(start)):
            return line_around(text, start)
        at = index.arounds[at]
    return None


def _end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end
