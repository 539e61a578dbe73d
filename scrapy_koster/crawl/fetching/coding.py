"""The content codings of a body, and whether a compressed one has its end.

Scrapy takes what there is of one that was cut.
"""

from __future__ import annotations

import re
import zlib
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

from scrapy_koster.protocol.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_RAW, _GZIP = -15, 31  # window bits of zlib
_PIECE = 4096  # octets
# Charsets, media types and words that sites have in a Content-Encoding by mistake.
_NO_CODING = re.compile(
    r"|\*|identity|none|no|off|false|null|undefined|plain|raw|binary|[78]-?bit|(?:aws-)?chunked"
    r"|(?:text|application)(?:/.*)?"
    r"|(?:charset=|x-)?(?:utf|unicode|ascii|us-ascii|ansi|iso|latin|windows|cp|koi8|gb|big5|s?jis|shift"
    r"|euc)[0-9a-z_-]*"
)


def codings_in(value: str) -> list[str]:
    """Return the codings that a Content-Encoding names, without words that are no codings."""
    words = (word.strip().lower() for word in value.split(","))
    return [word for word in words if not _NO_CODING.fullmatch(word)]


def why_undecoded(codings: list[str]) -> str:
    """Return why a body is still in *codings*."""
    if unknown := [coding for coding in codings if coding not in _ENDS]:
        return f"its Content-Encoding is unknown: {printable(', '.join(unknown))}"
    return f"its Content-Encoding is not decoded: {', '.join(codings)}"


def is_whole(body: bytes, coding: str, limit: int) -> bool:
    """Return whether *body*, in this Content-Encoding, is all that was sent.

    True of what unpacks to more than *limit* octets, and of a coding that is
    not known: these are refused elsewhere. A checksum that is wrong is no end.
    """
    codings = codings_in(coding)
    if not body or not codings or not _ENDS.keys() >= set(codings):
        return True
    try:
        return len(codings) == 1 and _ENDS[codings[0]](body, limit)
    except Exception:  # noqa: BLE001  # each library has errors of its own
        return False


def is_gzip(body: bytes) -> bool:
    """Return whether *body* begins as a gzip file does, whatever its headers say."""
    return body.startswith(b"\x1f\x8b\x08")


def gunzipped(body: bytes, limit: int) -> bytes | None:
    """Return up to *limit* + 1 octets of what a gzip file unpacks to, None if it has no end."""
    try:
        return b"".join(_unpacked(body, limit + 1))
    except (EOFError, zlib.error):
        return None


def _gzip(body: bytes, limit: int) -> bool:
    return gunzipped(body, limit) is not None


def _unpacked(body: bytes, left: int) -> Iterator[bytes]:
    """Members, with zeros behind them: gzip's own reader copies up to 128 KiB for each of them."""
    rest = memoryview(body)
    while rest:
        stream = zlib.decompressobj(_GZIP)
        while not stream.eof:
            if not rest:
                raise EOFError
            piece = rest[:_PIECE]
            unpacked = stream.decompress(piece, left)
            yield unpacked
            left -= len(unpacked)
            if not left:
                return
            rest = rest[len(piece) - len(stream.unconsumed_tail) - len(stream.unused_data) :]
        while rest and not rest[0]:
            rest = rest[1:]


def _deflate(body: bytes, limit: int) -> bool:
    try:
        return _ended(zlib.decompressobj(), body, limit)
    except zlib.error:  # without the header that it should have
        return _ended(zlib.decompressobj(_RAW), body, limit)


def _zstd(body: bytes, limit: int) -> bool:
    name = "compression.zstd" if find_spec("compression") else "backports.zstd"
    with import_module(name).ZstdFile(BytesIO(body)) as file:
        file.read(limit + 1)  # of any number of frames; EOFError if it was cut
    return True


def _ended(stream: Any, body: bytes, limit: int) -> bool:
    return len(stream.decompress(body, limit + 1)) > limit or bool(stream.eof)


def _brotli(body: bytes, limit: int) -> bool:
    name = "brotli" if find_spec("brotli") else "brotlicffi"
    stream = import_module(name).Decompressor()
    piece = stream.process(body, output_buffer_limit=limit + 1)
    while piece and limit >= 0 and not stream.is_finished():
        limit -= len(piece)
        piece = stream.process(b"", output_buffer_limit=limit + 1) if limit >= 0 else b""
    return limit < 0 or bool(stream.is_finished())


_ENDS: dict[str, Callable[[bytes, int], bool]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
