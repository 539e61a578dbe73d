"""3.2, 3.3: where a /robots.txt leaves the draft, or will be read in two ways.

``check`` tells what the author of a file should know: lines that do not say
what they seem to say, and lines that a reader of RFC 9309 takes otherwise. What
the file means is asked of ``robotstxt``, which also decides in a crawl.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from scrapy_koster.checker.checks import CHECKS, Check
from scrapy_koster.protocol.nametoken import TOKEN
from scrapy_koster.protocol.path import unescape
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.robotstxt import (
    Line,
    Record,
    instructions,
    lines,
    parse,
    whole_lines,
)

FINDINGS_LISTED = 20
"""Findings of one code that are listed unless all are asked for."""

MAX_BYTES = 512_000
"""The default of KOSTER_MAX_BYTES: what is read of a file (section 6)."""

_LINE_MAX = 2083
_SHOWN = 60
_NAMES_COMPARED = 1000
"""Section 6: a limit on what is spent on looking for names within names."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One place in a file that the author should know of."""

    line: int
    """1-based."""
    column: int
    """1-based, in octets; a byte order mark does not count."""
    check: Check
    message: str
    """One printable line."""
    more: int = 0
    """On the last one listed of a code: how many further ones there are."""


class _Seen(NamedTuple):
    """A finding whose text is not made yet: of most, in a hostile file, it never is."""

    code: str
    line: int
    column: int
    said: str
    texts: tuple[bytes | int, ...] = ()


class _Source(NamedTuple):
    """A line of the file, taken apart as ``robotstxt.parse`` does."""

    number: int
    text: bytes
    field: bytes
    """In lower case."""
    colon: int
    """Where the colon is, -1 where there is none."""
    value: bytes
    said_end: int
    """Where the line or its instruction ends, and a comment begins."""

    @property
    def column(self) -> int:
        return len(self.text) - len(self.text.lstrip(_SPACE)) + 1

    @property
    def value_column(self) -> int:
        return self.text.find(self.value, self.colon + 1) + 1


_SPACE = b" \t"
_AGENT = b"user-agent"
_RULES = (b"disallow", b"allow")
_TOKEN = re.compile(TOKEN.encode())


def check(
    body: bytes, limit: int | None = FINDINGS_LISTED, *, max_bytes: int = MAX_BYTES
) -> list[Finding]:
    """Return the findings of a file, in the order of its lines. Never raises.

    At most *limit* of one code are listed, all of them where it is None. A crawl
    reads whole lines up to *max_bytes*, and so does this.
    """
    listed: dict[str, list[_Seen]] = {}
    more: dict[str, int] = {}
    for seen in _seen(body, max_bytes):
        same = listed.setdefault(seen.code, [])
        if limit is None or len(same) < limit:
            same.append(seen)
        else:
            more[seen.code] = more.get(seen.code, 0) + 1
    findings = [
        _finding(seen, more.get(code, 0) if seen is same[-1] else 0)
        for code, same in listed.items()
        for seen in same
    ]
    return sorted(findings, key=lambda f: (f.line, f.column, f.check.code))


def _finding(seen: _Seen, more: int) -> Finding:
    said = seen.said.format(*map(_text, seen.texts))
    return Finding(seen.line, seen.column, CHECKS[seen.code], said, more)


def _text(text: bytes | int) -> str:
    if isinstance(text, int):
        return str(text)
    # Four octets are a character at most, so that what is cut here is not shown.
    start = text[: 4 * _SHOWN + 4].decode(errors="backslashreplace")
    return f"'{printable(start, _SHOWN)}'"


def _seen(body: bytes, max_bytes: int) -> Iterator[_Seen]:
    """Yield what is seen; of one code, in the order of the lines."""
    read = whole_lines(body, max_bytes)
    numbered = list(enumerate(lines(read), 1))
    sources = [_taken_apart(number, text) for number, text in numbered if text.strip(_SPACE)]
    is_html = _is_html(read)
    if is_html:
        yield _Seen("K002", 1, 1, "this is an HTML page")
    if not any(source.field in (_AGENT, *_RULES) for source in sources):
        if is_html:
            return
        if _is_wide(body):
            yield _Seen("K003", 1, 1, "this is UTF-16 or UTF-32: no line can be read")
            return
    if body.startswith(b"\xef\xbb\xbf"):
        yield _Seen("K004", 1, 1, "the file begins with a byte order mark")
    if len(read) < len(body):
        said = "the {} octets from here on are not read: a crawl reads {} (KOSTER_MAX_BYTES)"
        yield _Seen("K005", len(numbered), 1, said, (len(body) - len(read), max_bytes))
    elif not any(source.text[: source.said_end].strip(_SPACE) for source in sources):
        yield _Seen("K001", 1, 1, "the file says nothing: it restricts nobody")
    for source in sources:
        yield from _seen_in_line(source)
    records = parse(read)
    blanks = [number for number, text in numbered if not text.strip(_SPACE)]
    yield from _seen_outside(sources, records)
    yield from _seen_between(records, blanks)
    yield from _seen_in_names(records)
    for record in records:
        yield from _seen_in_order(record)


