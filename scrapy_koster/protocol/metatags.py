"""Where the META tags of a page are, and what they have as name and content.

Section 13.2 of the HTML standard, as much of it as that takes: no tree is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from html import unescape

EVERY_ROBOT = "robots"
"""The name of a META tag that addresses every robot."""


class Syntax(Enum):
    """How a page is written, which its Content-Type says."""

    HTML = "html"
    XML = "xml"


# The theory. Where a tag begins depends on all that is before it: <meta> in a comment, in
# a title or in the value of an attribute is text. So a page is read from its start, as 13.2
# has it, up to the last tag that may have one of the names: most pages have none, and are
# not read at all. It needs no tree but what changes how text is read: whether this is in a
# template, SVG or MathML (_Nesting), and where the text of a title or script ends.
#
# It takes a time that is linear in the length of the page: it goes on where a tag ends, and
# never back.

# 13.2.5.32 to 13.2.5.39: attributes, up to the ">" that no quotes protect or to the
# end. The pattern cannot fail, so it never goes back; its bound keeps memory small.
_SPACE = rb"\t\n\f\r "
_ATTRIBUTE = (
    rb"([^%(s)s/>][^%(s)s/>=]*)"
    rb"""(?:[%(s)s]*=[%(s)s]*(?:"([^"]*)(?:"|\Z)|'([^']*)(?:'|\Z)|([^%(s)s>]*)))?"""
) % {b"s": _SPACE}
_ONE_ATTRIBUTE = re.compile(_ATTRIBUTE)
_ATTRIBUTES = re.compile(
    rb"(?:[%(s)s/]*%(attribute)s){0,64}([%(s)s/]*)"
    % {b"s": _SPACE, b"attribute": re.sub(rb"\((?!\?)", b"(?:", _ATTRIBUTE)}
)

_TAG = re.compile(rb"<(/?)([a-z][^%s/>]*)" % _SPACE)
_COMMENT_END = re.compile(rb"(?<=<!--)-?>|--!?>")

# 13.2.6.4: their content is text. That of noscript is markup: robots run no scripts.
_TEXT_END = {
    name: re.compile(rb"</%s(?=[%s/>])" % (name, _SPACE))
    for name in b"iframe noembed noframes style textarea title xmp".split()
}
_SPECIAL = (b"meta", b"plaintext", b"script", b"template")
_SCRIPT_MARK = re.compile(rb"<!--|-->|</?script(?=[%s/>])" % _SPACE)

# 13.2.6.5: the HTML elements that end SVG or MathML, and the foreign elements which
# have HTML in them.
_BREAKOUT = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head"
    b" hr i img li listing menu meta nobr ol p pre ruby s small span strong strike sub"
    b" sup table tt u ul var".split()
)
_HTML_INSIDE = {
    b"svg": frozenset(b"desc foreignobject title".split()),
    b"math": frozenset(b"mi mn mo ms mtext".split()),
}
_DEEPEST = 64


