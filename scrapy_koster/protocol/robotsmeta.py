"""The robots META tag and the X-Robots-Tag header of a page.

"The Robots META tag allows HTML authors to indicate to visiting robots if a
document may be indexed, or used to harvest more links."

The quoted text ("Spiders and Robots Exclusion") has META tags only. X-Robots-Tag is
the present-day equivalent in the HTTP header.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from scrapy_koster.protocol.nametoken import TOKEN
from scrapy_koster.protocol.printable import printable

Directives: TypeAlias = dict[str, str]
"""The directives of a page, "noindex" and "nofollow", with the printable text of the first tag or
header that has the directive.
"""

EVERY_ROBOT = "robots"
"""The name of a META tag that addresses every robot."""

AI_WORDS = ("noai", "noimageai")
"""Words about AI in the robots META tag and in X-Robots-Tag."""

# "NONE = NOINDEX, NOFOLLOW". The most restrictive of several tags counts, so ALL, INDEX
# and FOLLOW have no effect and are ignored like unknown words.
_FORBIDDING = {"noindex": {"noindex", "none"}, "nofollow": {"nofollow", "none"}}

# Present-day words with a value (max-image-preview: none). The value is not a
# directive, and the word before the colon is not the name of a robot.
_TAKES_VALUE = r"max-image-preview|max-snippet|max-video-preview|unavailable_after"
_VALUE = re.compile(rf"(?:{_TAKES_VALUE})\s*[:=]\s*[^\s,;]*")
# A word may contain ":" and "=", so a word and its value stay one word. The remaining characters
# separate words: "noindex; nofollow", "noindex|nofollow".
_WORD = re.compile("[a-z0-9_:=-]+")
# Digits before a colon are not a name, but a time of day after unavailable_after.
_ADDRESSEE = re.compile(rf"\s*(?!(?:{_TAKES_VALUE}|[0-9]+)\s*:)({TOKEN})\s*:")

# "The Robots META tag name and values are case-insensitive." In ASCII only:
# str.lower() makes a k of the Kelvin sign.
_ASCII_SPACE = "\t\n\f\r "
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


Said: TypeAlias = tuple[list[str], str]
"""The words for a robot in a tag or header, and the text of the tag or header."""

_HEADERS_CHARS = 65_536
"""Section 6: a limit for the X-Robots-Tag headers of one page."""


def directives_of(
    metas: Iterable[tuple[str, str]], headers: Iterable[str], token: str
) -> Directives:
    """Return the directives of a page for the robot *token*.

    *metas* are the names and contents of the META tags of the page, *headers* the values of its
    X-Robots-Tag headers. Headers of more than 65,536 characters together are not read, and forbid
    indexing and following.
    """
    found: Directives = {}
    for words, text in (*said_by_headers(headers, token), *said_by_metas(metas, token)):
        for directive, forbidding in _FORBIDDING.items():
            if not forbidding.isdisjoint(words):
                found.setdefault(directive, printable(text))
    return found


def names_for(token: str) -> tuple[str, ...]:
    """Return the names of META tags for the robot *token*."""
    return (EVERY_ROBOT, token or EVERY_ROBOT)


def said_by_metas(metas: Iterable[tuple[str, str]], token: str) -> Iterator[Said]:
    """Yield the words of META tags for the robot *token*.

    The name of a META tag must equal "robots" or *token*. If *token* is "", only "robots"
    counts. In contrast, the value of a User-agent line need only contain the token (3.2.1).
    """
    for name, content in metas:
        addressee = name.strip(_ASCII_SPACE)
        if _lower(addressee) in names_for(token):
            yield _words(_lower(content)), f'META name="{addressee}" content="{content}"'


def said_by_headers(values: Iterable[str], token: str) -> Iterator[Said]:
    """Yield the words of X-Robots-Tag values for the robot *token*.

    ``figtree: noindex, nofollow`` is only for figtree: a name applies to the words up to
    the next name after a comma or semicolon, or up to the end of the value. Headers of more
    than 65,536 characters together are not read, and yield "none" and the words about AI.
    """
    values = list(values)
    chars = len(", ".join(values))
    if chars > _HEADERS_CHARS:
        yield ["none", *AI_WORDS], f"X-Robots-Tag of {chars} characters"
        return
    for value in values:
        yield list(_words_for(token, _lower(value))), f"X-Robots-Tag: {value}"


def _words_for(token: str, value: str) -> Iterator[str]:
    addressee = EVERY_ROBOT
    for rule in value.replace(";", ",").split(","):
        start = 0
        while name := _ADDRESSEE.match(rule, start):
            addressee = name[1]
            start = name.end()
        if addressee in (EVERY_ROBOT, "*", token):
            yield from _words(rule[start:])


def _words(text: str) -> list[str]:
    return _WORD.findall(_VALUE.sub(" ", text))


def _lower(text: str) -> str:
    return text.translate(_ASCII_LOWER)