_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


def _is_wide(body: bytes) -> bool:
    """Whether a file is UTF-16 or UTF-32, by its mark or by its zeros."""
    start = body[:1000]
    return start.startswith(_WIDE_MARKS) or 3 * start.count(0) > len(start)


_HTML = re.compile(
    rb"\s*<(?:!--|(?:!doctype|\?xml|html|head|title|meta|link|script|style|body|div|h1|p)\b)",
    re.IGNORECASE,
)


def _is_html(body: bytes) -> bool:
    return _HTML.match(body.removeprefix(b"\xef\xbb\xbf")[:1000]) is not None


def _taken_apart(number: int, text: bytes) -> _Source:
    said = text.partition(b"#")[0]
    field, colon, value = said.partition(b":")
    if not colon:
        return _Source(number, text, b"", -1, b"", len(said))
    field_end = len(field)
    field = field.strip(_SPACE).lower()
    return _Source(number, text, field, field_end, value.strip(_SPACE), len(said))


def _seen_in_line(source: _Source) -> Iterator[_Seen]:
    """Yield what one line shows by itself."""
    if len(source.text) > _LINE_MAX:
        said = "the line has {} octets"
        yield _Seen("K006", source.number, _LINE_MAX + 1, said, (len(source.text),))
    if _ODD.search(source.text):
        yield from _seen_in_octets(source)
    if source.colon < 0:
        if source.text[: source.said_end].strip(_SPACE):
            yield _no_colon(source)
        return
    if source.text[source.colon - 1 : source.colon] in (b" ", b"\t") and source.field:
        yield _Seen("K014", source.number, source.colon, "space before the colon")
    if source.field == _AGENT:
        yield from _seen_in_agent(source)
    elif source.field in _RULES:
        yield from _seen_in_rule(source)
    else:
        yield from _seen_in_field(source)


_ODD = re.compile(rb"[^\t\x20-\x7e]")
# B2: what str.splitlines() takes for a line end, in latin-1 octets and in UTF-8.
_SEPARATOR = re.compile(rb"[\x0b\x0c\x1c-\x1e]|\xc2\x85|\xe2\x80[\xa8\xa9]")
# 3.3: CTL = octets 0 - 31 and DEL, but for HT, CR, LF and those above.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1b\x1f\x7f]")
_NON_ASCII = re.compile(rb"[\x80-\xff]")


def _seen_in_octets(source: _Source) -> Iterator[_Seen]:
    """Yield the odd octets: controls anywhere, others where they are compared.

    The comments of real files are in all languages: nothing is at stake there.
    """
    number, text = source.number, source.text
    if found := _SEPARATOR.search(text):
        said = "{} ends the line for some readers"
        yield _Seen("K015", number, found.start() + 1, said, (found[0],))
    if found := _CONTROL.search(text):
        said = "control character {}"
        yield _Seen("K016", number, found.start() + 1, said, (found[0],))
    if text.isascii():
        return
    if found := _NON_ASCII.search(text, 0, source.said_end):
        code, said = "K017", "not ASCII: {}"
        try:
            text.decode()
        except UnicodeDecodeError:
            code, said = "K018", "not UTF-8: {}"
        shown = text[found.start() : source.said_end].rstrip(_SPACE)
        yield _Seen(code, number, found.start() + 1, said, (shown,))


_WORDS = re.compile(rb"([A-Za-z_-]+)(?:[ \t]+[A-Za-z]+)?")


def _no_colon(source: _Source) -> _Seen:
    said = source.text[: source.said_end].strip(_SPACE)
    if _begins_with_field(said):
        return _Seen("K010", source.number, source.column, "no colon: {}", (said,))
    shown = "neither a field with a value nor a comment: {}"
    return _Seen("K011", source.number, source.column, shown, (said,))


def _begins_with_field(text: bytes) -> bool:
    words = _WORDS.match(text)
    return words is not None and any(_spelt(word) in _SPELT for word in words.group(1, 0))


