"""3.2, 3.3: the lines of a /robots.txt file, which are the same in both standards.

RFC 9309 has the same lines (2.2): ``<Field> ":" <value>``, a comment from "#" on, and
CR, LF or CRLF at the end. The letters and numbers (B1, B7, ...) are the rows of the
decision table in docs/semantics.md.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import unescape
from typing import NamedTuple

from scrapy_koster.protocol.nametoken import TOKEN

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_LOOKED_AT = 1000

# Patterns of a line, with the line feed before the line. Space may precede the field (B8) and the
# colon (B7). The time is linear in the length of the line: of neighbouring parts, only SP and VALUE
# match the same bytes. VALUE can be empty, so the search never goes back into SP.
SP = "[ \t]*"
"""3.3: space = 1*(SP | HT); B2: no other character is space."""
VALUE = "([^#\n]*[^#\n \t]|)"
"""A value. B10: a comment runs from "#" to the line's end."""
ANY_CASE = re.ASCII | re.IGNORECASE
_FIELD = TOKEN.replace("#", "")  # 3.3: extension = token ":" ...; "#" begins a comment
LINE = re.compile(f"\n{SP}({_FIELD}){SP}:{SP}{VALUE}")
AGENT_LINE = re.compile(f"\n{SP}user-agent{SP}:{SP}{VALUE}", ANY_CASE)
_RULE = f"\n{SP}(?:(d)is|)allow{SP}:"
RULE_LINE = re.compile(_RULE, ANY_CASE)
CONTENT_USAGE = b"content-usage"
# Lines that end the User-agent lines of a group when Content-Usage is read (RFC 9309 extended by
# draft-ietf-aipref-attach, 3: "rule =/ content-usage").
USAGE_LINE = re.compile(f"\n{SP}(?:disallow|allow|content-usage){SP}:", ANY_CASE)
# Lines that end the User-agent lines when another field is read (RFC 9309, 2.2.4: "other
# records"). Many files have a delay for one robot directly before the group of another.
OTHER_LINE = re.compile(
    f"\n{SP}(?:(?:dis)?allow|content-(?:usage|signal)|crawl-delay|request-rate){SP}:", ANY_CASE
)
# RFC 9309: path-pattern = "/" *UTF8-char-noctl; the example in 5.1 has a path that begins with "*".
PATH_LINE = re.compile(f"{_RULE}{SP}(?=[/*]){VALUE}", ANY_CASE)
"""An Allow or Disallow line with a path that can match.

Group 1 is "d" or "D" if the line is a Disallow line. Group 2 is the path.
"""


class Line(NamedTuple):
    """A line of the form ``<Field> ":" <value>`` (3.2)."""

    number: int
    """Number of the line in the file, from 1."""
    field: bytes
    """In lower case."""
    value: bytes
    """The value without a comment and without space at its ends."""


def is_wide(body: bytes) -> bool:
    """Whether a file is UTF-16 or UTF-32, by its byte order mark or its zero bytes (B3)."""
    return _wide_encoding(body) is not None


