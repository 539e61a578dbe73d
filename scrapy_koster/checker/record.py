"""Findings about several lines of a robots.txt: outside of records, in records, between records."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from scrapy_koster.checker.seen import AGENT, NAME_TOKEN, RULES, Seen, SourceLine
from scrapy_koster.protocol.line import CONTENT_USAGE, Line
from scrapy_koster.protocol.path import unescape
from scrapy_koster.protocol.records import Record
from scrapy_koster.protocol.usage_statements import CONTENT_SIGNAL

_COMPARED_BYTES = 16_000
"""If earlier User-agent values are longer, no name is searched in them (section 6)."""


def seen_outside(sources: list[SourceLine], records: list[Record]) -> Iterator[Seen]:
    """Yield findings about lines outside of records."""
    for source in sources:
        if source.field == AGENT:
            break
        if source.field in RULES:
            yield source.seen("K034", source.column, "no User-agent line before this rule")
        elif source.field == CONTENT_USAGE:
            yield source.seen("K073", source.column, "no User-agent line before it")
        elif source.field != CONTENT_SIGNAL and NAME_TOKEN.fullmatch(source.field):
            yield source.seen("K032", source.column, "{} is outside of a record", source.field)
    end = records[-1].rules[-1].number if records else 0
    for source in sources:
        if source.field == AGENT and source.number > end:
            said = "no rule follows: not a record for the draft, no limit for RFC 9309"
            yield source.seen("K030", source.column, said)
            return


def _is_rule(line: Line) -> bool:
    return line.field in RULES


def seen_between(records: list[Record], blanks: list[int]) -> Iterator[Seen]:
    """Yield findings about blank lines in records, and missing blank lines between records.

    Also yield findings about records without an Allow or Disallow line.
    """
    for record in records:
        yield from _seen_blank(record, blanks)
    for record, following in pairwise(records):
        agent, rule = following.agents[0], record.rules[0]
        if not any(map(_is_rule, record.rules)):
            said = (
                "the robots of line {} obey the rules after it for RFC 9309, and none for the draft"
            )
            start = record.agents[0].number
            yield Seen("K033", rule.number, 1, said, (start,))
        elif not _blank_between(record.rules[-1], agent, blanks):
            yield Seen("K035", agent.number, 1, "no blank line before the record")


def _blank_between(line: Line, following: Line, blanks: list[int]) -> int | None:
    at = bisect_left(blanks, line.number)
    blank = blanks[at] if at < len(blanks) else following.number
    return blank if blank < following.number else None


def _seen_blank(record: Record, blanks: list[int]) -> Iterator[Seen]:
    for line, following in pairwise((*record.agents, *record.rules)):
        blank = _blank_between(line, following, blanks)
        if blank is None:
            continue
        if _is_rule(following) or following.field == AGENT:
            said = "the record of line {} continues after this line"
            yield Seen("K031", blank, 1, said, (record.agents[0].number,))
        else:
            said = "{} follows a blank line, which ends the record"
            yield Seen("K032", following.number, 1, said, (following.field,))


def seen_in_names(records: list[Record]) -> Iterator[Seen]:
    """Yield findings about User-agent values that equal, or are part of, an earlier value."""
    named: dict[bytes, tuple[Record, Line]] = {}
    earlier: list[Line] = []
    values = bytearray()  # of the lines in ``earlier``, one a line
    for record in records:
        for agent in record.agents:
            name = agent.value.lower()
            if name in named:
                yield _named_again(agent, record, *named[name])
                continue
            named[name] = (record, agent)
            is_compared = b"*" not in name and len(values) < _COMPARED_BYTES
            at = values.find(name) if is_compared and NAME_TOKEN.fullmatch(name) else -1
            if at >= 0:
                other = earlier[values.count(b"\n", 0, at)]
                said = "{} obeys the record of {} at line {}"
                texts = (agent.value, other.value, other.number)
                yield Seen("K026", agent.number, 1, said, texts)
        earlier += record.agents
        values += b"".join(agent.value.lower() + b"\n" for agent in record.agents)


def _named_again(agent: Line, record: Record, earlier: Record, first: Line) -> Seen:
    said = "{} has a record already, at line {}"
    if record is earlier:
        code, said = "K025", "{} is named already, at line {}"
    else:
        code = "K024" if agent.value == b"*" else "K023"
    return Seen(code, agent.number, 1, said, (agent.value, first.number))


class _Shadow(NamedTuple):
    """A rule without effect, because an earlier rule matches all its paths."""

    rule: Line
    by: Line


def seen_in_order(records: list[Record]) -> Iterator[Seen]:
    """Yield findings about rules that have no effect because of an earlier rule."""
    # RFC 9309 joins the records of a robot. So the rules of the whole file must be alike.
    rules = [rule for record in records for _, rule in instructions(record)]
    # By RFC 9309, "%3F" differs from the "?" of a query.
    special = (b"*", b"$", b"%3f")
    is_special = any(sign in rule.value.lower() for rule in rules for sign in special)
    is_alike = len({rule.field for rule in rules}) == 1 and not is_special
    for record in records:
        yield from _seen_in_order(record, is_alike=is_alike)


def _seen_in_order(record: Record, *, is_alike: bool) -> Iterator[Seen]:
    shadows = sorted(_shadows(record), key=lambda shadow: shadow.rule.number)
    opposed = [shadow for shadow in shadows if shadow.rule.field != shadow.by.field]
    opening = {s.by for s in opposed if s.by.field == b"allow" and s.by.value == b"/"}
    for rule in opening:
        hidden = [shadow.rule.number for shadow in opposed if shadow.by is rule]
        said = "later Disallow lines without effect: {}, the first is line {}"
        yield Seen("K049", rule.number, 1, said, (len(hidden), hidden[0]))
    for rule, by in shadows:
        if by not in opening:
            if rule.field == by.field and not is_alike:
                continue  # by RFC 9309, an Allow rule can still override a Disallow, and vice versa
            code = "K048" if rule.field == by.field else "K047"
            said = "{} has no effect after line {}: {}"
            yield Seen(code, rule.number, 1, said, (rule.value, by.number, by.value))


def _shadows(record: Record) -> Iterator[_Shadow]:
    """Yield the rules with a path that begins with the path of an earlier rule.

    The rules are sorted by path, so longer paths come directly after their beginnings. The rules on
    the stack have the beginnings of the current path. So the time after the sort is linear
    (section 6).
    """
    around: list[tuple[str, Line]] = []  # the rule on top is the earliest in the file
    for path, rule in sorted(instructions(record), key=itemgetter(0)):
        while around and not path.startswith(around[-1][0]):
            around.pop()
        if around and around[-1][1].number < rule.number:
            yield _Shadow(rule, around[-1][1])
        else:
            around.append((path, rule))


def instructions(record: Record) -> Iterator[tuple[str, Line]]:
    """Yield the Allow and Disallow lines of a record in file order (C1), with their paths.

    A line without a path matches no URL and is left out (C2).
    """
    for rule in record.rules:
        if rule.value and rule.field in (b"disallow", b"allow"):
            yield unescape(rule.value.decode("latin-1")), rule
