"""The robots META tag, and the headers X-Robots-Tag and Robots-Tag of a page.

"The Robots META tag allows HTML authors to indicate to visiting robots if a
document may be indexed, or used to harvest more links."

The quoted text ("Spiders and Robots Exclusion") has META tags only. X-Robots-Tag is
the present-day equivalent in the HTTP header. Robots-Tag is to replace X-Robots-Tag: "Robots
Exclusion Protocol Extension for URL Level Control" (draft-illyes-repext-03, called repext here).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from scrapy_koster.protocol.nametoken import TOKEN
from scrapy_koster.protocol.printable import printable

Directives: TypeAlias = dict[str, str]
"""The directives of a page, "noindex" and "nofollow", with the printable text of the first tag or
header that has the directive.
"""

Headers: TypeAlias = Mapping[bytes, Sequence[bytes]]
"""Header fields of a response, in title case: one value per header line."""

ROBOTS_FIELDS = _X_TAG, _TAG = (b"X-Robots-Tag", b"Robots-Tag")
"""The header fields with directives."""

EVERY_ROBOT = "robots"
"""The name of a META tag that addresses every robot."""

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
"""Section 6: a limit for the X-Robots-Tag headers of one page, and for its Robots-Tag headers."""


def directives_of(metas: Iterable[tuple[str, str]], headers: Headers, token: str) -> Directives:
    """Return the directives of a page for the robot *token*.

    *metas* are the names and contents of the META tags of the page, *headers* its ROBOTS_FIELDS.
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


def said_by_headers(headers: Headers, token: str) -> Iterator[Said]:
    """Yield the words of X-Robots-Tag and Robots-Tag for the robot *token*.

    ``X-Robots-Tag: figtree: noindex, nofollow`` is only for figtree: a name applies to the words up
    to the next name after a comma or semicolon, or up to the end of the value. Headers of more
    than 65,536 characters together are not read, and yield "none" and the words about AI.

    ``Robots-Tag: *;noindex, figtree;nofollow`` has a name and its words between commas. Only the
    first 65,536 characters are read.
    """
    values = [value.decode("latin-1") for value in headers.get(_X_TAG, ())]
    chars = len(", ".join(values))
    if chars > _HEADERS_CHARS:
        yield ["none", "noai", "noimageai"], f"X-Robots-Tag of {chars} characters"
    else:
        for value in values:
            yield list(_words_for(token, _lower(value))), f"X-Robots-Tag: {value}"
    if field := b", ".join(headers.get(_TAG, ())).decode("latin-1"):
        yield list(_rules_for(token, _lower(field))), f"Robots-Tag: {field}"


def _rules_for(token: str, field: str) -> Iterator[str]:
    # Repext, 3.1.1: "a List [...]. Each member of the List is an Item representing a product token.
    # Rules applicable to a product token are defined as Parameters of that Item". "Any partially
    # transmitted or truncated List member at the limit, and all subsequent bytes in that field,
    # MUST be ignored." Rules "are case insensitive" (3.1.3), and drafts have "ExampleBot;": RFC
    # 9651 would ignore a field with either, so it is not parsed as strictly.
    for member in f"{field},"[: _HEADERS_CHARS + 1].rpartition(",")[0].split(","):
        name, *rules = member.split(";")
        # "A restriction applied to the global * token applies to all accessors".
        if name.strip(' \t"') in ("*", token):
            for rule, _, value in (each.partition("=") for each in rules):
                if value.strip() != "?0":  # RFC 9651, 3.3.6: false
                    yield rule.strip()


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
