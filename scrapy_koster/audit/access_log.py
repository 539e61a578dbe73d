"""Reads the lines of a log as visits (requests), and counts unreadable lines."""

import io
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from io import BufferedReader
from itertools import islice
from typing import Any, TypeAlias

from scrapy_koster.audit.jsonlines import json_rows
from scrapy_koster.audit.logfile import LogError, pieces
from scrapy_koster.audit.naming import HEADER_CHARS, Namer
from scrapy_koster.audit.textlines import BALANCER, COMMON, FIELDS, NAMED, Format, Row, decoded
from scrapy_koster.audit.times import seconds_of
from scrapy_koster.audit.w3clines import BEGINNING, W3cFormat
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site

NAMELESS = ""
"""The name of a client without a User-Agent header."""

_TIME, _HOST, _REQUEST = (FIELDS.index(name) for name in ("time", "host", "request"))
_TELLING = 5
HEADERS_KEPT = 20_000
_HOSTS_KEPT = 1000
_TIMES_KEPT = 256
_UNREAD_SHOWN = 5
_UNREAD_CHARS = 120
_SAMPLE_BYTES = 1 << 16
_NO_VISIT = re.compile(rb"^(?:[ \t\r]*|#[^\n]*)\n", re.MULTILINE)
"""A blank line, or a comment."""
_NAMES_HOST = re.compile(
    r"(?:CONNECT |\S+ https?://)(?:[^/?# @]*@)?([^/?# ]+?)(?::(?:80|443))?(?=[/?# ]|$)",
    re.IGNORECASE,
)
"""A request line with a host, as sent to a proxy, and as Varnish logs it. Default ports are cut."""


Visit: TypeAlias = tuple[int, str, Any, Any, Any, Any]
"""A request of a robot: seconds since the epoch, name of the robot, and four fields as in the log:
client, request, status, size."""


Names: TypeAlias = Callable[[bytes | str], "str | None"]


def names_of(namer: Namer) -> Names:
    """Return a cached function that returns the name of the robot in a header.

    The name is None for a browser, and NAMELESS for an empty header.
    """

    def name_in(header: bytes | str) -> str | None:
        text = decoded(header)
        return NAMELESS if text in ("", "-") else namer.named(text)

    return lru_cache(HEADERS_KEPT)(name_in)


def format_of(piece: bytes) -> Format | None:
    """Return the format that reads the most lines of *piece*, or None if no format reads a line."""
    if BEGINNING.match(piece):
        return W3cFormat().rows
    formats: list[Format] = [COMMON, json_rows, BALANCER, *NAMED.values()]
    counts = [len(rows_in(piece)) for rows_in in formats]
    return formats[counts.index(max(counts))] if any(counts) else None


Opened = Callable[[], AbstractContextManager[BufferedReader]]


