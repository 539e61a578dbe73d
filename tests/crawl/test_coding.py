"""What is whole is decoded, what was cut is always refused."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from importlib import import_module

import brotli  # type: ignore[import-untyped]
import pytest

from scrapy_koster.crawl.fetching.decoding import decoded, unpacked

zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
RULES = b"User-agent: *\nDisallow: /secret\n" * 20
MAX_BYTES = 10_000


def twice(body: bytes) -> bytes:
    packed: bytes = zstd.compress(brotli.compress(body))
    return packed


WHOLE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "upper case, with space": (" GZIP ", gzip.compress),
    "gzip, and a word that is no coding": ("utf-8, gzip, identity", gzip.compress),
    "gzip by its other name": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate without its header": ("deflate", lambda body: zlib.compress(body)[2:-4]),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstd.compress),
    "one in another": ("br, zstd", twice),
}
each_whole = pytest.mark.parametrize(("coding", "compress"), WHOLE.values(), ids=WHOLE)


@each_whole
@pytest.mark.parametrize("body", [RULES, b""], ids=["rules", "empty"])
def test_what_is_whole(coding: str, compress: Callable[[bytes], bytes], body: bytes) -> None:
    assert decoded(compress(body), coding, MAX_BYTES) == body


@each_whole
def test_what_is_cut(coding: str, compress: Callable[[bytes], bytes]) -> None:
    packed = compress(RULES)
    for size in range(1, len(packed)):
        with pytest.raises(ValueError, match="its body is not whole"):
            decoded(packed[:size], coding, MAX_BYTES)


@pytest.mark.parametrize("coding", ["gzip", "x-nobody"])
def test_nothing_is_whole_in_any_coding(coding: str) -> None:
    assert decoded(b"", coding, MAX_BYTES) == b""


@each_whole
def test_what_unpacks_to_more(coding: str, compress: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ValueError, match="it unpacks to more than 99 bytes"):
        decoded(compress(RULES), coding, 99)


@pytest.mark.slow
@each_whole
def test_no_more_is_unpacked_than_may_be(coding: str, compress: Callable[[bytes], bytes]) -> None:
    """Of what is small on the wire, and 5 MB behind that."""
    bomb = compress(bytes(5_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than"):
            decoded(bomb, coding, 100_000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_500_000


@pytest.mark.parametrize(
    "word",
    [
        "", ",", "identity", " NONE ", "text/plain; charset=UTF-8", "application/octet-stream", "*",
        "UTF8", "charset=utf-8", "us-ascii", "ISO8859_1", "windows-1252", "Shift_JIS", "8-bit",
        "aws-chunked",
    ],
)  # fmt: skip
def test_words_that_are_no_codings(word: str) -> None:
    assert decoded(RULES, word, MAX_BYTES) == RULES
    assert decoded(gzip.compress(RULES), f"{word}, gzip, {word}", MAX_BYTES) == RULES


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("compress", "compress"),
        ("gzip, X-Nobody, \x1b", r"gzip, x-nobody, \x1b"),
        ("gzip, gzip, gzip, gzip", "gzip, gzip, gzip, gzip"),
    ],
)
def test_the_reason_names_the_coding(value: str, shown: str) -> None:
    with pytest.raises(ValueError, match="Content-Encoding") as raised:
        decoded(gzip.compress(RULES), value, MAX_BYTES)
    assert str(raised.value) == f"its Content-Encoding is not decoded: {shown}"


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_the_reason_names_a_package_that_is_missing(
    coding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "brotli" if coding == "br" else zstd.__name__
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=f"its Content-Encoding needs the package {name}"):
        decoded(RULES, coding, MAX_BYTES)


def test_a_gzip_file() -> None:
    packed = gzip.compress(RULES)
    assert unpacked(packed + bytes(9), "gzip", MAX_BYTES) == RULES
    assert unpacked(packed, "gzip", 99) == RULES[:100]
    for broken in (packed * 2, b"\x1f\x8b\x08 no gzip"):
        with pytest.raises(ValueError, match="its body is not whole: gzip"):
            unpacked(broken, "gzip", MAX_BYTES)
