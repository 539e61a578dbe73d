"""Whether a robot may access a URL, and which line decides: by the draft, RFC 9309, or both."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from scrapy_koster.protocol.line import (
    AGENT_LINE,
    CONTENT_USAGE,
    LINE,
    OTHER_LINE,
    PATH_LINE,
    RULE_LINE,
    USAGE_LINE,
    Line,
    lowered,
    names_any,
    with_line_feeds,
)
from scrapy_koster.protocol.matching import Matching, MatchingOfRfc9309, is_special
from scrapy_koster.protocol.misspelling import as_written, corrected
from scrapy_koster.protocol.nametoken import names_of, other_tokens
from scrapy_koster.protocol.path import origin_and_path
from scrapy_koster.protocol.records import (
    Group,
    Record,
    groups_of_rfc9309,
    heading,
    record_of_draft,
    records,
)
from scrapy_koster.protocol.rewriting import sent_as
from scrapy_koster.protocol.rules import Rules
from scrapy_koster.protocol.ruling import Ruling, Standard

_T = TypeVar("_T")

_ROBOTS_KEPT = 8
_OTHERS = (b"crawl-delay", b"request-rate", b"content-signal")


def kept(found: dict[str | bytes, _T], robot: str | bytes, make: Callable[[], _T]) -> _T:
    """Return the value of *robot* in *found*. If missing, call *make* and keep the result.

    A ninth robot clears *found*, so a crawl with many User-agent headers uses little memory.
    """
    if robot not in found:
        if len(found) >= _ROBOTS_KEPT:
            found.clear()
        found[robot] = make()
    return found[robot]


class Reading:
    """A /robots.txt file, read by the draft. Subclasses read the file by another standard.

    The argument *robot* is a name token, several names (``names_of``) or a whole User-agent header
    (A10). The rules of at most eight robots are kept.
    """

    __slots__ = ("_body", "_by_rfc9309", "_rules")

    standard = Standard.DRAFT
    _find = staticmethod(record_of_draft)
    """Returns the records for a name, and the records for "*"."""
    _matching = Matching()
    _rule_line = LINE  # 3.3: ruleline = (disallowline | allowline | extension)
    """Pattern of a line that ends the User-agent lines of a record."""
    _usage_line = _other_line = LINE
    """Replace ``_rule_line`` for Content-Usage (draft-ietf-aipref-attach, 3), and for other fields.

    By RFC 9309, a field that is no rule belongs to the User-agent lines directly above it.
    """
    _sections = ("3.2.1", "3.2.2", "3.2.2")
    """The sections for a decision without a record, by a record, and by a rule with "*" or "$"."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._rules: dict[str | bytes, list[Rules]] = {}
        self._by_rfc9309: Reading | None = None

    @property
    def _texts(self) -> tuple[str, str]:
        """The text to search, and a text of equal length whose line feeds number the lines."""
        text = with_line_feeds(self._body)
        return text, text

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Whether the robot *user_agent* may access *url*. The names are those of Scrapy."""
        path = origin_and_path(url)[1]
        for rules in self.rules(user_agent):
            compared = rules.matching.unescape(path)
            if rules.disallow(compared):
                # "The /robots.txt URL is always allowed"
                return compared == "/robots.txt"
        return True

    def rules(self, robot: str | bytes) -> list[Rules]:
        """Return the lists of rules for *robot*. A URL must be allowed by every list."""
        return kept(self._rules, robot, lambda: self._read(robot))

    def ruling(self, url: str | bytes, robot: str | bytes) -> Ruling:
        """Return the decision of ``allowed``, with the deciding line."""
        path = origin_and_path(url)[1]
        rulings = [self._ruling(rules, path) for rules in self.rules(robot)]
        ruling = min(rulings, key=lambda each: (each.allowed, each.record is None))
        return replace(ruling, name=self.name_of(robot)) if len(names_of(robot)) > 1 else ruling

    def _ruling(self, rules: Rules, path: str) -> Ruling:
        (text, ends), groups, path = self._texts, rules.groups, rules.matching.unescape(path)
        # "The /robots.txt URL is always allowed". "If no match is found, the default assumption is
        # that the URL is allowed." RFC 9309 says the same.
        place = -1 if path == "/robots.txt" else rules.deciding(path)
        rule, section = None, self._sections[bool(groups)]
        if place >= 0:
            lines = ((g, line) for g in groups for line in PATH_LINE.finditer(text, g.rules, g.end))
            group, line = next(islice(lines, place, None))
            groups, number = [group], ends.count("\n", 0, line.start() + 1)
            field = b"disallow" if line[1] else b"allow"
            rule = Line(number, field, line[2].encode("latin-1"))
            section = self._sections[1 + is_special(line[2])]
        return Ruling(
            allowed=rule is None or rule.field == b"allow",
            section=section,
            record=heading(text, groups[0], ends) if groups else None,
            rule=rule,
            standard=self.standard,
        )

    def allowed_by_rfc9309(self, url: str, robot: str | bytes) -> Ruling | None:
        """Return the ruling of RFC 9309 on a forbidden *url* if RFC 9309 allows it, or None.

        RFC 9309 must allow all spellings in which *url* can be sent.
        """
        other = self._by_rfc9309 = self._by_rfc9309 or Rfc9309(self._body)
        is_allowed = all(other.allowed(each, robot) for each in sent_as(url))
        return other.ruling(url, robot) if is_allowed else None

    def record(self, robot: str | bytes) -> Record | None:
        """Return the first record that *robot* must obey, or None."""
        return next(iter(self.records(robot)), None)

    def records(self, robot: str | bytes) -> list[Record]:
        """Return the records that *robot* must obey. ``Strictest`` returns only the draft's."""
        found = {group for name in self.names(robot) for group in self._groups(name)}
        text, ends = self._texts
        # A delay between the User-agent lines of a group is for the robots before it only.
        own = set(self.lines(robot, *_OTHERS))
        return [
            Record(agents, [each for each in rules if each.field not in _OTHERS or each in own])
            for agents, rules in records(text, sorted(found), ends)
        ]

    def lines(self, robot: str | bytes, /, *fields: bytes) -> list[Line]:
        """Return the lines with one of *fields* that *robot* obeys, in file order.

        *fields* are in lower case.
        """
        return sorted({line for lines in self.lines_apart(robot, *fields) for line in lines})

    def lines_apart(self, robot: str | bytes, /, *fields: bytes) -> list[list[Line]]:
        """Return a list of lines per standard and name of the robot. ``lines`` joins these lists.

        A name has no list if the file has no record for the name or for "*".
        """
        if not names_any(self._body, fields):
            return []
        text, ends = self._texts
        ended_by = {field: self._ended_by(field) for field in fields}
        apart = []
        for name in self.names(robot):
            found = {end: self._groups(name, end) for end in ended_by.values()}
            if any(found.values()):
                read = ((end, each) for end in found for each in records(text, found[end], ends))
                lines = ((end, rule) for end, each in read for rule in each.rules)
                apart.append([rule for end, rule in lines if ended_by.get(rule.field) is end])
        return apart

    def _ended_by(self, field: bytes) -> re.Pattern[str]:
        """Return the pattern of lines that end the User-agent lines, when *field* is read."""
        if field in (b"allow", b"disallow"):
            return self._rule_line
        return self._usage_line if field == CONTENT_USAGE else self._other_line

    def name_of(self, robot: str | bytes) -> str:
        """Return the name by which *robot* finds its record.

        Of several names, this is the first with a record, or the first if no name has a record.
        """
        names = names_of(robot)
        if len(names) == 1:
            return names[0]
        text, _ = self._texts
        named = (name for name in names if self._find(text, name, self._rule_line)[0])
        return next(named, names[0])

    def names(self, robot: str | bytes) -> list[str]:
        """Return the names whose records *robot* obeys, in lower case."""
        return [self.name_of(robot)]

    def _read(self, robot: str | bytes) -> list[Rules]:
        text, _ = self._texts
        found = [self._find(text, name, self._rule_line) for name in self.names(robot)]
        if any(named for named, _ in found):
            return [Rules(text, named or default, self._matching) for named, default in found]
        # Robots without a record of their own share the rules for "*".
        return kept(self._rules, "*", lambda: [Rules(text, found[0][1], self._matching)])

    def _groups(self, name: str, rule_line: re.Pattern[str] | None = None) -> list[Group]:
        named, default = self._find(self._texts[0], name, rule_line or self._rule_line)
        return named or default