def _seen_in_field(source: _Source) -> Iterator[_Seen]:
    number, column, field = source.number, source.column, source.field
    meant, is_token = _meant(field), _TOKEN.fullmatch(field)
    if not is_token and _spelt(field) not in _SPELT and _begins_with_field(field):
        said = "no colon after the field: {}"
        yield _Seen("K010", number, column, said, (source.text.strip(_SPACE),))
    elif meant:
        yield _Seen("K012", number, column, "{} is not {}", (field, meant))
    elif not is_token:
        yield _Seen("K013", number, column, "not a token before the colon: {}", (field,))


_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_NOT_LETTERS = bytes(set(range(256)) - set(_LETTERS))
_DOUBLED = re.compile(rb"(.)\1+")


def _spelt(word: bytes) -> bytes:
    """Return the letters of a word in lower case, each run of one as one."""
    return _DOUBLED.sub(rb"\1", word.lower().translate(None, _NOT_LETTERS))


def _near(word: bytes) -> Iterator[bytes]:
    """Yield what one slip of the hand makes of *word*, and the word."""
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        yield head + tail[1:]
        yield head + tail[1:2] + tail[:1] + tail[2:]
        for letter in _LETTERS:
            yield head + bytes([letter]) + tail[1:]
            yield head + bytes([letter]) + tail


_SPELT = {_spelt(name): name for name in (b"Allow", b"Disallow", b"User-agent")}
_MEANT = {slip: name for word, name in _SPELT.items() for slip in _near(word)}
_FIELD_MAX = 20


def _meant(field: bytes) -> bytes | None:
    """B9: return the field that *field* was likely meant to be."""
    return _MEANT.get(_spelt(field)) if len(field) <= _FIELD_MAX else None


def _seen_in_agent(source: _Source) -> Iterator[_Seen]:
    number, value = source.number, source.value
    if not value:
        said = "no robot is named"
        yield _Seen("K020", number, source.column, said)
    elif b"*" in value and value != b"*":
        said = "{} is not the record for all others"
        yield _Seen("K021", number, source.value_column, said, (value,))
    elif not _TOKEN.fullmatch(value):
        said = "{} is not one name token"
        yield _Seen("K022", number, source.value_column, said, (value,))


_URL = re.compile(rb"https?://", re.IGNORECASE)
_IN_PATH = (
    ("K042", re.compile(rb"[*]"), "'*' is no wildcard: {}"),
    ("K043", re.compile(rb"[$]"), "'$' is not the end of the path: {}"),
    ("K044", re.compile(rb"%(?![0-9A-Fa-f]{2})"), "no escape: {}"),
    ("K051", re.compile(rb"[ \t]"), "a space in the path {}"),
)


def _seen_in_rule(source: _Source) -> Iterator[_Seen]:
    """Yield what the path of an Allow or Disallow line shows by itself."""
    number, path, start = source.number, source.value, source.value_column
    if not path:
        if source.field == b"allow":
            yield _Seen("K050", number, source.column, "an empty Allow line matches nothing")
        return
    if _URL.match(path):
        yield _Seen("K041", number, start, "a full URL, not a path: {}", (path,))
    elif path[:1] not in (b"/", b"*"):  # a "*" at the start is K042
        yield _Seen("K040", number, start, "no slash before the path {}", (path,))
    for code, sign, said in _IN_PATH:
        if found := sign.search(path):
            yield _Seen(code, number, start + found.start(), said, (path,))
    end = source.said_end
    if end < len(source.text) and source.text[end - 1 : end] not in (b" ", b"\t"):
        yield _Seen("K045", number, end + 1, "the path ends before the '#': {}", (path,))
    if unescape(path.decode("latin-1")) == "/robots.txt":
        yield _Seen("K046", number, start, "/robots.txt is always allowed")


def _seen_outside(sources: list[_Source], records: list[Record]) -> Iterator[_Seen]:
    """Yield the lines that belong to no record."""
    for source in sources:
        if source.field == _AGENT:
            break
        if source.field in _RULES:
            said = "no User-agent line before this rule"
            yield _Seen("K034", source.number, source.column, said)
        elif _TOKEN.fullmatch(source.field):
            said = "{} stands outside of a record"
            yield _Seen("K032", source.number, source.column, said, (source.field,))
    end = records[-1].rules[-1].number if records else 0
    for source in sources:
        if source.field == _AGENT and source.number > end:
            said = "no rule follows: the robots named from here on have no record"
            yield _Seen("K030", source.number, source.column, said)
            return


def _is_rule(line: Line) -> bool:
    return line.field in _RULES


