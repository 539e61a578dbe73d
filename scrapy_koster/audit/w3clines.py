"""Logs in the extended format of the W3C, which say what their fields are: IIS, CloudFront."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any
from urllib.parse import unquote_to_bytes

from scrapy_koster.audit.kept import Kept
from scrapy_koster.audit.textlines import Row

DIRECTIVE = re.compile(rb"^#[^\n]*\n", re.MULTILINE)
"""A line that is about the log: www.w3.org/TR/WD-logfile."""

_FIELDS = re.compile(rb"#Fields:[ \t]*([^\n]*)\n", re.IGNORECASE)
_BEGIN = re.compile(
    rb"#(?:Fields|Version|Software|Date|Start-Date|End-Date|Remark):", re.IGNORECASE
)
_WANTED = (
    (b"c-ip",),
    (b"date",),
    (b"time",),
    (b"cs-method",),
    (b"cs-uri-stem", b"cs-uri"),
    (b"cs-uri-query",),
    (b"sc-status",),
    (b"sc-bytes",),
    (b"cs(user-agent)",),
    (b"x-host-header", b"cs-host", b"cs(host)"),
)
"""What the fields of a visit are called, in the order of ``_Read.row``; the first counts."""
_FIELDS_MOST = 200
_KEPT = 20_000


def is_w3c(start: bytes) -> bool:
    """Whether a log that begins so says what its fields are."""
    return _BEGIN.match(start) is not None


class W3cFormat:
    """Reads lines by the ``#Fields`` above them."""

    def __init__(self) -> None:
        self._read: _Read | None = None

    def rows(self, piece: bytes) -> list[Row]:
        """Return the lines that can be read."""
        found: list[Row] = []
        at = 0
        for directive in DIRECTIVE.finditer(piece):
            found += self._rows(piece[at : directive.start()])
            if fields := _FIELDS.match(directive[0]):
                self._read = _read_of(fields[1])
            at = directive.end()
        return found + self._rows(piece[at:] if at else piece)

    def _rows(self, lines: bytes) -> list[Row]:
        return self._read.rows(lines) if self._read is not None and lines else []


class _Agents(Kept[bytes, bytes]):
    """User-Agent headers, which have no spaces in these logs."""

    def __init__(self, decoded: Callable[[bytes], bytes]) -> None:
        super().__init__(_KEPT)
        self._decoded = decoded

    def made(self, agent: bytes) -> bytes:
        """Return a header as it was sent."""
        return b"" if agent == b"-" else self._decoded(agent)


class _Read:
    """How lines with these fields are read, all of a piece at once."""

    def __init__(self, pattern: re.Pattern[bytes], places: list[int], *, escaped: bool) -> None:
        self._pattern = pattern
        self._ordered: Callable[[tuple[bytes, ...]], Any] = itemgetter(*places)
        # IIS writes a plus sign for a space, CloudFront %20.
        self._agents = _Agents(unquote_to_bytes if escaped else _with_spaces)

    def rows(self, lines: bytes) -> list[Row]:
        return list(map(self._row, map(self._ordered, self._pattern.findall(lines))))

    def _row(self, found: tuple[bytes, ...]) -> Row:
        client, date, time, method, stem, query, status, size, agent, host = found
        target = stem if query in (b"", b"-") else b"%b?%b" % (stem, query)
        asked = b"%b %b" % (method or b"GET", target)
        name = b"" if host == b"-" else host
        return client, b"%bT%b" % (date, time), asked, status, size, self._agents[agent], name


def _with_spaces(agent: bytes) -> bytes:
    return agent.replace(b"+", b" ")


def _read_of(text: bytes) -> _Read | None:
    """Return how lines with these fields are read; None if there is no visit in them."""
    fields = text.lower().split()
    if len(fields) > _FIELDS_MOST or not {b"date", b"time"} <= set(fields):
        return None
    chosen = [next((name for name in names if name in fields), None) for names in _WANTED]
    if chosen[4] is None:
        return None
    separator = rb"[ \t]"
    # Each field excludes what ends it: one way to match, or none.
    parts = [rb"([^ \t\r\n]*)" if name in chosen else rb"[^ \t\r\n]*" for name in fields]
    pattern = b"^" + separator.join(parts) + rb"(?:[ \t][^\n]*)?\r?\n"
    kept = [name for name in fields if name in chosen]
    places = [kept.index(name) if name is not None else len(kept) for name in chosen]
    return _Read(
        re.compile(pattern + b"()", re.MULTILINE), places, escaped=b"x-edge-location" in fields
    )
