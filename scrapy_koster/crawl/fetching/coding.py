"""Content codings of a robots.txt.

Scrapy accepts a compressed body that was cut, and decodes the part that came. Rules in the rest
would not be obeyed. So bodies are decoded here, and a body without its end is a failure.
"""

from __future__ import annotations

import re
import zlib

from scrapy_koster.protocol.printable import printable

_RAW, _ZLIB, _GZIP = -15, 15, 31  # window bits of zlib
# Some servers send a deflate stream without the zlib header.
_BITS = {"gzip": (_GZIP,), "x-gzip": (_GZIP,), "deflate": (_ZLIB, _RAW)}
# Charsets, media types and similar words in a Content-Encoding, which sites send by mistake.
_NO_CODING = re.compile(
    r"|\*|identity|none|no|off|false|null|undefined|plain|raw|binary|[78]-?bit|(?:aws-)?chunked"
    r"|(?:text|application)(?:/.*)?"
    r"|(?:charset=|x-)?(?:utf|unicode|ascii|us-ascii|ansi|iso|latin|windows|cp|koi8|gb|big5|s?jis|shift"
    r"|euc)[0-9a-z_-]*"
)


def codings_in(value: str) -> list[str]:
    """Return the codings in a Content-Encoding, without words that are no codings."""
    words = (word.strip().lower() for word in value.split(","))
    return [word for word in words if not _NO_CODING.fullmatch(word)]


def decoded(body: bytes, codings: list[str], limit: int) -> bytes:
    """Return *body* decoded. Raises ValueError with the reason if *body* is cut or broken.

    A result of more than *limit* bytes is an error, too.
    """
    if not body:
        return body
    coding = ", ".join(codings)
    if coding not in _BITS:
        raise ValueError(f"its Content-Encoding is not decoded: {printable(coding)}")
    for bits in _BITS[coding]:
        if (unpacked := _whole(body, limit, bits)) is not None:
            if len(unpacked) > limit:
                raise ValueError(f"it unpacks to more than {limit} bytes")
            return unpacked
    raise ValueError(f"its body is not whole: Content-Encoding {coding}")


def is_gzip(body: bytes) -> bool:
    """Return whether *body* begins like a gzip file."""
    return body.startswith(b"\x1f\x8b\x08")


def gunzipped(body: bytes, limit: int) -> bytes | None:
    """Return up to *limit* + 1 bytes of an unpacked gzip file; None if the file has no end."""
    return _whole(body, limit, _GZIP)


def _whole(body: bytes, limit: int, bits: int) -> bytes | None:
    """Return up to *limit* + 1 unpacked bytes of *body*; None if *body* is broken or cut.

    Zeros can follow, as padding. A second gzip member is an error.
    """
    stream = zlib.decompressobj(bits)
    try:
        unpacked = stream.decompress(body, limit + 1)
    except zlib.error:
        return None
    is_whole = stream.eof and not stream.unused_data.strip(b"\0")
    return unpacked if is_whole or len(unpacked) > limit else None