def _seen_between(records: list[Record], blanks: list[int]) -> Iterator[_Seen]:
    """Yield what the blank lines, and the order of fields, show of the records."""
    for record in records:
        yield from _seen_blank(record, blanks)
    for record, following in pairwise(records):
        agent, rule = following.agents[0], record.rules[0]
        if not any(map(_is_rule, record.rules)):
            said = "the robots of the record at line {} are not restricted"
            start = record.agents[0].number
            yield _Seen("K033", rule.number, 1, said, (start,))
        elif not _blank_between(record.rules[-1], agent, blanks):
            yield _Seen("K035", agent.number, 1, "no blank line before the record")


def _blank_between(line: Line, following: Line, blanks: list[int]) -> int | None:
    at = bisect_left(blanks, line.number)
    blank = blanks[at] if at < len(blanks) else following.number
    return blank if blank < following.number else None


def _seen_blank(record: Record, blanks: list[int]) -> Iterator[_Seen]:
    for line, following in pairwise((*record.agents, *record.rules)):
        blank = _blank_between(line, following, blanks)
        if blank is None:
            continue
        if _is_rule(following) or following.field == _AGENT:
            said = "the record at line {} goes on below"
            yield _Seen("K031", blank, 1, said, (record.agents[0].number,))
        else:
            said = "{} stands behind the blank line that ends a record"
            yield _Seen("K032", following.number, 1, said, (following.field,))


def _seen_in_names(records: list[Record]) -> Iterator[_Seen]:
    """Yield the User-agent lines whose robot obeys an earlier record."""
    named: dict[bytes, tuple[Record, Line]] = {}
    within = _Names()
    for record in records:
        for agent in record.agents:
            name = agent.value.lower()
            if name in named:
                yield _named_again(agent, record, *named[name])
                continue
            named[name] = (record, agent)
            if (other := within.holder(name)) is not None:
                said = "{} obeys the record of {} at line {}"
                texts = (agent.value, other.value, other.number)
                yield _Seen("K026", agent.number, 1, said, texts)
        within.add(record.agents)


def _named_again(agent: Line, record: Record, earlier: Record, first: Line) -> _Seen:
    said = "{} has a record already, at line {}"
    if record is earlier:
        code, said = "K025", "{} is named already, at line {}"
    else:
        code = "K024" if agent.value == b"*" else "K023"
    return _Seen(code, agent.number, 1, said, (agent.value, first.number))


class _Names:
    """The User-agent values of the records so far, to look for a name within."""

    def __init__(self) -> None:
        self._text = b""
        self._starts: list[int] = []
        self._agents: list[Line] = []

    def add(self, agents: Iterable[Line]) -> None:
        for agent in agents:
            if len(self._agents) == _NAMES_COMPARED:
                return
            self._starts.append(len(self._text))
            self._agents.append(agent)
            self._text += agent.value.lower() + b"\n"

    def holder(self, name: bytes) -> Line | None:
        """Return the first line whose value contains the name token *name*."""
        if len(self._agents) == _NAMES_COMPARED or not _TOKEN.fullmatch(name):
            return None
        at = -1 if b"*" in name else self._text.find(name)
        return None if at < 0 else self._agents[bisect_left(self._starts, at + 1) - 1]


class _Shadow(NamedTuple):
    """A rule that decides nothing, as an earlier one matches all that it does."""

    order: int
    rule: Line
    by: Line


def _seen_in_order(record: Record) -> Iterator[_Seen]:
    """Yield the rules that an earlier rule of the record takes everything from."""
    shadows = sorted(_shadows(record))
    opposed = [shadow for shadow in shadows if shadow.rule.field != shadow.by.field]
    opening = {s.by for s in opposed if s.by.field == b"allow" and s.by.value == b"/"}
    for rule in opening:
        hidden = [shadow.rule.number for shadow in opposed if shadow.by is rule]
        said = "Disallow lines behind this one that match nothing: {}, from line {} on"
        yield _Seen("K049", rule.number, 1, said, (len(hidden), hidden[0]))
    for _, rule, by in shadows:
        if by not in opening:
            code = "K048" if rule.field == by.field else "K047"
            said = "all that {} matches, line {} matches first: {}"
            yield _Seen(code, rule.number, 1, said, (rule.value, by.number, by.value))


def _shadows(record: Record) -> Iterator[_Shadow]:
    """Yield the rules of which an earlier one is a prefix.

    In sorted order all that begins with a path follows on it, so that the
    prefixes of a path are on one stack. That is linear where a comparison of
    each rule with each other is not (section 6).
    """
    ordered = sorted((path, order, rule) for order, (path, rule) in enumerate(instructions(record)))
    around: list[tuple[str, int, Line]] = []  # each with the first of all below it
    for path, order, rule in ordered:
        while around and not path.startswith(around[-1][0]):
            around.pop()
        if around and around[-1][1] < order:
            yield _Shadow(order, rule, around[-1][2])
        else:
            around.append((path, order, rule))
