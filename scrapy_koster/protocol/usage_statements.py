"""The statements of preferences about a page: in its robots.txt, its headers and its META tags.

Content-Usage is defined by "Associating AI Usage Preferences with Content in HTTP"
(draft-ietf-aipref-attach, called attach here), Content-Signal by contentsignals.org, License by
RSL 1.0. For the 1996 draft these lines are extensions (3.2). Cloudflare sends Content-Signal as a
header, too ("Markdown for Agents"). Sites also have it in META tags, which no text defines.

tdm-reservation and tdm-policy are defined by the TDM Reservation Protocol (a W3C Community Group
Report of 2024). The words "noai" and "noimageai" of the robots META tag, of X-Robots-Tag and of
Robots-Tag are in no standard.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, takewhile
from typing import NamedTuple

from scrapy_koster.protocol.line import CONTENT_USAGE, Line, lines_with, names_any
from scrapy_koster.protocol.matching import Matcher, matcher_of, octets_of_rule
from scrapy_koster.protocol.metatags import metas_of_page
from scrapy_koster.protocol.path import origin_and_path, unescape_by_rfc9309
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.reading import Reading, Rfc9309, kept
from scrapy_koster.protocol.robotsmeta import (
    ROBOTS_FIELDS,
    Headers,
    Said,
    names_for,
    said_by_headers,
    said_by_metas,
)
from scrapy_koster.protocol.usage import (
    KNOWN_LABELS,
    NO_IMAGE_AI,
    TDM,
    TRAIN_AI,
    Origin,
    Preference,
    Stated,
    Statement,
    kept_of,
    line_text,
    preferences_in,
)

CONTENT_SIGNAL, LICENSE = b"content-signal", b"license"

_IN_RECORDS = (CONTENT_USAGE, CONTENT_SIGNAL)
"""The fields with a Dictionary: in records, and in headers. Content-Signal is in META tags, too."""
_LICENSES = 10
_LISTED = 100


def split(value: bytes) -> tuple[bytes, bytes]:
    """Return the path of a Content-Usage rule and its statement (attach, 3.2).

    "The first character of the rule value will be "/" if a non-empty path is specified [...] the
    path ends immediately before the first SP or HTAB character." The path is b"" if it is absent.
    """
    if value[:1] != b"/":
        return b"", value
    path = value.replace(b"\t", b" ").partition(b" ")[0]
    return path, value[len(path) :].strip(b" \t")


class _Rule(NamedTuple):
    """A usage line of a record, or of groups that count as one record."""

    octets: int
    """The length of the path in bytes. 0 without a path: it matches every path, and "/" wins."""
    matches: Matcher
    is_signal: bool
    statement: Statement


def _matching(rules: Iterable[_Rule], path: str) -> list[Statement]:
    """Return the statements of the lines that apply to a path."""
    # Attach, 3.1: "using the rule that has the longest matching path prefix [...] counting
    # the number of bytes in the encoded path".
    found = [rule for rule in rules if rule.matches(path)]
    most = max((rule.octets for rule in found), default=0)
    # "Content-Usage rules that have identical paths [...] apply separately".
    return [rule.statement for rule in found if rule.octets == most or rule.is_signal]


class UsageLines:
    """Finds the statements of a robots.txt about a page."""

    def __init__(
        self, body: bytes, parser: object, *, labels: frozenset[str], digest: str | None
    ) -> None:
        """Take the usage lines from the records of *body* that *parser* finds.

        If the parser is not a ``Reading``, the groups of RFC 9309 are used.
        """
        self._body = body
        self._reading = parser if isinstance(parser, Reading) else Rfc9309(body)
        self._labels = labels
        self._digest = digest
        self._rules: dict[str | bytes, list[list[_Rule]]] = {}

    def statements(self, url: str, robot: str | bytes) -> tuple[Statement, ...]:
        """Return the statements about *url*, a page that *robot* may access, in file order.

        Attach, 3: "paths that cannot be crawled have no associated usage preferences".
        """
        path = unescape_by_rfc9309(origin_and_path(url)[1])
        made = kept(
            self._rules, robot, lambda: [[*map(self._rule, each)] for each in self._apart(robot)]
        )
        found = (each for rules in made for each in _matching(rules, path))
        return self._in_order([*found, *self._for_all])

    def listed(self, robot: str | bytes) -> list[Statement]:
        """Return at most a hundred statements for *robot*, about any path."""
        lines = (line for lines in self._apart(robot) for line in lines)
        found = map(self._statement, islice(lines, _LISTED))
        return list(self._in_order([*found, *self._for_all])[:_LISTED])

    def _apart(self, robot: str | bytes) -> list[list[Line]]:
        return self._reading.lines_apart(robot, *_IN_RECORDS)

    @cached_property
    def _for_all(self) -> list[Statement]:
        """Content-Signal lines before any User-agent line, and the first ten License lines."""
        body, licenses = self._body, islice(lines_with(self._body, LICENSE), _LICENSES)
        end = next((line.number for line in lines_with(body, b"user-agent")), math.inf)
        signals = takewhile(lambda line: line.number < end, lines_with(body, CONTENT_SIGNAL))
        return list(map(self._statement, (*signals, *licenses)))

    def _in_order(self, found: Iterable[Statement]) -> tuple[Statement, ...]:
        by_line = {each.line or 0: each for each in found}
        return tuple(kept_of((by_line[number] for number in sorted(by_line)), self._labels))

    def _rule(self, line: Line) -> _Rule:
        is_signal = line.field == CONTENT_SIGNAL
        path = "" if is_signal else split(line.value)[0].decode("latin-1")
        matches = matcher_of(path or "/")
        return _Rule(octets_of_rule(path), matches, is_signal, self._statement(line))

    def _statement(self, line: Line) -> Statement:
        text = line_text(line.field, line.value)
        value = split(line.value)[1] if line.field == CONTENT_USAGE else line.value
        stated, origin = _stated(line.field, value, self._labels), Origin.ROBOTS_TXT
        return Statement(
            origin=origin, text=text, stated=stated, line=line.number, digest=self._digest
        )


def usage_lines(
    body: bytes, parser: object, *, labels: frozenset[str] = KNOWN_LABELS, digest: str | None = None
) -> UsageLines | None:
    """Return the usage lines of *body*, which *parser* has read, or None without a usage field."""
    if not names_any(body, (*_IN_RECORDS, LICENSE)):
        return None
    return UsageLines(body, parser, labels=labels, digest=digest)


# The headers and META tags of a page.

_RESERVATION = b"tdm-reservation"
_IN_HEADERS = (*_IN_RECORDS, _RESERVATION, b"tdm-policy")
_IN_METAS = [name.decode() for name in _IN_HEADERS if name != CONTENT_USAGE]
FIELDS = (*(name.title() for name in _IN_HEADERS), *ROBOTS_FIELDS)
"""The header fields that may state preferences."""

_AI_LABELS = {"noai": TRAIN_AI, "noimageai": NO_IMAGE_AI}
_RESERVED = {b"1": Preference.DISALLOW, b"0": Preference.ALLOW}
_SPACE = "\t\n\f\r "
_TEXT_CHARS = 200


def page_statements(
    headers: Headers, page: bytes, token: str, *, labels: Collection[str] = KNOWN_LABELS
) -> tuple[Statement, ...]:
    """Return the statements for the robot *token* in the headers and META tags of a page.

    *page* is the body, or b"" for a page without META tags.
    """
    metas = list(metas_of_page(page, (*names_for(token), *_IN_METAS)))
    return tuple(kept_of(_of_page(headers, metas, token, labels), labels))


def _of_page(
    headers: Headers, metas: Sequence[tuple[str, str]], token: str, labels: Collection[str]
) -> Iterator[Statement]:
    for field in _IN_HEADERS:
        values = headers.get(field.title(), ())
        # RFC 9651, 4.2: several lines of a field are one list, joined by commas.
        for value in [b", ".join(values)] if values and field in _IN_RECORDS else values:
            yield _statement(Origin.HEADER, line_text(field, value), _stated(field, value, labels))
    yield from _of_words(Origin.HEADER, said_by_headers(headers, token))
    for name, content in metas:
        lower = name.strip(_SPACE).lower()
        if lower in _IN_METAS:
            text = f'name="{lower}" content="{content}"'
            value = " ".join(content.split()).encode()  # an attribute may have line ends
            yield _statement(Origin.META, text, _stated(lower.encode(), value, labels))
    yield from _of_words(Origin.META, said_by_metas(metas, token))


def _of_words(origin: Origin, said: Iterable[Said]) -> Iterator[Statement]:
    for words, text in said:
        for label in (label for word, label in _AI_LABELS.items() if word in words):
            stated = ((label, Preference.DISALLOW),)
            yield _statement(origin, text.removeprefix("META "), stated)


def _stated(field: bytes, value: bytes, labels: Collection[str]) -> Stated:
    """Return the preferences in a Dictionary, or in a tdm-reservation: "1" or "0"."""
    if field in _IN_RECORDS:
        return preferences_in(value, labels, is_signal=field == CONTENT_SIGNAL)
    reserved = _RESERVED.get(value.strip()) if field == _RESERVATION else None
    return ((TDM, reserved),) if reserved else ()


def _statement(origin: Origin, text: str, stated: Stated) -> Statement:
    return Statement(origin=origin, text=printable(text, _TEXT_CHARS), stated=stated)