class RobotsTxt(Reading):
    """A /robots.txt file, read by the draft."""

    __slots__ = ()


class Rfc9309(Reading):
    """A /robots.txt file, read by RFC 9309.

    The lines are the same as in the draft (line.py). If RFC 9309 is silent, docs/semantics.md
    decides for both standards. Misspelt fields and lines without a colon are not read.
    """

    __slots__ = ()

    standard = Standard.RFC_9309
    _find = staticmethod(groups_of_rfc9309)
    _matching = MatchingOfRfc9309()
    _rule_line, _usage_line, _other_line = RULE_LINE, USAGE_LINE, OTHER_LINE
    _sections = ("2.2.1", "2.2.2", "2.2.3")

    def allowed_by_rfc9309(self, url: str, robot: str | bytes) -> None:
        """Return None: this reading forbids no URL that RFC 9309 allows."""

    def names(self, robot: str | bytes) -> list[str]:
        """Return the names whose groups *robot* obeys, in lower case."""
        # Any token of a header may be the product token. So the groups for the other tokens must
        # allow a URL, too: these groups can only forbid more.
        names = [self.name_of(robot)]
        if others := other_tokens(robot):
            agents = AGENT_LINE.findall(lowered(self._texts[0]))
            names += [agent for agent in dict.fromkeys(agents) if agent in others]
        return names


