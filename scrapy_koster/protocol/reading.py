"""Whether a robot may access a URL, and why: what the readings by both standards share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

from scrapy_koster.protocol.line import Line, names_any, with_line_feeds
from scrapy_koster.protocol.nametoken import names_of
from scrapy_koster.protocol.path import origin_and_path
from scrapy_koster.protocol.precedence import starts_with_odd
from scrapy_koster.protocol.ruling import Ruling, Standard

# As many prefixes, none within another, as are tried at once in less time than
# the one that matters is found.
_FEW = 64

# A crawl that sends many User-agent headers costs no more than this a file.
ROBOTS_KEPT = 8

Decision: TypeAlias = tuple[tuple[str, ...], Callable[[str], bool] | None]
"""What disallows a path that has lost its first slash: one of the prefixes, or the function."""


def by_prefixes(prefixes: tuple[str, ...], nested: dict[str, str]) -> Decision:
    """Return what decides where *prefixes* and *nested* are as ``flatten`` returns them."""
    outer = tuple([prefix for prefix in prefixes if prefix not in nested]) if nested else prefixes
    if len(outer) > _FEW:
        return (), lambda path: starts_with_odd(path, prefixes, nested)
    if nested:
        return (), lambda path: path.startswith(outer) and starts_with_odd(path, prefixes, nested)
    return prefixes, None


def by_any(decisions: Sequence[Decision]) -> Decision:
    """Return what disallows whatever one of *decisions* does."""
    if len(decisions) == 1:
        return decisions[0]
    prefixes = dict.fromkeys(prefix for prefixes, _ in decisions for prefix in prefixes)
    functions = [function for _, function in decisions if function]
    if len(functions) < 2:
        return tuple(prefixes), functions[0] if functions else None
    return tuple(prefixes), lambda path: any(function(path) for function in functions)


class Decider(ABC):
    """Answers whether a robot may access a URL of one site.

    A robot is given by its name token or by a whole User-agent header (A10).
    What decides is kept for each robot that asked.
    """

    __slots__ = ("_decisions", "_origin")

    def __init__(self) -> None:
        self._origin = ""
        self._decisions: dict[str | bytes, Decision] = {}

    def allowed(self, url: str | bytes, robot: str | bytes) -> bool:
        """Whether *robot* may access *url*."""
        try:
            prefixes, disallow = self._decisions[robot]
            # A file speaks for one site: a URL's path is what follows the origin,
            # which is the same as that of the URL before.
            path: Any = url.removeprefix(self._origin)  # type: ignore[arg-type]
        except (KeyError, TypeError):  # a robot not asked of before, a URL of octets
            prefixes, disallow = self.decision(robot)
            path = url
        if path == url or "#" in path or not path.isascii():
            path = self._locate(url)
        elif "%" in path:
            path = self._unescape(path)
        if path.startswith(prefixes) or (disallow is not None and disallow(path)):
            # "The /robots.txt URL is always allowed"
            return bool(path == "robots.txt")
        return True

    def knows(self, robot: str | bytes) -> bool:
        """Whether what decides for *robot* is known already."""
        return robot in self._decisions

    def decision(self, robot: str | bytes) -> Decision:
        """Return what disallows paths for *robot*."""
        if robot not in self._decisions:
            if len(self._decisions) >= ROBOTS_KEPT:
                self._decisions.clear()
            self._decisions[robot] = self._decide(robot)
        return self._decisions[robot]

    @abstractmethod
    def lines_apart(self, robot: str | bytes, /, *fields: bytes) -> list[list[Line]]:
        """Return the lines with one of *fields*, in lower case, that *robot* obeys as rules.

        Apart are those that decide by themselves: of each standard, and of each name of the robot.
        """

    @staticmethod
    @abstractmethod
    def _unescape(path: str) -> str:
        """Return a path as it is compared."""

    @abstractmethod
    def _decide(self, robot: str | bytes) -> Decision:
        """Return what decides for *robot*."""

    def _locate(self, url: str | bytes) -> str:
        """Return the path of *url* without the first slash, and keep its origin."""
        origin, path = origin_and_path(url)
        # Of "http:/path" it would be the start of many other URLs.
        self._origin = f"{origin}/" if "//" in origin else ""
        return self._unescape(path)[1:]


class Record(NamedTuple):
    """3.2: User-agent lines, followed by the instructions to those robots."""

    agents: list[Line]
    rules: list[Line]
    """3.3: ruleline = (disallowline | allowline | extension)."""


@runtime_checkable
class LinesParser(Protocol):
    """A parser that returns the lines of a field."""

    def lines(self, robot: str | bytes, /, *fields: bytes) -> Iterable[Line]:
        """Return the lines with one of *fields*, in lower case, that *robot* obeys."""
        ...


def lines_of(parser: Any, robot: str | bytes, *fields: bytes) -> Iterable[Line] | None:
    """Return the ``lines`` of *parser*, None if it is a class that has no such method.

    Any class may be a parser: this may raise any exception.
    """
    return parser.lines(robot, *fields) if isinstance(parser, LinesParser) else None


class Index(Protocol):
    """Where the rules that a robot must obey stand in a file."""

    def ruling(self, text: str, path: str, /) -> Ruling:
        """Return what *text*, the file, says of *path*, which has lost its first slash."""
        ...


class Reading(Decider):
    """A /robots.txt file as one of the standards reads it.

    What is kept are the octets of the file, for each robot that asked the paths
    that decide, and where a ruling was asked for, where its rules stand.
    """

    __slots__ = ("_body", "_indexes")

    standard: ClassVar[Standard]
    agents_section: ClassVar[str]
    """Which says whose record is obeyed."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._body = body
        self._indexes: dict[str | bytes, list[Index]] = {}

    def ruling(self, url: str | bytes, robot: str | bytes) -> Ruling:
        """Return what ``allowed`` returns, with the line that decided."""
        ruling = self._ruling(url, robot)
        several = len(names_of(robot)) > 1
        return replace(ruling, name=self.name_of(robot)) if several else ruling

    def _ruling(self, url: str | bytes, robot: str | bytes) -> Ruling:
        indexes = self._indexed(robot)
        if not indexes:
            return Ruling(
                allowed=True,
                section=self.agents_section,
                record=None,
                rule=None,
                standard=self.standard,
            )
        path = self._unescape(origin_and_path(url)[1])[1:]
        text = with_line_feeds(self._body)
        rulings = [index.ruling(text, path) for index in indexes]
        return next((ruling for ruling in rulings if not ruling.allowed), rulings[0])

    def lines(self, robot: str | bytes, /, *fields: bytes) -> list[Line]:
        """Return the lines with one of *fields*, in lower case, that *robot* obeys.

        They are those of its records, in the order of the file.
        """
        records = self.records(robot) if names_any(self._body, fields) else []
        return [line for record in records for line in record.rules if line.field in fields]

    def name_of(self, robot: str | bytes) -> str:
        """Return the name by which *robot* finds its record: of several the first that has one.

        If none has one, it is the first of all.
        """
        names = names_of(robot)
        if len(names) > 1:
            text = with_line_feeds(self._body)
            return next((name for name in names if self._is_named(text, name)), names[0])
        return names[0]

    def names(self, robot: str | bytes) -> list[str]:
        """Return the names whose records *robot* obeys, in lower case."""
        return [self.name_of(robot)]

    def lines_apart(self, robot: str | bytes, /, *fields: bytes) -> list[list[Line]]:
        """Return the lines with one of *fields*, in lower case, that *robot* obeys as rules.

        Apart are those of each name of the robot.
        """
        if not names_any(self._body, fields):
            return []
        text = with_line_feeds(self._body)
        return [
            [line for record in found for line in record.rules if line.field in fields]
            for name in self.names(robot)
            if (found := self._records_of_preferences(text, name))
        ]

    @abstractmethod
    def _records_of_preferences(self, text: str, token: str) -> list[Record]:
        """Return the records of *token* if Content-Usage lines are rules as well (attach, 3)."""

    @abstractmethod
    def records(self, robot: str | bytes) -> list[Record]:
        """Return the records that *robot* must obey, with all their lines."""

    @abstractmethod
    def _read(self, text: str, token: str) -> Decision:
        """Return what *text*, the file, lets decide for the robot *token*."""

    @abstractmethod
    def _find(self, text: str, token: str) -> Index | None:
        """Return where the rules stand for the robot *token*, None where it has none."""

    @staticmethod
    @abstractmethod
    def _is_named(text: str, token: str) -> bool:
        """Whether *text*, the file, has a record for the robot *token* by its name."""

    def _decide(self, robot: str | bytes) -> Decision:
        text = with_line_feeds(self._body)
        return by_any([self._read(text, name) for name in self.names(robot)])

    def _indexed(self, robot: str | bytes) -> list[Index]:
        if robot not in self._indexes:
            if len(self._indexes) >= ROBOTS_KEPT:
                self._indexes.clear()
            text = with_line_feeds(self._body)
            found = (self._find(text, name) for name in self.names(robot))
            self._indexes[robot] = [index for index in found if index]
        return self._indexes[robot]
