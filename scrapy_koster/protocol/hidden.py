"""Lines that neither standard reads: behind markup, or with other space than SP and HT around.

``-->User-agent: *`` is one, and ``Disallow: /a`` with a no-break space. Other parsers read some of
them. Here only ``Strictest`` does, to forbid more, and for the other readings they are hazards.
What is read is listed in docs/semantics.md.
"""

from __future__ import annotations

import re

from scrapy_koster.protocol.line import LINE, with_line_feeds

# White space of Unicode and characters without a width. The last two are spaces of Latin-1, in a
# file that is no UTF-8.
_BLANK = (
    "\t\n\v\f\x1c\x1d\x1e\x1f \x85\xa0\xad\u1680\u180e\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
    "\udc85\udca0"
)
_ODD = "<>" + _BLANK.translate(dict.fromkeys(map(ord, "\t\n ")))
_ODD_OCTETS = "".join(filter(str.isascii, _ODD)).encode()
_ODD_LINE = re.compile(f"\n([^\n]*[{_ODD}][^\n]*)")
_FIELD = re.compile("user-agent|disallow|allow", re.IGNORECASE | re.ASCII)
# Characters that other parsers end a line at.
_LINE_END = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_BEFORE_FIELD = f"(?=[{_BLANK}]*(?:{_FIELD.pattern}))"
# The white space in front of a field is looked at once, from its beginning.
_TAG = re.compile(
    f"(<!--|-->|<[^<>]*>|>{_BEFORE_FIELD}"
    f"|(?<![{_BLANK}]){_BEFORE_FIELD}[{_BLANK.translate(dict.fromkeys(map(ord, _LINE_END)))}]*"
    f"[{_LINE_END}])",
    _FIELD.flags,
)
# In a value another tag is none of HTML: "/user/<name>".
_ELEMENT = re.compile(
    r"<!--|-->|</.*|<(?:a|b|br|code|div|em|font|hr|i|li|p|pre|small|span|strong|td|tr|tt|u)\b.*",
    re.IGNORECASE,
)
_COMMENT = re.compile("(<[^<>]*>)|#.*")  # an attribute may have a "#"


def unhidden(body: bytes) -> bytes | None:
    """Return a file with such lines as they are meant, None if it has none.

    If one has several rules they are parted by CR, so that the others keep their numbers by LF.
    """
    octets = with_line_feeds(body).encode("latin-1")
    if octets.isascii() and len(octets.translate(None, _ODD_OCTETS)) == len(octets):
        return None  # for speed alone: most files have none of these
    text = octets.decode("utf-8", "surrogateescape")
    meant = _ODD_LINE.sub(_meant, text)
    return None if meant == text else meant[1:].encode("utf-8", "surrogateescape")


def _meant(line: re.Match[str]) -> str:
    first, *others = _TAG.split(_COMMENT.sub(lambda found: found[1] or "", line[1]))
    parts = [[first]]
    for tag, text in zip(others[::2], others[1::2], strict=True):
        if _FIELD.match(text.lstrip(_BLANK)):
            parts.append([text])
        else:
            parts[-1] += [text] if _ELEMENT.fullmatch(tag) else [tag, text]
    rules = [rule for part in parts if (rule := _rule("".join(part)))]
    read = LINE.match(line[0])
    as_read = [f"{read[1]}: {read[2]}"] if read else []
    return "\n" + "\r".join(rules) if rules and rules != as_read else line[0]


def _rule(part: str) -> str:
    field, colon, value = part.partition(":")
    field = field.strip(_BLANK)
    return f"{field}: {value.strip(_BLANK)}" if colon and _FIELD.fullmatch(field) else ""