def metas_of_page(html: bytes, syntax: Syntax, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the (name, content) of the META tags of a page, of all that have one of *names*.

    *html* may have any encoding in which ASCII is ASCII; *names* are in lower case. A name that
    the page writes with character references is not looked for.
    """
    lower = html.lower()
    last_name = max(lower.rfind(name.encode()) for name in names)
    last = lower.rfind(b"<meta", 0, max(last_name, 0))
    for tag in _meta_tags(lower, syntax, last):
        if meta := _name_and_content(html[tag]):
            yield meta


def _name_and_content(tag: bytes) -> tuple[str, str] | None:
    given: dict[bytes, bytes] = {}
    for attribute in _ONE_ATTRIBUTE.finditer(tag, len(b"<meta")):
        name, double_quoted, single_quoted, unquoted = attribute.groups(b"")
        # 13.2.5.33: of attributes with the same name the first holds.
        given.setdefault(name.lower(), double_quoted or single_quoted or unquoted)
        if b"name" in given and b"content" in given:
            return _text(given[b"name"]), _text(given[b"content"])
    return None


def _text(value: bytes) -> str:
    text = value.decode("utf-8", "replace")
    try:
        return unescape(text)
    except ValueError:  # a character reference of more digits than int() takes
        return text


def _meta_tags(html: bytes, syntax: Syntax, last: int) -> Iterator[slice]:
    """Yield where the META tags of *html*, in lower case, are that begin at *last* or before."""
    nesting = _Nesting(syntax)
    position = 0
    while 0 <= (start := html.find(b"<", position)) <= last:
        tag = _TAG.match(html, start)
        if tag is None:
            position = _no_tag_end(html, start, nesting)
            continue
        slash, name = tag.groups()
        rest = _before_end(html, tag.end())
        position = rest.end() + 1
        if slash:
            nesting.end(name)
            continue
        nesting.break_out(name)
        if name == b"meta":
            if position <= len(html) and not nesting.in_template:
                yield slice(start, position)
        elif not (rest[1].endswith(b"/") and nesting.may_be_empty(name)):
            position = _content_end(html, name, position, nesting)


def _before_end(html: bytes, inside: int) -> re.Match[bytes]:
    """Match what a tag has before the ">" that ends it, or before the end of the page.

    The last of its attributes suffice; group 1 is what follows them.
    """
    while True:
        rest = _ATTRIBUTES.match(html, inside)
        assert rest is not None
        inside = rest.end()
        if inside == len(html) or html.startswith(b">", inside):
            return rest


def _no_tag_end(html: bytes, start: int, nesting: _Nesting) -> int:
    """Return where what begins with "<" and is no tag ends: a comment, or a mere "<"."""
    if html.startswith(b"<!--", start):
        end = _COMMENT_END.search(html, start + len(b"<!--"))
        return end.end() if end else len(html)
    if nesting.xml and html.startswith(b"<?", start):
        return _after(b"?>", html, start)
    if nesting.may_have_cdata and html.startswith(b"<![cdata[", start):
        return _after(b"]]>", html, start)
    if html.startswith((b"<!", b"<?", b"</"), start):
        return _after(b">", html, start)
    return start + 1


def _after(end: bytes, html: bytes, start: int) -> int:
    found = html.find(end, start)
    return found + len(end) if found >= 0 else len(html)


def _content_end(html: bytes, name: bytes, position: int, nesting: _Nesting) -> int:
    """Return where markup goes on after the start tag *name*."""
    if not nesting.foreign:
        if name == b"script":
            return _script_end(html, position)
        if name == b"plaintext":
            return len(html)
        if name in _TEXT_END:
            end = _TEXT_END[name].search(html, position)
            return end.start() if end else len(html)
    nesting.start(name)
    return position


def _script_end(html: bytes, position: int) -> int:
    """13.2.5.15 to 13.2.5.31: a script in a comment in a script does not end it."""
    commented = nested = False
    while mark := _SCRIPT_MARK.search(html, position):
        position = mark.end()
        match mark[0]:
            case b"<!--":
                commented = True
                position -= len(b"--")  # they may be those of "-->"
            case b"-->":
                commented = nested = False
            case b"<script":
                nested = commented
            case _ if nested:
                nested = False
            case _:
                return mark.start()
    return len(html)


class _Nesting:
    """The open elements that change how their content is read."""

    def __init__(self, syntax: Syntax) -> None:
        self.xml = syntax is Syntax.XML
        self.in_template = False
        self._open: list[bytes] = []

    @property
    def foreign(self) -> bool:
        """Whether this is SVG or MathML, and not HTML inside of it."""
        return bool(self._open) and self._open[-1] in _HTML_INSIDE

    @property
    def may_have_cdata(self) -> bool:
        return self.xml or self.foreign

    def may_be_empty(self, name: bytes) -> bool:
        return self.xml or self.foreign or name in _HTML_INSIDE

    def break_out(self, name: bytes) -> None:
        if name in _BREAKOUT:
            while self.foreign:
                self._open.pop()

    def start(self, name: bytes) -> None:
        inside = _HTML_INSIDE[self._open[-1]] if self.foreign else {b"template"}
        if (name in inside or name in _HTML_INSIDE) and len(self._open) < _DEEPEST:
            self._open.append(name)
            self.in_template = self.in_template or name == b"template"

    def end(self, name: bytes) -> None:
        if name in {b"p", b"br"}:
            self.break_out(b"p")
        for depth in range(len(self._open) - 1, -1, -1):
            if self._open[depth] == name:
                del self._open[depth:]
                self.in_template = b"template" in self._open
                break
            if self._open[depth] == b"template":
                break
