"""The line that RFC 9309 uses, for findings about lines that the draft reads differently."""

from bisect import bisect_right

from scrapy_koster.checker.record import instructions
from scrapy_koster.checker.seen import Seen
from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.nametoken import name_token
from scrapy_koster.protocol.reading import Rfc9309
from scrapy_koster.protocol.records import Record, parse

HAZARDS = {"K023", "K024", "K026", "K033", "K042", "K043", "K047", "K049"}
"""Codes of findings for which RFC 9309 may use another line than the draft."""

_PATH_OCTETS = 1000


class Hazards:
    """Finds the line that RFC 9309 uses for the path of a finding."""

    def __init__(self, body: bytes) -> None:
        self._rfc9309 = Rfc9309(body)
        self._records = parse(body)

    def line_of(self, seen: Seen) -> tuple[int, bytes] | None:
        """Return the number of the line by which RFC 9309 decides, and the tested path.

        None if there is no path to test for the finding, or if no rule matches the path.
        """
        at = bisect_right(self._records, seen.line, key=lambda record: record.agents[0].number) - 1
        if at < 0:
            return None
        agent, rule = self._asked(seen, at)
        if rule is None:
            return None
        path = _matched_by(rule.value[:_PATH_OCTETS])
        ruling = self._rfc9309.ruling(b"http://h" + path, name_token(agent.value))
        return (ruling.rule.number, path) if ruling.rule else None

    def _asked(self, seen: Seen, at: int) -> tuple[Line, Line | None]:
        """Return the User-agent line and the rule to test for a finding. The rule can be None.

        *at* is the index of the record in which the finding is.
        """
        record = self._records[at]
        agent = record.agents[0]
        match seen.code:
            case "K042" | "K043" | "K047":
                return agent, _at(record.rules, seen.line)
            case "K049":
                return agent, _at(record.rules, seen.texts[1])
            case "K033":
                return agent, _first(self._records[at + 1])
            case _:
                return _at(record.agents, seen.line) or agent, _first(record)


def _at(lines: list[Line], number: bytes | int) -> Line | None:
    return next((line for line in lines if line.number == number), None)


def _first(record: Record) -> Line | None:
    return next((rule for _, rule in instructions(record)), None)


def _matched_by(path: bytes) -> bytes:
    """Return a path that a rule with *path* matches by RFC 9309 (2.2.3).

    A rule whose path begins with neither "/" nor "*" matches no path. Then the result does not
    match either.
    """
    matched = path.removesuffix(b"$").replace(b"*", b"x")
    return matched if matched.startswith(b"/") else b"/" + matched
