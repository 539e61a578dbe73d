"""Content codings of a robots.txt.

Scrapy accepts a compressed body that was cut, and decodes the received part. The missing rules
would not be obeyed. So bodies are decoded here, and a body without its end is a failure.
"""

import re
import zlib

from scrapy_koster.protocol.printable import printable

_RAW, _ZLIB, _GZIP = -15, 15, 31  # the formats, as wbits of zlib
# Some servers send a deflate stream without the zlib header.
_BITS = {"gzip": (_GZIP,), "x-gzip": (_GZIP,), "deflate": (_ZLIB, _RAW)}
# Words in a Content-Encoding that name no coding: "identity", and words that sites send by mistake,
# such as charsets and media types.
_NO_CODING = re.compile(
    r"|\*|identity|none|no|off|false|null|undefined|plain|raw|binary|[78]-?bit|(?:aws-)?chunked"
    r"|(?:text|application)(?:/.*)?"
    r"|(?:charset=|x-)?(?:utf|unicode|ascii|us-ascii|ansi|iso|latin|windows|cp|koi8|gb|big5|s?jis|shift"
    r"|euc)[0-9a-z_-]*"
)


def codings_in(value: str) -> list[str]:
    """Return the codings in a Content-Encoding, in lower case, without words of ``_NO_CODING``."""
    words = (word.strip().lower() for word in value.split(","))
    return [word for word in words if not _NO_CODING.fullmatch(word)]


def decoded(body: bytes, codings: list[str], limit: int) -> bytes:
    """Return *body* decoded. An empty *body* is returned unchanged.

    Raises ValueError with the reason if *codings* is not exactly one known coding, if *body* is cut
    or broken, or if the result has more than *limit* bytes.
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


def gunzipped(body: bytes, limit: int) -> bytes | None:
    """Return a gzip file unpacked, at most *limit* + 1 bytes; None if broken or cut.

    A *body* that does not begin like a gzip file is returned unchanged.
    """
    return _whole(body, limit, _GZIP) if body.startswith(b"\x1f\x8b\x08") else body


def _whole(body: bytes, limit: int, bits: int) -> bytes | None:
    """Return *body* unpacked, at most *limit* + 1 bytes; None if *body* is broken or cut.

    If more than *limit* bytes are returned, the rest of *body* is not examined. Zeros after the
    stream are padding. Other bytes there, such as a second gzip member, are an error (None).
    """
    stream = zlib.decompressobj(bits)
    try:
        unpacked = stream.decompress(body, limit + 1)
    except zlib.error:
        return None
    is_whole = stream.eof and not stream.unused_data.strip(b"\0")
    return unpacked if is_whole or len(unpacked) > limit else None
