"""Logs in the extended format of the W3C, with a line of field names: IIS, CloudFront."""

import re
from collections.abc import Callable
from operator import itemgetter
from urllib.parse import unquote_to_bytes

from scrapy_koster.audit.textlines import Row

DIRECTIVE = re.compile(rb"^#[^\n]*\n", re.MULTILINE)
"""A directive: www.w3.org/TR/WD-logfile."""

_FIELDS = re.compile(rb"#Fields:[ \t]*([^\n]*)\n", re.IGNORECASE)
BEGINNING = re.compile(
    rb"#(?:Fields|Version|Software|Date|Start-Date|End-Date|Remark):", re.IGNORECASE
)
"""Matches a log that begins with a directive of this format."""
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
"""Names of the fields of a visit, in the order of ``row``. If a field has several names, the first
of these names in the log is used."""
_FIELDS_MOST = 200


class W3cFormat:
    """Reads lines with the fields of the last ``#Fields`` line above."""

    def __init__(self) -> None:
        self._rows: Callable[[bytes], list[Row]] = _no_rows

    def rows(self, piece: bytes) -> list[Row]:
        """Return the readable lines of *piece* as rows."""
        found: list[Row] = []
        at = 0
        for directive in DIRECTIVE.finditer(piece):
            found += self._rows(piece[at : directive.start()])
            if fields := _FIELDS.match(directive[0]):
                self._rows = _reader_of(fields[1])
            at = directive.end()
        return found + self._rows(piece[at:])


def _no_rows(_lines: bytes) -> list[Row]:
    return []


def _reader_of(text: bytes) -> Callable[[bytes], list[Row]]:
    """Return a function that reads lines with the fields in *text*.

    The function returns no rows if there are too many fields, or if the date, the time or the URL
    is missing.
    """
    fields = text.lower().split()
    chosen = [next((name for name in names if name in fields), None) for names in _WANTED]
    if len(fields) > _FIELDS_MOST or not {b"date", b"time"} <= set(fields) or chosen[4] is None:
        return _no_rows
    # No field matches the character that follows it, so a match takes linear time.
    parts = [rb"([^ \t\r\n]*)" if name in chosen else rb"[^ \t\r\n]*" for name in fields]
    pattern = b"^" + rb"[ \t]".join(parts) + rb"(?:[ \t][^\n]*)?\r?\n()"
    findall = re.compile(pattern, re.MULTILINE).findall
    kept = [name for name in fields if name in chosen]
    ordered = itemgetter(*(kept.index(name) if name is not None else len(kept) for name in chosen))

    def row(found: tuple[bytes, ...]) -> Row:
        client, date, time, method, stem, query, status, size, agent, host = ordered(found)
        target = stem if query in (b"", b"-") else b"%b?%b" % (stem, query)
        asked = b"%b %b" % (method or b"GET", target)
        # CloudFront writes %20 for a space, IIS a plus sign.
        agent = b"" if agent == b"-" else unquote_to_bytes(agent.replace(b"+", b" "))
        name = b"" if host == b"-" else host
        return client, b"%bT%b" % (date, time), asked, status, size, agent, name

    return lambda lines: list(map(row, findall(lines)))