def narrow(body: bytes) -> bytes:
    """Return a UTF-16 or UTF-32 file in UTF-8, or another file unchanged (B3). Never raises."""
    encoding = _wide_encoding(body)
    if encoding is None:
        return body
    # An odd byte at the end is dropped.
    text = body[: len(body) // 2 * 2].decode(encoding, "replace")
    # UTF-32 is decoded as UTF-16, too: half of a character is then a NUL.
    return text.replace("\0", "").removeprefix("\ufeff").encode()


def plain(body: bytes) -> bytes:
    """Return a file as ``narrow`` does.

    If the file is an HTML page in which a browser shows a text file, return only the text.
    """
    return _unwrapped(narrow(body))


def is_viewer_page(body: bytes) -> bool:
    """Whether a file is an HTML page in which a browser shows a text file."""
    return plain(body) != narrow(body)


def _wide_encoding(body: bytes) -> str | None:
    """Return the codec that reads a UTF-16 or UTF-32 file, or None for any other file."""
    # 5.1: UTF-16 rules have zero bytes. A file with a mark but no zero bytes is not decoded.
    is_marked = body.startswith(_WIDE_MARKS) and b"\x00" in body
    # A file without a mark is wide if zero bytes are at its start and frequent. A file with few
    # zero bytes is read without decoding.
    start = body[:_LOOKED_AT]
    if not is_marked and (b"\x00" not in body[:4] or 3 * start.count(0) <= len(start)):
        return None
    return "utf-16-be" if body[0] == 0 or body.startswith(codecs.BOM_UTF16_BE) else "utf-16-le"


def whole_lines(body: bytes, max_bytes: int) -> bytes:
    """Return the whole file, or the complete lines in its first *max_bytes* (section 6).

    B16: a file is cut at the end of a line, because half a path would forbid or allow more than
    the whole path.
    """
    if len(body) <= max_bytes:
        return body
    # In UTF-16, a byte of a character may look like a line end, so the text is cut in UTF-8.
    kept = narrow(body[:max_bytes])
    return kept[: max(kept.rfind(b"\n"), kept.rfind(b"\r")) + 1]


def lines(body: bytes) -> list[bytes]:
    """Return the lines of a file, without their ends."""
    return with_line_feeds(body).encode("latin-1").split(b"\n")[1:]


@lru_cache(maxsize=1)  # a file is often read several times in a row
def with_line_feeds(body: bytes) -> str:
    """Return a file as text, with a line feed before each line and a character per byte (B4)."""
    # 5.2: "robots should be liberal in accepting files with different
    # end-of-line conventions, specifically CR and LF in addition to CRLF".
    text = _unwrapped(narrow(body).removeprefix(_BYTE_ORDER_MARK))  # B3
    return "\n" + text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode("latin-1")


@lru_cache(maxsize=1)  # a file is searched for several words
def lowered(text: str) -> str:
    """Return the text of a file in lower case."""
    return text.lower()


def names_any(body: bytes, fields: Iterable[bytes]) -> bool:
    """Return whether one of *fields*, names in lower case, occurs anywhere in a file."""
    lower = lowered(with_line_feeds(body))
    return any(field.decode() in lower for field in fields)


def numbered(
    found: Iterable[re.Match[str]], ends: str, number: int = 0, counted: int = 0
) -> Iterator[Line]:
    """Yield the lines of *found*, matches of ``LINE``, with the numbers of the lines.

    The numbers are counts of line feeds in *ends*, a text as long as the text of the matches.
    *number* is the count before the index *counted*, where the counting begins.
    """
    for line in found:
        number += ends.count("\n", counted, line.start() + 1)
        counted = line.start() + 1
        yield Line(number, line[1].lower().encode(), line[2].encode("latin-1"))


def lines_with(body: bytes, field: bytes) -> Iterator[Line]:
    """Yield all lines with *field* (in lower case), inside and outside of records."""
    text, name = with_line_feeds(body), field.decode()
    yield from numbered((line for line in LINE.finditer(text) if line[1].lower() == name), text)


# The HTML page in which a browser shows a text file. A crawl with a browser gets such a page.

_SPACES = b" \t\n\r\f\v\xef\xbb\xbf"
_PAGE = re.compile(rb"[%b]*<" % _SPACES)
_PRE = re.compile(rb"<pre\b[^<>]*>([^<]*)(?:</pre\b|\Z)", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]*>")


def _unwrapped(body: bytes) -> bytes:
    """Return the text of the ``<pre>`` if a page shows nothing else, or else *body* unchanged."""
    pre = _PRE.search(body) if _PAGE.match(body) else None
    if pre is None:
        return body
    # A browser does not show the head. "</head" and "</pre" are put back, so that _TAG matches the
    # whole end tags.
    front, behind = body[: pre.start()].rpartition(b"</head")[1:], body[pre.end() :]
    shown = _TAG.sub(b"", b"".join(front) + b"</pre" * bool(behind) + behind)
    if shown.strip(_SPACES):
        return body
    text = unescaped(pre[1].decode("utf-8", "surrogateescape"))
    return text.encode("utf-8", "surrogateescape")


def unescaped(text: str) -> str:
    """Return *text* of a page with its character references decoded."""
    try:
        return unescape(text)
    except ValueError:  # a character reference of more digits than int() takes
        return text
