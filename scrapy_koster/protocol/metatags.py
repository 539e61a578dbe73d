"""The META tags of a page, with their name and content.

The page is read by section 13.2 of the HTML standard, but no tree is built.
"""

import re
from collections.abc import Iterable, Iterator

from scrapy_koster.protocol.line import unescaped

# How a page is read. Whether <meta> is a tag depends on the text before it: in a comment, in a
# title or in the value of an attribute it is text. So a page is read from the start, as in 13.2,
# up to the last tag that may have a wanted name. Most pages have no such tag, and are not read.
# The nesting of elements is ignored: a tag in a template or a CDATA section counts, and SVG is read
# as HTML. So a browser may find fewer tags.
#
# The time is linear in the length of the page: the search goes on at the end of a tag, and never
# goes back.

# 13.2.5.32 to 13.2.5.39: attributes, up to the first ">" outside of quotes, or to the end of
# the page. The pattern cannot fail, so there is no backtracking. A match has 64 attributes at most,
# to limit the memory.
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

# 13.2.6.4: elements with only text as content. noscript is not among these, because robots run no
# scripts.
_TEXT_END = {
    name: re.compile(rb"</%s(?=[%s/>])" % (name, _SPACE))
    for name in b"iframe noembed noframes script style textarea title xmp".split()
}


def metas_of_page(html: bytes, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and content of META tags: tags with a name in *names*, and perhaps others.

    The caller must compare the names. *names* are in lower case. *html* may have any encoding that
    contains ASCII. A tag with a name written in character references may be missed.
    """
    lower = html.lower()
    last_name = max(lower.rfind(name.encode()) for name in names)
    last = lower.rfind(b"<meta", 0, max(last_name, 0))
    for tag in _meta_tags(lower, last):
        if meta := _name_and_content(html[tag]):
            yield meta


def _name_and_content(tag: bytes) -> tuple[str, str] | None:
    given: dict[bytes, bytes] = {}
    for attribute in _ONE_ATTRIBUTE.finditer(tag, len(b"<meta")):
        key, *values = attribute.groups(b"")
        # 13.2.5.33: of attributes with the same name, the first counts.
        given.setdefault(key.lower(), b"".join(values))
        if b"name" in given and b"content" in given:
            name, content = given[b"name"].decode(errors="replace"), given[b"content"]
            return unescaped(name), unescaped(content.decode(errors="replace"))
    return None


def _meta_tags(html: bytes, last: int) -> Iterator[slice]:
    """Yield the slices of *html* (in lower case) that are META tags, up to the tag at *last*."""
    position = 0
    while 0 <= (start := html.find(b"<", position)) <= last:
        tag = _TAG.match(html, start)
        if tag is None:
            position = _no_tag_end(html, start)
            continue
        slash, name = tag.groups()
        rest = _before_end(html, tag.end())
        position = rest.end() + 1
        if name == b"meta" and not slash and position <= len(html):
            yield slice(start, position)
        # <title/>, as in XML and SVG, is an empty element.
        elif name in _TEXT_END and not slash and not rest[1].endswith(b"/"):
            end = _TEXT_END[name].search(html, position)
            position = end.start() if end else len(html)


def _before_end(html: bytes, inside: int) -> re.Match[bytes]:
    """Return a match that ends before the ">" of a tag, or at the end of the page.

    *inside* is the index after the name of the tag. If there are more than 64
    attributes, the match has only the last ones. Group 1 is the text after the attributes.
    """
    while True:
        rest = _ATTRIBUTES.match(html, inside)
        assert rest is not None
        inside = rest.end()
        if inside == len(html) or html.startswith(b">", inside):
            return rest


def _no_tag_end(html: bytes, start: int) -> int:
    """Return the end of the comment, declaration or single "<" that begins at *start*."""
    if html.startswith(b"<!--", start):
        end = _COMMENT_END.search(html, start + len(b"<!--"))
        return end.end() if end else len(html)
    if html.startswith((b"<!", b"<?", b"</"), start):
        return html.find(b">", start) + 1 or len(html)
    return start + 1
