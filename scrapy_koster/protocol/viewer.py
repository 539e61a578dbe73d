"""The page in which a browser shows a text file: a crawl that renders gets it for robots.txt."""

from __future__ import annotations

import re
from html import unescape

_BLANK = b" \t\n\r\f\v\xef\xbb\xbf"
_PAGE = re.compile(rb"[%b]*<" % _BLANK)
_PRE = re.compile(rb"<pre\b[^<>]*>([^<]*)(?:</pre\b|\Z)", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]*>")


def unwrapped(body: bytes) -> bytes:
    """Return the text of a page whose body is one ``<pre>`` of text; any other file as it is."""
    pre = _PRE.search(body) if _PAGE.match(body) else None
    if pre is None:
        return body
    # What a head has is not shown. Both parts may begin within an end tag.
    front, behind = body[: pre.start()].rpartition(b"</head")[1:], body[pre.end() :]
    shown = _TAG.sub(b"", b"".join(front) + b"</pre" * bool(behind) + behind)
    return body if shown.strip(_BLANK) else _decoded(pre[1])


def _decoded(text: bytes) -> bytes:
    try:
        shown = unescape(text.decode("utf-8", "surrogateescape"))
    except ValueError:  # a character reference of more digits than int() takes
        return text
    return shown.encode("utf-8", "surrogateescape")
