"""Logs in the extended format of the W3C, with a line of field names: IIS, CloudFront."""

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from scrapy_koster.audit.textlines import Row

_FIELDS = re.compile(rb"#Fields:(.*)", re.IGNORECASE)
"""A directive: www.w3.org/TR/WD-logfile."""
BEGINNING = re.compile(
    rb"#(?:Fields|Version|Software|Date|Start-Date|End-Date|Remark):", re.IGNORECASE
)
"""Matches a log that begins with a directive of this format."""
_WANTED = (
    (b"date",), (b"time",), (b"cs-uri-stem", b"cs-uri"), (b"c-ip",), (b"cs-method",),
    (b"cs-uri-query",), (b"sc-status",), (b"sc-bytes",), (b"cs(user-agent)",),
    (b"x-host-header", b"cs-host", b"cs(host)"),
)  # fmt: skip
"""Names of the fields of a visit, in the order of ``_row``. If a field has several names, the first
of these names in the log is used. The first three fields are required."""


class W3cFormat:
    """Reads lines with the fields of the last ``#Fields`` line above."""

    def __init__(self) -> None:
        self._fields: list[bytes] = []
        self._places: list[int | None] = []
        """The places of the wanted fields. Empty if a required field is missing."""

    def rows(self, piece: bytes) -> list[Row]:
        """Return the readable lines of *piece* as rows."""
        found: list[Row] = []
        for line in piece.split(b"\n"):
            if line.startswith(b"#"):
                if named := _FIELDS.match(line):
                    self._read_fields(named[1])
            elif self._places:
                values = line.rstrip(b"\r").replace(b"\t", b" ").split(b" ")
                if len(values) >= len(self._fields):
                    found.append(_row(b"" if n is None else values[n] for n in self._places))
        return found

    def _read_fields(self, text: bytes) -> None:
        self._fields = fields = text.lower().split()
        chosen = [next((name for name in names if name in fields), None) for names in _WANTED]
        places = [None if name is None else fields.index(name) for name in chosen]
        self._places = [] if None in places[:3] else places


def _row(values: Iterable[bytes]) -> Row:
    """Return the row of a line. *values* are in the order of _WANTED."""
    date, time, stem, client, method, query, status, size, agent, host = values
    target = stem if query in (b"", b"-") else b"%b?%b" % (stem, query)
    asked = b"%b %b" % (method or b"GET", target)
    # CloudFront writes %20 for a space, IIS a plus sign.
    agent = b"" if agent == b"-" else unquote_to_bytes(agent.replace(b"+", b" "))
    name = b"" if host == b"-" else host
    return client, b"%bT%b" % (date, time), asked, status, size, agent, name
