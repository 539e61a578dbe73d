"""The stored files that the page shows, as many as it has room for."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from scrapy_koster.checker.checks import Severity
from scrapy_koster.checker.syntax import check
from scrapy_koster.protocol.line import lines
from scrapy_koster.protocol.reading import RobotsTxt
from scrapy_koster.protocol.standing import Standing
from scrapy_koster.protocol.wording import shown

if TYPE_CHECKING:
    import sqlite3

    from scrapy_koster.report.numbers import Numbers

BodyOf = Callable[[str], bytes | None]
"""What returns the stored file of a site, None where there is none."""

_LINES = 1000
_LINE_CHARS = 300
_AROUND = 2
# What a page may have of them, deflated; and how many are checked.
_ROOM_BYTES = 60_000
_ROOM_BYTES_A_SITE = 400
_ROOM_MOST_BYTES = 1_000_000
_FILES_MOST = 2000
GRAVITY = {severity: n for n, severity in enumerate(reversed(Severity), 1)}
"""How grave a finding is, as a number: the gravest is the largest."""
_HAVE_ONE = (
    Standing.OBEYED,
    Standing.WITHOUT_RULES,
    Standing.HTML,
    Standing.HTML_DISALLOWED,
    Standing.MISSING,
)


@dataclass(frozen=True)
class File:
    """A stored file, as the page shows it."""

    texts: list[str]
    numbers: list[int]
    """Of each of the lines, 1-based: a long file is not shown whole."""
    lit: list[int]
    """The lines of the record that the robot obeys."""
    findings: list[tuple[str, str, int]]
    """The codes of what the checker finds, with their titles, and how grave they are: 1 to 3."""
    is_same: bool
    """Whether it is still the file that was obeyed when the crawl counted last."""
    digest: str
    """Of the body that was obeyed then, as it was received."""

    def packed(self) -> dict[str, Any]:
        """Return what the script of the page is given."""
        whole = self.numbers == list(range(1, len(self.texts) + 1))
        return {
            "texts": self.texts,
            "numbers": None if whole else self.numbers,
            "lit": self.lit,
            "findings": self.findings,
            "same": self.is_same,
            "digest": self.digest,
        }


def files_of(rows: Sequence[sqlite3.Row], body_of: BodyOf, numbers: Numbers) -> dict[str, File]:
    """Return the files of the first of *rows*, with the lines that have refused requests."""
    refusing: dict[str, set[int]] = {}
    for site, line, _, _ in numbers.rules:
        refusing.setdefault(site, set()).add(line)
    robot = str(numbers.about.get("robot", ""))
    room = min(_ROOM_BYTES + _ROOM_BYTES_A_SITE * len(rows), _ROOM_MOST_BYTES)
    having_one = (row for row in rows if row["outcome"] in _HAVE_ONE and row["bytes"])
    files: dict[str, File] = {}
    for row in islice(having_one, _FILES_MOST):
        site = row["site"]
        if (body := body_of(site)) is not None:
            file = _file(body, robot, refusing.get(site, set()), row)
            size = len(zlib.compress("\n".join(file.texts).encode(), 1))
            if size <= room:
                room -= size
                files[site] = file
    return files


def _file(body: bytes, robot: str, refusing: set[int], row: sqlite3.Row) -> File:
    found = lines(body)
    record = RobotsTxt(body).record(robot)
    obeyed = {line.number for line in (*record.agents, *record.rules)} if record else set()
    numbers = set(range(1, min(len(found), _LINES) + 1))
    for line in sorted(refusing)[:_LINES]:
        numbers.update(range(max(line - _AROUND, 1), min(line + _AROUND, len(found)) + 1))
    ordered = sorted(numbers)
    found_by_code = {finding.check.code: finding.check for finding in check(body, 1)}
    return File(
        texts=[shown(found[number - 1], _LINE_CHARS) for number in ordered],
        numbers=ordered,
        lit=sorted(obeyed & numbers),
        findings=sorted(
            ((code, kind.title, GRAVITY[kind.severity]) for code, kind in found_by_code.items()),
            key=lambda finding: (-finding[2], finding[0]),
        ),
        is_same=zlib.crc32(body) == row["crc"],
        digest=row["digest"] or "",
    )
