"""3.2, 3.3: the lines of a /robots.txt file, as both standards have them.

RFC 9309 has the same lines (2.2): ``<Field> ":" <value>``, a comment from "#" on, and
CR, LF or CRLF at the end. The letters and numbers (B1, B7, ...) are the rows of the
decision table in docs/semantics.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from scrapy_koster.protocol.nametoken import TOKEN

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# One line, behind a line end. B7, B8: with space before the field and the colon.
# Each takes a time that is linear in the length of the line: where two repeated
# parts have octets in common, the second matches without any.
SP = "[ \t]*"
"""3.3: space = 1*(SP | HT); B2: nothing else is space."""
VALUE = "([^#\n]*[^#\n \t]|)"
"""B10: a comment runs from "#" to the line's end."""
ANY_CASE = re.ASCII | re.IGNORECASE
_FIELD = TOKEN.replace("#", "")  # 3.3: extension = token ":" ...
_FIELD_AND_VALUE = f"{SP}({_FIELD}){SP}:{SP}{VALUE}"
LINE = re.compile(f"\n{_FIELD_AND_VALUE}")
LINE_OR_NONE = re.compile(f"\n(?:{_FIELD_AND_VALUE}|)")
AGENT_LINE = re.compile(f"\n{SP}user-agent{SP}:{SP}{VALUE}", ANY_CASE)


class Line(NamedTuple):
    """One line of the form ``<Field> ":" <value>`` (3.2)."""

    number: int
    """1-based, in the file."""
    field: bytes
    """In lower case."""
    value: bytes
    """Without the space around it and without a comment."""


def whole_lines(body: bytes, max_bytes: int) -> bytes:
    """Return the lines that are whole in the first *max_bytes* of a file.

    B16: what is cut at a limit (section 6) is cut where a line ends: half a
    path would forbid or allow more than the whole.
    """
    if len(body) <= max_bytes:
        return body
    kept = body[:max_bytes]
    return kept[: max(kept.rfind(b"\n"), kept.rfind(b"\r")) + 1]


def lines(body: bytes) -> list[bytes]:
    """Return the lines of a file, without their ends."""
    return _with_line_feeds(body).split(b"\n")


@lru_cache(maxsize=1)  # one file is read by two standards, or asked about again
def with_line_feeds(body: bytes) -> str:
    """Return a file as a line feed before each line, and a character for each octet (B4)."""
    return "\n" + _with_line_feeds(body).decode("latin-1")


def names_any(body: bytes, fields: Iterable[bytes]) -> bool:
    """Return whether a file has the name of one of *fields*, in lower case, anywhere."""
    lower = body.lower()
    return any(field in lower for field in fields)


def lines_with(body: bytes, field: bytes) -> Iterator[Line]:
    """Yield all lines with *field*, in lower case, in records and outside of them."""
    text, name = with_line_feeds(body), field.decode()
    number = counted = 0
    for found in LINE.finditer(text):
        if found[1].lower() == name:
            number += text.count("\n", counted, found.start() + 1)
            counted = found.start() + 1
            yield Line(number, field, found[2].encode("latin-1"))


def line_around(text: str, position: int) -> Line:
    """Return the line of the text of a file that has an octet of its value at *position*."""
    start = text.rindex("\n", 0, position)
    line = LINE.match(text, start)
    assert line is not None
    number = text.count("\n", 0, start) + 1
    return Line(number, line[1].lower().encode(), line[2].encode("latin-1"))


def _with_line_feeds(body: bytes) -> bytes:
    # 5.2: "robots should be liberal in accepting files with different
    # end-of-line conventions, specifically CR and LF in addition to CRLF".
    return (
        body.removeprefix(_BYTE_ORDER_MARK)  # B3
        .replace(b"\r\n", b"\n")
        .replace(b"\r", b"\n")
    )
