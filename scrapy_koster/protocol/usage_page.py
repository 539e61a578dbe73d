"""The preferences of a page, in the headers of the response and in META tags.

Content-Usage is of draft-ietf-aipref-attach (2), tdm-reservation and tdm-policy of the TDM
Reservation Protocol (a W3C Community Group Report of 2024). "noai" and "noimageai" are words of the
robots META tag and of X-Robots-Tag that no standard has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from scrapy_koster.protocol.metatags import metas_of_page
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.robotsmeta import (
    ai_words,
    names_for,
    said_by_headers,
    said_by_metas,
)
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

_RESERVATION, _POLICY = "tdm-reservation", "tdm-policy"
_TDM_NAMES = (_RESERVATION, _POLICY)

_AI_LABELS = {"noai": TRAIN_AI, "noimageai": NO_IMAGE_AI}
_RESERVED = {"1": Preference.DISALLOW, "0": Preference.ALLOW}
_SPACE = "\t\n\f\r "
_TEXT_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderFields:
    """The header fields of a response that may state preferences: the values of their lines."""

    content_usage: Sequence[bytes] = ()
    x_robots_tag: Sequence[bytes] = ()
    tdm_reservation: Sequence[bytes] = ()
    tdm_policy: Sequence[bytes] = ()


def page_statements(
    fields: HeaderFields, page: bytes, token: str, *, labels: Collection[str] = KNOWN_LABELS
) -> tuple[Statement, ...]:
    """Return the statements to the robot *token* in the headers and META tags of a page.

    *page* is the body, or b"" if it has no META tags.
    """
    metas = list(metas_of_page(page, (*names_for(token), *_TDM_NAMES)))
    found = [*_of_headers(fields, token, labels), *_of_metas(metas, token)]
    return tuple(kept_of(found, labels))


def _of_headers(fields: HeaderFields, token: str, labels: Collection[str]) -> Iterator[Statement]:
    if fields.content_usage:
        # RFC 9651, 4.2: several lines of a field are one list, joined by commas.
        value = b", ".join(fields.content_usage)
        yield _header(line_text(b"content-usage", value), preferences_in(value, labels))
    for value in fields.tdm_reservation:
        yield _header(line_text(b"tdm-reservation", value), _reservation(_text(value)))
    for value in fields.tdm_policy:
        yield _header(line_text(b"tdm-policy", value))
    for word, said in ai_words(said_by_headers(map(_text, fields.x_robots_tag), token)):
        yield _header(said, ((_AI_LABELS[word], Preference.DISALLOW),))


def _of_metas(metas: Sequence[tuple[str, str]], token: str) -> Iterator[Statement]:
    for name, content in metas:
        lower = name.strip(_SPACE).lower()
        if lower in _TDM_NAMES:
            stated = _reservation(content) if lower == _RESERVATION else ()
            yield _meta(f'name="{lower}" content="{content}"', stated)
    for word, said in ai_words(said_by_metas(metas, token)):
        yield _meta(said.removeprefix("META "), ((_AI_LABELS[word], Preference.DISALLOW),))


def _reservation(value: str) -> Stated:
    """Return the preference in a tdm-reservation. Only "0" and "1" are preferences."""
    preference = _RESERVED.get(value.strip(_SPACE))
    return ((TDM, preference),) if preference else ()


def _header(text: str, stated: Stated = ()) -> Statement:
    return Statement(origin=Origin.HEADER, text=text, stated=stated)


def _meta(text: str, stated: Stated) -> Statement:
    return Statement(origin=Origin.META, text=printable(text, _TEXT_CHARS), stated=stated)


def _text(value: bytes) -> str:
    return value.decode("latin-1")
