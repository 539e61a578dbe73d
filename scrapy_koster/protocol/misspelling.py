"""Misspelt lines of a robots.txt, as the parser that Google published reads them.

Neither standard knows them. They are read so by ``Strictest`` only, to forbid more. What is
accepted is listed in docs/semantics.md.
"""

from __future__ import annotations

import re
from functools import lru_cache

from scrapy_koster.protocol.hidden import unhidden
from scrapy_koster.protocol.line import ANY_CASE, SP, Line, lines, with_line_feeds
from scrapy_koster.protocol.records import has_record

_AGENT = "user-agent|useragent|user agent"
_DISALLOW = "disallow|dissallow|dissalow|disalow|diasllow|disallaw"
_FIELDS = {
    **dict.fromkeys(_AGENT.split("|"), "User-agent"),
    **dict.fromkeys(_DISALLOW.split("|"), "Disallow"),
    "allow": "Allow",
}
# Only the start of a field counts: "Disallowed:" is a Disallow line, too.
_LINE = re.compile(
    f"\n{SP}(?!(?:user-agent|disallow|allow){SP}:)({'|'.join(_FIELDS)})([^:#\n]*)(:?)([^#\n]*)",
    ANY_CASE,
)
_TEXT_LINE = re.compile("\n[ \t]*[^# \t\n]")
# A short name is in many a picture.
_FIELD_LINE = re.compile(f"\n{SP}[a-z_-]{{4,}}{SP}:", ANY_CASE)


@lru_cache(maxsize=16)  # each step of a site asks again
def has_only_other_lines(body: bytes) -> bool:
    """Whether a file says something in no line that could be one of a robots.txt or misspelt."""
    text = with_line_feeds(body)
    if _FIELD_LINE.search(text) or not _TEXT_LINE.search(text):
        return False
    return corrected(body) is None


@lru_cache(maxsize=16)  # each request to a site asks again
def has_other_record(body: bytes) -> bool:
    """Return whether the hidden and misspelt lines of a file make a record."""
    right = corrected(body)
    return right is not None and has_record(right)


def corrected(body: bytes) -> bytes | None:
    """Return a file ``unhidden`` and with its misspelt lines put right, None if it has neither."""
    seen = unhidden(body)
    text = with_line_feeds(body) if seen is None else "\n" + seen.decode("latin-1")
    right = _LINE.sub(_corrected, text)
    return seen if right == text else right[1:].encode("latin-1")


def _corrected(line: re.Match[str]) -> str:
    name, rest, colon, value = line.groups()
    field = _FIELDS[name.lower()]
    if colon:
        return f"\n{field}: {value}"
    # Without a colon there have to be two words.
    words = f"{name}{rest}".split()
    is_rule = len(words) == 2 and words[0].lower().startswith(name.lower())
    return f"\n{field}: {words[1]}" if is_rule else line[0]


def as_written(body: bytes, line: Line) -> Line:
    """Return *line*, of a file that was ``corrected``, with its field as *body* has it."""
    text = "\n" + lines(body)[line.number - 1].decode("latin-1")
    found = _LINE.match(text)
    # A line that is ``hidden`` is shown as it is meant.
    if not found or not re.fullmatch("[\t -~]*", found[2]):
        return line
    name = found[1] + found[2] if found[3] else found[1]
    return line._replace(field=name.strip(" \t").lower().encode())