class Corrected(Rfc9309):
    """A ``corrected`` or ``unhidden`` file, read by RFC 9309, with the original line numbers."""

    __slots__ = ("_written",)

    def __init__(self, written: bytes, right: bytes) -> None:
        super().__init__(right)
        self._written = written

    @property
    def _texts(self) -> tuple[str, str]:
        # Rules from one line of the original file are separated by CR (``unhidden``).
        ends = "\n" + self._body.decode("latin-1")
        return ends.replace("\r", "\n"), ends

    def ruling(self, url: str | bytes, robot: str | bytes) -> Ruling:
        """Return the decision of ``allowed``, with the deciding line ``as_written`` in the file."""
        ruling = super().ruling(url, robot)
        rule = ruling.rule and as_written(self._written, ruling.rule)
        return replace(ruling, rule=rule, is_misspelt=True)


class Strictest(Reading):
    """A /robots.txt file, read by both standards, and with its hidden and misspelt lines.

    A URL is forbidden if any reading forbids the URL: the draft, RFC 9309, or RFC 9309 after the
    correction of hidden and misspelt lines, if the file has any.
    """

    __slots__ = ("_readings",)

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self._by_rfc9309 = Rfc9309(body)
        self._readings: list[Reading] = [RobotsTxt(body), self._by_rfc9309]
        if (right := corrected(body)) is not None:
            self._readings.append(Corrected(body, right))

    def ruling(self, url: str | bytes, robot: str | bytes) -> Ruling:
        """Return the decision of ``allowed``, with the deciding line and standard.

        If the draft forbids the URL, return the ruling of the draft. ``also`` is then the ruling of
        RFC 9309, if that forbids the URL, too. If the draft allows the URL, return the first
        forbidding ruling: of RFC 9309, or of the corrected file. If there is no forbidding ruling,
        return the ruling of the draft.
        """
        draft, rfc9309, *misspelt = [each.ruling(url, robot) for each in self._readings]
        if not draft.allowed:
            return draft if rfc9309.allowed else replace(draft, also=rfc9309)
        return next((each for each in (rfc9309, *misspelt) if not each.allowed), draft)

    def record(self, robot: str | bytes) -> Record | None:
        """Return the first record for *robot* by the draft, or else by RFC 9309, or None."""
        return super().record(robot) or self._readings[1].record(robot)

    def lines_apart(self, robot: str | bytes, /, *fields: bytes) -> list[list[Line]]:
        """Return the lists of all readings."""
        return [apart for each in self._readings for apart in each.lines_apart(robot, *fields)]

    def _read(self, robot: str | bytes) -> list[Rules]:
        return [rules for each in self._readings for rules in each.rules(robot)]