class AccessLog:
    """A log, and the counts of its lines."""

    def __init__(
        self,
        name: str,
        opened: Opened,
        names: Names,
        *,
        given: Format | None = None,
        site: Site | None = None,
    ) -> None:
        self.name = name
        self.lines = self.unread = self.elsewhere = self.of_site = self.browsers = 0
        self.samples: list[str] = []
        """The first unreadable lines as printable text."""
        self.first: int | None = None
        """Time of the first readable line, or None until such a line is read."""
        self.last = float("-inf")
        """Time that the reading of the log has reached, in seconds since the epoch."""
        self.hosts: set[str] = set()
        """The hosts in the first lines, if the log names hosts."""
        self.damage: str | None = None
        """The reason why a part of the log was not read, or None."""
        self._opened = opened
        self._names = names
        self._format = given
        self._hosts = None if site is None else {"", site.host, f"{site.host}:{site.port}"}
        self._time = lru_cache(_TIMES_KEPT)(seconds_of)

    def first_secs(self) -> float:
        """Return the time of the first readable line, or minus infinity if no line can be read."""
        with suppress(OSError, LogError), self._opened() as file:
            for piece in pieces(file, _SAMPLE_BYTES):
                for secs in self._secs(self._format_of(piece)(piece)):
                    return secs
        return float("-inf")

    def batches(self, size: int) -> Iterator[list[Visit]]:
        """Yield the visits in each piece of about *size* bytes, without the visits of browsers."""
        with self._opened() as file:
            at_least = _size(file)
            try:
                for piece in pieces(file, size):
                    yield self._visits(piece, self._format_of(piece))
            except LogError as error:
                self.damage = f"not read to its end: {printable(str(error))}"
            if self.damage is None and _is_cut(file, at_least):
                self.damage = "it was cut while it was read: lines are missing"
            if 0 < self.lines == self.unread and self.damage is None:
                self.damage = (
                    "no line of it could be read. Use --log-format for your own format of nginx,"
                    " and leave it out for other formats"
                )

    def _format_of(self, piece: bytes) -> Format:
        """Return the format of the log.

        If no format reads a line, because the server has written other lines at its start, the next
        piece decides.
        """
        self._format = self._format or format_of(piece)
        return self._format or COMMON

    def _visits(self, piece: bytes, rows_in: Format) -> list[Visit]:
        visits: list[Visit] = []
        add, name_in, seconds = visits.append, self._names, self._time
        rows = rows_in(piece)
        unread = browsers = 0
        for client, time, request, status, size, agent, _ in self._of_site(rows):
            if (secs := seconds(time)) is None:
                unread += 1
                continue
            if (name := name_in(agent[:HEADER_CHARS])) is None:
                browsers += 1
            else:
                add((secs, name, client, request, status, size))
        self.browsers += browsers
        if self.first is None:
            self.first = next(self._secs(rows), None)
            self.hosts.update(filter(None, map(_host_of, rows[:_HOSTS_KEPT])))
        # The earliest time of the last lines, in case a line has a wrong time in the future.
        self.last = max(self.last, min(self._secs(rows[-_TELLING:]), default=self.last))
        self._count(piece, len(rows) - unread, rows_in)
        return visits

    def _of_site(self, rows: list[Row]) -> list[Row]:
        """Return *rows* without requests to other hosts."""
        if (hosts := self._hosts) is None:
            return rows
        named = [*map(_host_of, rows)]
        wanted = [row for row, host in zip(rows, named, strict=True) if host in hosts]
        self.elsewhere += len(rows) - len(wanted)
        self.of_site += len(wanted) - named.count("")
        return wanted

    def _secs(self, rows: list[Row]) -> Iterator[int]:
        found = (self._time(row[_TIME]) for row in rows)
        return (secs for secs in found if secs is not None)

    def _count(self, piece: bytes, read: int, rows_in: Format) -> None:
        lines = piece.count(b"\n")
        if lines > read:
            lines -= len(_NO_VISIT.findall(piece))
            found = (line for line in io.BytesIO(piece) if not _NO_VISIT.match(line))
            unread = (line for line in found if next(self._secs(rows_in(line)), None) is None)
            for line in islice(unread, _UNREAD_SHOWN - len(self.samples)):
                self.samples.append(printable(line.rstrip(b"\r\n"), _UNREAD_CHARS))
        self.lines += lines
        self.unread += lines - read


def _host_of(row: Row) -> str:
    """Return the host of a visit: in the request line, or else the virtual host. "" if unknown."""
    named = _NAMES_HOST.match(decoded(row[_REQUEST]))
    return (named[1] if named else decoded(row[_HOST]).removeprefix("-")).lower()


def _size(file: BufferedReader) -> int | None:
    """Return the size of a file on the disk, None for a pipe."""
    with suppress(OSError, ValueError):
        found = os.fstat(file.fileno())
        return found.st_size if stat.S_ISREG(found.st_mode) else None
    return None


def _is_cut(file: BufferedReader, before: int | None) -> bool:
    """Return whether a file on the disk became shorter while the log was read.

    The option ``copytruncate`` of logrotate cuts logs.
    """
    now = _size(file)
    return before is not None and now is not None and not before <= file.tell() <= now
