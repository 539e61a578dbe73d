"""The stored robots.txt files that the page of a report shows."""

import sqlite3
import zlib
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from scrapy_koster.checker.checks import Severity
from scrapy_koster.checker.syntax import check
from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.protocol.line import lines
from scrapy_koster.protocol.reading import Rfc9309, RobotsTxt
from scrapy_koster.protocol.wording import STANDARD_KEYS, shown

CopyOf = Callable[[str], CachedRobots | None]
"""A function that returns the stored copy of a site, or None."""
File = dict[str, Any]
"""A stored file for the script of the page: "texts" of the lines, "lit" (the numbers of the lines
of the robot's records), "findings" of the checker (code, title, number of the
severity), "digest" at the end of the crawl, and "same" (whether the stored file has this
digest)."""

_LINE_CHARS = 300
# Limits of a page: bytes of all compressed files, and number of files.
_ROOM_BYTES = 1_000_000
_FILES_MOST = 2000
# A file that is packed better counts more, because the checker reads all of it.
_RATIO_MOST = 10
GRAVITY = {severity: n for n, severity in enumerate(reversed(Severity), 1)}
"""Numbers of the severities: 3 error, 2 warning, 1 note."""


def files_of(
    rows: Iterable[sqlite3.Row], copy_of: CopyOf, robot: str, reading: object
) -> dict[str, File]:
    """Return the stored files of the first sites in *rows*, by site, up to the limits of a page.

    *reading* is "draft", "rfc9309", or another value if the crawl does not read by one standard.
    """
    room = _ROOM_BYTES
    files: dict[str, File] = {}
    for row in islice((row for row in rows if row["bytes"]), _FILES_MOST):
        copy = copy_of(row["site"])
        if copy is not None and copy.body:
            size = max(len(zlib.compress(copy.body, 1)), len(copy.body) // _RATIO_MOST)
            if size <= room:
                room -= size
                files[row["site"]] = _file(copy, robot, row["digest"], reading)
    return files


def _file(copy: CachedRobots, robot: str, digest: str, reading: object) -> File:
    both = [RobotsTxt(copy.in_utf8), Rfc9309(copy.in_utf8)]
    read = [each for each in both if STANDARD_KEYS[each.standard] == reading] or both
    records = [record for each in read for record in each.records(robot)]
    readings = [each.standard for each in read]
    found = check(copy.body, 1, max_bytes=len(copy.body), readings=readings)  # a cut is a row
    # K052 is about an ordinary path, such as /private: no reader takes it for something else.
    kinds = [each.check for each in found if each.check.code != "K052"]
    findings = [(kind.code, kind.title, GRAVITY[kind.severity]) for kind in kinds]
    return {
        "texts": [shown(line, _LINE_CHARS) for line in lines(copy.body)],
        "lit": sorted({line.number for each in records for line in (*each.agents, *each.rules)}),
        "findings": sorted(findings, key=lambda finding: (-finding[2], finding[0])),
        "same": copy.digest == digest,
        "digest": digest,
    }
