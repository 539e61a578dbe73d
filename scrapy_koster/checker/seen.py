"""Findings about a single line of a /robots.txt."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from scrapy_koster.protocol.delay import seconds
from scrapy_koster.protocol.nametoken import TOKEN
from scrapy_koster.protocol.path import unescape
from scrapy_koster.protocol.ruling import Standard

_LINE_MAX = 2083
SPACE = b" \t"
AGENT = b"user-agent"
RULES = (b"disallow", b"allow")
NAME_TOKEN = re.compile(TOKEN.encode())


class Seen(NamedTuple):
    """A finding before its message is written. Only listed findings get a message."""

    code: str
    line: int
    column: int
    said: str
    texts: tuple[bytes | int, ...] = ()
    readings: tuple[Standard, ...] = ()
    """The standards to which the finding applies. If empty, the standards of its ``Check``."""


class SourceLine(NamedTuple):
    """A line of the file, split into field and value as ``records.parse`` splits it."""

    number: int
    text: bytes
    field: bytes
    """The field in lower case, or b"" without a colon."""
    colon: int
    """Index of the colon, or -1 without a colon."""
    value: bytes
    said_end: int
    """Index of the start of the comment, or the length of the line if there is no comment."""

    @property
    def column(self) -> int:
        return len(self.text) - len(self.text.lstrip(SPACE)) + 1

    @property
    def value_column(self) -> int:
        return self.text.find(self.value, self.colon + 1) + 1

    def seen(self, code: str, column: int, said: str, *texts: bytes | int) -> Seen:
        """Return a finding in this line."""
        return Seen(code, self.number, column, said, texts)


def taken_apart(number: int, text: bytes) -> SourceLine:
    """Return the line *number*, split into field and value."""
    said = text.partition(b"#")[0]
    field, colon, value = said.partition(b":")
    if not colon:
        return SourceLine(number, text, b"", -1, b"", len(said))
    field_end = len(field)
    field = field.strip(SPACE).lower()
    return SourceLine(number, text, field, field_end, value.strip(SPACE), len(said))


def seen_in_line(source: SourceLine) -> Iterator[Seen]:
    """Yield the findings about one line."""
    if len(source.text) > _LINE_MAX:
        yield source.seen("K006", _LINE_MAX + 1, "the line has {} bytes", len(source.text))
    if _ODD.search(source.text):
        yield from _seen_in_octets(source)
    if source.colon < 0:
        if source.text[: source.said_end].strip(SPACE):
            yield _no_colon(source)
        return
    if source.text[source.colon - 1 : source.colon] in (b" ", b"\t") and source.field:
        yield source.seen("K014", source.colon, "space before the colon")
    if source.field == AGENT:
        yield from _seen_in_agent(source)
    elif source.field in RULES:
        yield from _seen_in_rule(source)
    else:
        yield from _seen_in_field(source)


_ODD = re.compile(rb"[^\t\x20-\x7e]")
# B2: the characters that end a line for str.splitlines(), except CR and LF, as bytes of UTF-8.
_SEPARATOR = re.compile(rb"[\x0b\x0c\x1c-\x1e]|\xc2\x85|\xe2\x80[\xa8\xa9]")
# 3.3: CTL = octets 0 - 31 and DEL, without HT, CR, LF and the bytes of _SEPARATOR.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1b\x1f\x7f]")
_NON_ASCII = re.compile(rb"[\x80-\xff]")


def _seen_in_octets(source: SourceLine) -> Iterator[Seen]:
    """Yield findings about unusual bytes: control characters, and bytes outside of ASCII.

    Comments may contain text in any language, so K017 and K018 are not reported in comments.
    """
    text = source.text
    if found := _SEPARATOR.search(text):
        yield source.seen("K015", found.start() + 1, "{} ends the line for some readers", found[0])
    if found := _CONTROL.search(text):
        yield source.seen("K016", found.start() + 1, "control character {}", found[0])
    if text.isascii():
        return
    if found := _NON_ASCII.search(text, 0, source.said_end):
        code, said = "K017", "not ASCII: {}"
        try:
            text.decode()
        except UnicodeDecodeError:
            code, said = "K018", "not UTF-8: {}"
        shown = text[found.start() : source.said_end].rstrip(SPACE)
        yield source.seen(code, found.start() + 1, said, shown)


_WORDS = re.compile(rb"([A-Za-z_-]+)(?:[ \t]+[A-Za-z]+)?")


def _no_colon(source: SourceLine) -> Seen:
    said = source.text[: source.said_end].strip(SPACE)
    if _begins_with_field(said):
        return source.seen("K010", source.column, "no colon: {}", said)
    shown = "neither a field with a value nor a comment: {}"
    return source.seen("K011", source.column, shown, said)


def _begins_with_field(text: bytes) -> bool:
    words = _WORDS.match(text)
    return words is not None and any(_spelt(word) in _SPELT for word in words.group(1, 0))


def _seen_in_field(source: SourceLine) -> Iterator[Seen]:
    column, field = source.column, source.field
    meant, is_token = _meant(field), NAME_TOKEN.fullmatch(field)
    if not is_token and _spelt(field) not in _SPELT and _begins_with_field(field):
        yield source.seen("K010", column, "no colon after the field: {}", source.text.strip(SPACE))
    elif meant:
        yield source.seen("K012", column, "{} is not {}", field, meant)
    elif not is_token:
        yield source.seen("K013", column, "not a token before the colon: {}", field)
    elif field == b"sitemap":
        if not _URL.match(source.value):
            yield source.seen("K061", column, "no full URL: {}", source.value)
    elif field == b"crawl-delay":
        if seconds(source.value) is None:
            yield source.seen("K062", column, "no number: {}", source.value)
    elif field not in _EXTENSIONS:
        if near := _EXTENSION_MEANT.get(_spelt(field)):
            yield source.seen("K060", column, "an unknown field: {}, perhaps {}", field, near)
        else:
            yield source.seen("K060", column, "an unknown field: {}", field)


_EXTENSIONS = frozenset(
    (
        # www.conman.org/people/spc/robots2.html, "An Extended Standard for Robot Exclusion"
        b"comment", b"request-rate", b"robot-version", b"visit-time",
        b"host", b"clean-param",  # yandex.com/support/webmaster/controlling-robot/robots-txt.html
        b"noindex",  # read by Google until 2019
        b"content-signal",  # contentsignals.org
        b"content-usage",  # draft-ietf-aipref-attach
        b"license",  # rslstandard.org
        b"site-map", b"sitemaps",  # Protego
    )
)  # fmt: skip
"""Fields that some robots read or used to read, except Sitemap and Crawl-delay."""


_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_NOT_LETTERS = bytes(set(range(256)) - set(_LETTERS))
_DOUBLED = re.compile(rb"(.)\1+")


def _spelt(word: bytes) -> bytes:
    """Return the letters of a word in lower case, with repeated letters reduced to one."""
    return _DOUBLED.sub(rb"\1", word.lower().translate(None, _NOT_LETTERS))


def _near(word: bytes) -> Iterator[bytes]:
    """Yield *word*, and the spellings of *word* with one typing error."""
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        yield head + tail[1:]
        yield head + tail[1:2] + tail[:1] + tail[2:]
        for letter in _LETTERS:
            yield head + bytes([letter]) + tail[1:]
            yield head + bytes([letter]) + tail


_SPELT = {_spelt(name): name for name in (b"Allow", b"Disallow", b"User-agent")}
_MEANT = {slip: name for word, name in _SPELT.items() for slip in _near(word)}
_EXTENSION_MEANT = {
    slip: name
    for name in (*sorted(_EXTENSIONS), b"crawl-delay", b"sitemap")  # the last name wins
    for slip in _near(_spelt(name))
}
_FIELD_MAX = 20


def _meant(field: bytes) -> bytes | None:
    """Return the known field that *field* probably misspells, or None (B9)."""
    for name in _SPELT.values():
        if field.startswith(name.lower()) and field[len(name) :].isalpha():  # Disallowed
            return name
    return _MEANT.get(_spelt(field)) if len(field) <= _FIELD_MAX else None


def _seen_in_agent(source: SourceLine) -> Iterator[Seen]:
    value, column = source.value, source.value_column
    if not value:
        yield source.seen("K020", source.column, "no robot is named")
    elif b"*" in value and value != b"*":
        yield source.seen("K021", column, "{} is not the record for all others", value)
    elif not NAME_TOKEN.fullmatch(value):
        yield source.seen("K022", column, "{} is not one name token", value)


_URL = re.compile(rb"https?://", re.IGNORECASE)
_IN_PATH = (
    ("K042", re.compile(rb"[*]"), "'*' is no wildcard: {}"),
    ("K043", re.compile(rb"[$]\Z"), "'$' is not the end of the path: {}"),
    ("K044", re.compile(rb"%(?![0-9A-Fa-f]{2})"), "no escape: {}"),
    ("K051", re.compile(rb"[ \t]"), "a space in the path {}"),
)


# Section 6: attackers look for paths with these names, and a robots.txt reveals such a path.
_TELLING = re.compile(
    rb"/(?:(?:php|my|phpmy)?admin(?:istrator|istration|s)?|backups?|bak|dumps?|private|secrets?"
    rb"|confidential|hidden|internal|intranet|passw(?:or)?ds?|credentials|staging"
    rb"|\.(?:env|git|svn|htpasswd))(?:\.[a-z]{2,5})?(?![a-z0-9_.%-])",
    re.IGNORECASE,
)


def _seen_in_rule(source: SourceLine) -> Iterator[Seen]:
    """Yield the findings about the path of an Allow or Disallow line."""
    path, start = source.value, source.value_column
    if not path:
        if source.field == b"allow":
            yield source.seen("K050", source.column, "an empty Allow line matches nothing")
        return
    if _URL.match(path):
        yield source.seen("K041", start, "a full URL, not a path: {}", path)
    elif path[:1] not in (b"/", b"*"):  # a "*" at the start is K042
        yield source.seen("K040", start, "no slash before the path {}", path)
    for code, sign, said in _IN_PATH:
        if found := sign.search(path):
            yield source.seen(code, start + found.start(), said, path)
    end = source.said_end
    if end < len(source.text) and source.text[end - 1 : end] not in (b" ", b"\t"):
        yield source.seen("K045", end + 1, "the path ends before the '#': {}", path)
    if unescape(path.decode("latin-1")) == "/robots.txt":
        yield source.seen("K046", start, "/robots.txt is always allowed")
    if source.field == b"disallow" and (found := _TELLING.search(path)):
        yield source.seen("K052", start + found.start(), "the file reveals {}", path)
