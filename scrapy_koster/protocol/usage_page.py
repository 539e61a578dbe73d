"""The preferences of a page, in the headers of the response and in META tags.

Content-Usage is defined by draft-ietf-aipref-attach (2), tdm-reservation and tdm-policy by the TDM
Reservation Protocol (a W3C Community Group Report of 2024). The words "noai" and "noimageai" of the
robots META tag and of X-Robots-Tag are in no standard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from scrapy_koster.protocol.metatags import metas_of_page
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.robotsmeta import Said, names_for, said_by_headers, said_by_metas
from scrapy_koster.protocol.usage import (
    KNOWN_LABELS,
    NO_IMAGE_AI,
    TDM,
    TRAIN_AI,
    Origin,
    Preference,
    Stated,
    Statement,
    kept_of,
    line_text,
    preferences_in,
)

FIELDS = (b"Content-Usage", b"X-Robots-Tag", b"Tdm-Reservation", b"Tdm-Policy")
"""The header fields that may state preferences."""

Headers: TypeAlias = Mapping[bytes, Sequence[bytes]]
"""The values of the ``FIELDS`` in a response: one value per header line."""

_USAGE, _ROBOTS, *_TDM = FIELDS
_TDM_NAMES = [name.decode().lower() for name in _TDM]

_AI_LABELS = {"noai": TRAIN_AI, "noimageai": NO_IMAGE_AI}
_RESERVED = {"1": Preference.DISALLOW, "0": Preference.ALLOW}
_SPACE = "\t\n\f\r "
_TEXT_CHARS = 200


def page_statements(
    headers: Headers, page: bytes, token: str, *, labels: Collection[str] = KNOWN_LABELS
) -> tuple[Statement, ...]:
    """Return the statements for the robot *token* in the headers and META tags of a page.

    *page* is the body, or b"" for a page without META tags.
    """
    metas = list(metas_of_page(page, (*names_for(token), *_TDM_NAMES)))
    found = [*_of_headers(headers, token, labels), *_of_metas(metas, token)]
    return tuple(kept_of(found, labels))


def _of_headers(headers: Headers, token: str, labels: Collection[str]) -> Iterator[Statement]:
    if usages := headers.get(_USAGE):
        # RFC 9651, 4.2: several lines of a field are one list, joined by commas.
        value = b", ".join(usages)
        yield _statement(Origin.HEADER, line_text(_USAGE, value), preferences_in(value, labels))
    for field, name in zip(_TDM, _TDM_NAMES, strict=True):
        for value in headers.get(field, ()):
            stated = _reservation(name, value.decode("latin-1"))
            yield _statement(Origin.HEADER, line_text(field, value), stated)
    tags = (value.decode("latin-1") for value in headers.get(_ROBOTS, ()))
    yield from _of_words(Origin.HEADER, said_by_headers(tags, token))


def _of_metas(metas: Sequence[tuple[str, str]], token: str) -> Iterator[Statement]:
    for name, content in metas:
        lower = name.strip(_SPACE).lower()
        if lower in _TDM_NAMES:
            text = f'name="{lower}" content="{content}"'
            yield _statement(Origin.META, text, _reservation(lower, content))
    yield from _of_words(Origin.META, said_by_metas(metas, token))


def _of_words(origin: Origin, said: Iterable[Said]) -> Iterator[Statement]:
    for words, text in said:
        for label in (label for word, label in _AI_LABELS.items() if word in words):
            stated = ((label, Preference.DISALLOW),)
            yield _statement(origin, text.removeprefix("META "), stated)


def _reservation(name: str, value: str) -> Stated:
    """Return the preference if *name* is tdm-reservation and *value* is "0" or "1", or ()."""
    preference = _RESERVED.get(value.strip(_SPACE)) if name == _TDM_NAMES[0] else None
    return ((TDM, preference),) if preference else ()


def _statement(origin: Origin, text: str, stated: Stated) -> Statement:
    return Statement(origin=origin, text=printable(text, _TEXT_CHARS), stated=stated)
