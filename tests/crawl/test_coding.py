"""Whether a compressed body has its end: what is whole is never refused, what was cut always is."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from scrapy_koster.crawl.fetching.coding import (
    codings_in,
    gunzipped,
    is_gzip,
    is_whole,
    why_undecoded,
)

RULES = b"User-agent: *\nDisallow: /secret\n" * 20
MAX_BYTES = 10_000
ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def raw_deflate(body: bytes) -> bytes:
    return zlib.compress(body)[2:-4]


def brotli(body: bytes) -> bytes:
    compressed: bytes = pytest.importorskip("brotli").compress(body)
    return compressed


def brotli_in_pieces(body: bytes) -> bytes:
    stream = pytest.importorskip("brotli").Compressor()
    pieces: list[bytes] = [stream.process(body), stream.flush(), stream.process(body)]
    return b"".join(pieces) + bytes(stream.finish())


def zstd(body: bytes) -> bytes:
    compressed: bytes = pytest.importorskip(ZSTD).compress(body)
    return compressed


SKIPPED_FRAME = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
WHOLE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "upper case, with space": (" GZIP ", gzip.compress),
    "gzip, and a word that is no coding": ("utf-8, gzip, identity", gzip.compress),
    "gzip in two parts": ("x-gzip", lambda body: gzip.compress(body) + gzip.compress(body)),
    "deflate": ("deflate", zlib.compress),
    "deflate without its header": ("deflate", raw_deflate),
    "brotli": ("br", brotli),
    "brotli in pieces": ("br", brotli_in_pieces),
    "zstd": ("zstd", zstd),
    "zstd in two frames": ("zstd", lambda body: zstd(body) + zstd(body)),
    "zstd behind a frame that is skipped": ("zstd", lambda body: SKIPPED_FRAME + zstd(body)),
}
each_whole = pytest.mark.parametrize(("coding", "compress"), WHOLE.values(), ids=WHOLE)


@each_whole
@pytest.mark.parametrize("body", [RULES, b""], ids=["rules", "empty"])
def test_what_is_whole(coding: str, compress: Callable[[bytes], bytes], body: bytes) -> None:
    assert is_whole(compress(body), coding, MAX_BYTES)


@each_whole
@pytest.mark.parametrize("missing", [1, 3, 10])
def test_what_is_cut(coding: str, compress: Callable[[bytes], bytes], missing: int) -> None:
    assert not is_whole(compress(RULES)[:-missing], coding, MAX_BYTES)


@pytest.mark.parametrize("coding", ["", "identity", "Identity", "none", "gzip", "br", "zstd"])
def test_nothing_is_whole_in_any_coding(coding: str) -> None:
    assert is_whole(b"", coding, MAX_BYTES)


@each_whole
def test_what_unpacks_to_more_is_refused_elsewhere(
    coding: str, compress: Callable[[bytes], bytes]
) -> None:
    assert is_whole(compress(RULES), coding, len(RULES) - 1)


@pytest.mark.slow
@each_whole
def test_no_more_is_unpacked_than_may_be(coding: str, compress: Callable[[bytes], bytes]) -> None:
    """Of what is small on the wire, and 5 MB behind that."""
    bomb = compress(bytes(5_000_000))
    tracemalloc.start()
    try:
        assert is_whole(bomb, coding, 100_000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_500_000


@pytest.mark.parametrize("coding", ["gzip, gzip", "gzip,br"])
def test_what_was_coded_more_than_once_is_not_taken_for_whole(coding: str) -> None:
    assert not is_whole(gzip.compress(gzip.compress(RULES)), coding, MAX_BYTES)


def test_what_is_in_an_unknown_coding_is_refused_elsewhere() -> None:
    assert is_whole(gzip.compress(RULES)[:-9], "gzip, x-nobody", MAX_BYTES)


NO_CODINGS = [
    "", ",", "identity", "none", "None", " NONE ", "no", "off", "null", "undefined",
    "false", "plain", "text", "raw", "text/plain", "text/plain; charset=UTF-8",
    "application/octet-stream", "*", "utf-8", "UTF8", "utf-16le", "unicode",
    "charset=utf-8", "ascii", "us-ascii", "iso-8859-1", "ISO8859_1", "latin1",
    "windows-1252", "cp1251", "koi8-r", "gb2312", "gbk", "big5", "Shift_JIS", "x-sjis",
    "euc-kr", "ansi", "7bit", "8bit", "8-bit", "binary", "chunked", "aws-chunked",
]  # fmt: skip
CODINGS = [
    "gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress", "exi", "dcb", "dcz",
    "pack200-gzip", "aes128gcm", "bzip2", "xz", "lzma", "sdch", "base64", "x-nobody",
]  # fmt: skip


@pytest.mark.parametrize("word", NO_CODINGS)
def test_words_that_are_no_codings(word: str) -> None:
    assert codings_in(word) == []
    assert codings_in(f"{word}, gzip, {word}") == ["gzip"]


@pytest.mark.parametrize("coding", CODINGS)
def test_codings(coding: str) -> None:
    assert codings_in(f" {coding.upper()} ,identity") == [coding]


@pytest.mark.parametrize(
    ("codings", "why"),
    [
        (["x-nobody"], "its Content-Encoding is unknown: x-nobody"),
        (["gzip", "x-nobody", "br", "\x1b"], r"its Content-Encoding is unknown: x-nobody, \x1b"),
        (["gzip", "br"], "its Content-Encoding is not decoded: gzip, br"),
    ],
)
def test_the_reason_names_the_coding(codings: list[str], why: str) -> None:
    assert why_undecoded(codings) == why


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("behind", [b"", bytes(9)])
def test_a_gzip_file_is_known_by_its_first_octets(members: int, behind: bytes) -> None:
    packed = gzip.compress(RULES) * members + behind
    assert is_gzip(packed)
    assert gunzipped(packed, MAX_BYTES) == RULES * members
    assert gunzipped(packed, 99) == RULES[:100]
    assert not is_gzip(RULES)
    assert not is_gzip(b"")


@pytest.mark.parametrize(
    "broken", [gzip.compress(RULES)[:-9], b"\x1f\x8b\x08 no gzip"], ids=["cut", "no gzip"]
)
def test_a_gzip_file_without_its_end(broken: bytes) -> None:
    assert is_gzip(broken)
    assert gunzipped(broken, MAX_BYTES) is None
