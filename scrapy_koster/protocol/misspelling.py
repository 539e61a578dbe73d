"""Misspelt and hidden lines of a robots.txt, as other parsers read them.

Neither standard has such lines. Only ``Strictest`` obeys such lines, to forbid more. The accepted
spellings are listed in docs/semantics.md.
"""

import re
from functools import lru_cache

from scrapy_koster.protocol.line import ANY_CASE, LINE, SP, Line, lines, with_line_feeds
from scrapy_koster.protocol.records import has_record

_AGENT = "user-agent|useragent|user agent"
_DISALLOW = "disallow|dissallow|dissalow|disalow|diasllow|disallaw"
_FIELDS = {"u": "User-agent", "d": "Disallow", "a": "Allow"}
"""The fields by the first letter of a spelling."""
# Only the start of a field counts: "Disallowed:" is a Disallow line, too.
_LINE = re.compile(
    f"\n{SP}(?!(?:user-agent|disallow|allow){SP}:)({_AGENT}|{_DISALLOW}|allow)([^:#\n]*)(:?)([^#\n]*)",
    ANY_CASE,
)
# At least four characters: the bytes of an image often have a shorter word and a colon.
_TEXT_LINE = re.compile("\n[ \t]*[^# \t\n]")
_FIELD_LINE = re.compile(f"\n{SP}[a-z_-]{{4,}}{SP}:", ANY_CASE)


def has_only_other_lines(body: bytes) -> bool:
    """Whether a file has text, but no line that could be a line of a robots.txt."""
    return _TEXT_LINE.search(with_line_feeds(body)) is not None and not may_have_lines(body)


@lru_cache(maxsize=16)  # called for every request
def may_have_lines(body: bytes) -> bool:
    """Whether a file has a line that could be a line of a robots.txt."""
    is_found = _FIELD_LINE.search(with_line_feeds(body)) is not None
    return is_found or corrected(body) is not None


@lru_cache(maxsize=16)  # called for every request to a site with an HTML page
def has_other_record(body: bytes) -> bool:
    """Return whether a file has hidden or misspelt lines, and a record after the correction."""
    right = corrected(body)
    return right is not None and has_record(right)


def corrected(body: bytes) -> bytes | None:
    """Return a file with its hidden and misspelt lines corrected, or None if it has none."""
    seen = unhidden(body)
    text = with_line_feeds(body) if seen is None else "\n" + seen.decode("latin-1")
    right = _LINE.sub(_corrected, text)
    return seen if right == text else right[1:].encode("latin-1")


def _corrected(line: re.Match[str]) -> str:
    name, rest, colon, value = line.groups()
    field = _FIELDS[name[0].lower()]
    if colon:
        return f"\n{field}: {value}"
    # Without a colon, only a line of exactly two words is a rule.
    words = f"{name}{rest}".split()
    is_rule = len(words) == 2 and words[0].lower().startswith(name.lower())
    return f"\n{field}: {words[1]}" if is_rule else line[0]


def as_written(body: bytes, line: Line) -> Line:
    """Return *line* of a ``corrected`` file with its field as spelled in *body*, the original."""
    text = "\n" + lines(body)[line.number - 1].decode("latin-1")
    found = _LINE.match(text)
    # A hidden line is shown in its corrected form.
    if not found or not re.fullmatch("[\t -~]*", found[2]):
        return line
    name = found[1] + found[2] if found[3] else found[1]
    return line._replace(field=name.strip(" \t").lower().encode())


# A hidden line has markup, or white space other than SP and HT, next to its field or value.
# Examples are "-->User-agent: *", and "Disallow: /a" with a no-break space. Other parsers read some
# of these lines.

# White space of Unicode and characters without a width. The last two characters are the bytes 0x85
# and 0xA0 of a file that is not UTF-8: white space in Latin-1.
_BLANK = (
    "\t\n\v\f\x1c\x1d\x1e\x1f \x85\xa0\xad\u1680\u180e\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
    "\udc85\udca0"
)
_ODD = "<>" + _BLANK.translate(dict.fromkeys(map(ord, "\t\n ")))
_ODD_OCTETS = "".join(filter(str.isascii, _ODD)).encode()
_ODD_LINE = re.compile(f"\n([^\n]*[{_ODD}][^\n]*)")
_HIDDEN_FIELD = re.compile("user-agent|disallow|allow", re.IGNORECASE | re.ASCII)
# Characters that end a line for other parsers.
_LINE_END = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_BEFORE_FIELD = f"(?=[{_BLANK}]*(?:{_HIDDEN_FIELD.pattern}))"
# A run of white space before a field matches only from its start, for linear time.
_TAG = re.compile(
    f"(<!--|-->|<[^<>]*>|>{_BEFORE_FIELD}"
    f"|(?<![{_BLANK}]){_BEFORE_FIELD}[{_BLANK.translate(dict.fromkeys(map(ord, _LINE_END)))}]*"
    f"[{_LINE_END}])",
    _HIDDEN_FIELD.flags,
)
# Only these tags are removed from a value. Other tags are text: "/user/<name>".
_ELEMENT = re.compile(
    r"<!--|-->|</.*|<(?:a|b|br|code|div|em|font|hr|i|li|p|pre|small|span|strong|td|tr|tt|u)\b.*",
    re.IGNORECASE,
)
_COMMENT = re.compile("(<[^<>]*>)|#.*")  # an attribute may have a "#"


def unhidden(body: bytes) -> bytes | None:
    """Return a file with its hidden lines corrected, or None if it has none.

    Several rules in one line are separated by a CR, so the line numbers, which count LF, do not
    change.
    """
    octets = with_line_feeds(body).encode("latin-1")
    if octets.isascii() and len(octets.translate(None, _ODD_OCTETS)) == len(octets):
        return None  # for speed: most files lack these characters
    text = octets.decode("utf-8", "surrogateescape")
    meant = _ODD_LINE.sub(_meant, text)
    return None if meant == text else meant[1:].encode("utf-8", "surrogateescape")


def _meant(line: re.Match[str]) -> str:
    first, *others = _TAG.split(_COMMENT.sub(lambda found: found[1] or "", line[1]))
    parts = [[first]]
    for tag, text in zip(others[::2], others[1::2], strict=True):
        if _HIDDEN_FIELD.match(text.lstrip(_BLANK)):
            parts.append([text])
        else:
            parts[-1] += [text] if _ELEMENT.fullmatch(tag) else [tag, text]
    rules = [rule for part in parts if (rule := _plain_rule("".join(part)))]
    read = LINE.match(line[0])
    as_read = [f"{read[1]}: {read[2]}"] if read else []
    return "\n" + "\r".join(rules) if rules and rules != as_read else line[0]


def _plain_rule(part: str) -> str:
    field, colon, value = part.partition(":")
    field = field.strip(_BLANK)
    return f"{field}: {value.strip(_BLANK)}" if colon and _HIDDEN_FIELD.fullmatch(field) else ""
