"""Why the draft allows a URL that RFC 9309 forbids, and which files can have such URLs.

Most files cannot. Without wildcards each standard turns the rules of a robot into prefixes that
flip the answer (``precedence``), so both have the same answer for all paths between two of them.
It is enough to compare the answers for the prefixes themselves, once a file.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from scrapy_koster.protocol.line import Line, with_line_feeds
from scrapy_koster.protocol.path import origin_and_path, unescape, unescape_by_rfc9309
from scrapy_koster.protocol.pattern import is_special
from scrapy_koster.protocol.precedence import Paths, flatten, starts_with_odd
from scrapy_koster.protocol.rewriting import sent_as
from scrapy_koster.protocol.rfc9309 import Rfc9309, group_rules, longest_first
from scrapy_koster.protocol.robotstxt import RobotsTxt, obeyed_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy_koster.protocol.pattern import Rule
    from scrapy_koster.protocol.ruling import Ruling

# Of paths that are compared with each other: so many take less time than they may save.
_PAIRS_MOST = 1000


class Cause(Enum):
    """Why RFC 9309 forbids a URL that the draft allows: the first that holds."""

    words: str
    """As the log and the report explain it."""

    def __new__(cls, value: str, words: str) -> Cause:  # noqa: PYI034
        """*value* is the name in stats and JSON."""
        member = object.__new__(cls)
        member._value_ = value
        member.words = words
        return member

    NAMES = "names", "the two standards obey records for different names"
    ENCODING = "encoding", "the two standards compare escapes such as %2F differently"
    WILDCARDS = "wildcards", "the rule has a * or $, which the draft takes literally"
    AGENTS = "agents", "another field splits the User-agent lines of the group"
    RECORDS = "records", "the rule is in a later record for the same name, which the draft ignores"
    ORDER = "order", "the draft uses the first rule that matches, RFC 9309 the longest"
    OTHER = "other", "the two standards differ"


class Hazard(NamedTuple):
    """A URL that the draft allows and RFC 9309 forbids."""

    cause: Cause
    draft: Ruling
    rfc9309: Ruling


class _Obeyed(NamedTuple):
    """The record that the draft obeys."""

    is_default: bool
    """Whether it is the one for ``*``, of a robot that has none with its name."""
    name: str
    """The name that one of its lines is; "" where they only contain it, or say ``*``."""
    last: int
    """The number of its last line."""


_NOTHING = _Obeyed(is_default=False, name="", last=0)


class Watch:
    """Finds the hazards of a file for one robot."""

    __slots__ = ("_draft", "_is_rare", "_obeyed", "_rfc9309", "_robot")

    def __init__(
        self, draft: RobotsTxt, rfc9309: Rfc9309, robot: str | bytes, *, is_rare: bool = False
    ) -> None:
        """*is_rare*: only a URL with ``%``, ``*`` or ``$`` can be a hazard."""
        self._draft = draft
        self._rfc9309 = rfc9309
        self._robot = robot
        self._is_rare = is_rare
        self._obeyed: _Obeyed | None = None

    def hazard(self, url: str, *, is_plain: bool = False) -> Hazard | None:
        """Return the hazard of *url*, which the draft allows; None if RFC 9309 allows it, too.

        *is_plain*: it has one spelling (``rewriting``).
        """
        if self._is_rare and not ("%" in url or "*" in url or "$" in url):
            return None
        for spelling in (url,) if is_plain else sent_as(url):
            if not self._rfc9309.allowed(spelling, self._robot):
                return self._found(spelling)
        return None

    def _found(self, url: str) -> Hazard:
        draft = self._draft.ruling(url, self._robot)
        rfc9309 = self._rfc9309.ruling(url, self._robot)
        if self._obeyed is None:
            self._obeyed = _obeyed(self._draft, self._robot)
        name = self._rfc9309.name_of(self._robot)
        return Hazard(_cause(url, name, self._obeyed, draft, rfc9309), draft, rfc9309)


def watch_of(body: bytes, draft: RobotsTxt, robot: str | bytes) -> Watch | None:
    """Return what finds the hazards of *body* for *robot*, None if there can be none.

    *draft* is *body* as the draft reads it.
    """
    text = with_line_feeds(body)
    rfc9309 = Rfc9309(body)
    theirs = [group_rules(text, name) for name in rfc9309.names(robot)]
    if any(disallows and is_special(path) for rules in theirs for disallows, path in rules):
        return Watch(draft, rfc9309, robot)
    ours = obeyed_rules(text, draft.name_of(robot))
    differing = {path for rules in theirs for path in _differing(ours, rules)}
    if not differing:
        return None
    return Watch(draft, rfc9309, robot, is_rare=all(map(_is_marked, differing)))


def _differing(draft: list[tuple[str, str]], rfc9309: list[Rule]) -> Iterator[str]:
    """Yield paths that the draft allows and RFC 9309 forbids: each stands for what begins with it.

    No Disallow line of *rfc9309* has a wildcard.
    """
    # An Allow line with one makes it forbid less: without it, more is found than there is.
    plain = [rule for rule in rfc9309 if not is_special(rule[1])]
    theirs = longest_first(plain)
    forbidden = {path for disallows, path in theirs if disallows}
    if not forbidden:
        return
    if not _are_all_forbidden(forbidden, draft):
        by_draft, by_rfc9309 = flatten(draft), flatten(theirs)
        if by_draft != by_rfc9309:
            for path in {*by_draft[0], *by_rfc9309[0]}:
                if _forbids(by_rfc9309, path) and not _forbids(by_draft, path):
                    yield path
    if any("?" in path for _, path in draft):
        yield from _differing_by_escapes(flatten(draft))


def _are_all_forbidden(paths: set[str], draft: list[tuple[str, str]]) -> bool:
    """Return whether *draft* forbids all that begins with one of *paths*.

    So it is if it has a Disallow line with each of them, and no Allow line with one that is the
    beginning of it, or begins with it. False also where there are too many to look.
    """
    allowed = tuple([path for disallows, path in draft if not disallows])
    if not paths.issubset([path for disallows, path in draft if disallows]):
        return False
    if len(allowed) * len(paths) > _PAIRS_MOST:
        return False
    begun = tuple(paths)
    return not any(path.startswith(begun) for path in allowed) and not any(
        path.startswith(allowed) for path in paths
    )


def _forbids(paths: Paths, path: str) -> bool:
    return bool(paths[0]) and starts_with_odd(path, *paths)


def _differing_by_escapes(paths: Paths) -> Iterator[str]:
    """Yield the paths from which on an escape may matter, where otherwise both answers are equal.

    The standards take two escapes for different octets: %3F in front of the query, and %2F in
    it. So the path of a rule has to reach a "?", to allow what RFC 9309 does not find there, or
    a "/" behind it, to forbid what the draft does not find there.
    """
    turning, nested = paths
    for path in turning:
        _, mark, query = path.partition("?")
        if mark and ("/" in query or not starts_with_odd(path, turning, nested)):
            yield "%"


def _is_marked(path: str) -> bool:
    return "%" in path or "*" in path or "$" in path


def _obeyed(draft: RobotsTxt, robot: str | bytes) -> _Obeyed:
    record = draft.record(robot)
    if record is None:
        return _NOTHING
    name = draft.name_of(robot)
    agents = [_value(agent).lower() for agent in record.agents]
    is_named = name not in ("", "*") and any(name in agent for agent in agents)
    return _Obeyed(
        is_default=not is_named,
        name=name if is_named and name in agents else "",
        last=record.rules[-1].number,
    )


def _cause(url: str, name: str, obeyed: _Obeyed, draft: Ruling, rfc9309: Ruling) -> Cause:
    """Return the first cause that holds."""
    assert rfc9309.record is not None  # it forbids
    assert rfc9309.rule is not None
    agents = [_value(agent).lower() for agent in rfc9309.record.agents]
    by_name = name == obeyed.name != "" and name in agents
    if not by_name and not (obeyed.is_default and "*" in agents):
        return Cause.NAMES
    deciding = [line for line in (rfc9309.rule, draft.rule) if line]
    if not all(_is_compared_alike(line, url) for line in deciding):
        return Cause.ENCODING
    if any(is_special(_value(line)) for line in deciding):
        return Cause.WILDCARDS
    if rfc9309.rule.number > obeyed.last:
        is_split = rfc9309.record.agents[0].number <= obeyed.last
        return Cause.AGENTS if is_split else Cause.RECORDS
    return Cause.ORDER if draft.rule is not None else Cause.OTHER


def _is_compared_alike(line: Line, url: str) -> bool:
    """Whether both standards find the path of *line*, or neither does, at the start of *url*."""
    path, sent = _value(line), origin_and_path(url)[1]
    if is_special(path):
        return True
    by_draft = unescape(sent).startswith(unescape(path))
    return by_draft is unescape_by_rfc9309(sent).startswith(unescape_by_rfc9309(path))


def _value(line: Line) -> str:
    return line.value.decode("latin-1")
