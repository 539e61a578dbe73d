"""What is whole is decoded, what was cut is always refused."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from scrapy_koster.protocol.coding import codings_in, decoded, gunzipped

RULES = b"User-agent: *\nDisallow: /secret\n" * 20
MAX_BYTES = 10_000


def raw_deflate(body: bytes) -> bytes:
    return zlib.compress(body)[2:-4]


WHOLE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "upper case, with space": (" GZIP ", gzip.compress),
    "gzip, and a word that is no coding": ("utf-8, gzip, identity", gzip.compress),
    "gzip by its other name": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate without its header": ("deflate", raw_deflate),
}
each_whole = pytest.mark.parametrize(("coding", "compress"), WHOLE.values(), ids=WHOLE)


@each_whole
@pytest.mark.parametrize("body", [RULES, b""], ids=["rules", "empty"])
def test_what_is_whole(coding: str, compress: Callable[[bytes], bytes], body: bytes) -> None:
    assert decoded(compress(body), codings_in(coding), MAX_BYTES) == body


@each_whole
@pytest.mark.parametrize("missing", [1, 10])
def test_what_is_cut(coding: str, compress: Callable[[bytes], bytes], missing: int) -> None:
    with pytest.raises(ValueError, match="its body is not whole"):
        decoded(compress(RULES)[:-missing], codings_in(coding), MAX_BYTES)


@pytest.mark.parametrize("coding", ["gzip", "x-nobody"])
def test_nothing_is_whole_in_any_coding(coding: str) -> None:
    assert decoded(b"", [coding], MAX_BYTES) == b""


@each_whole
def test_what_unpacks_to_more(coding: str, compress: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ValueError, match="it unpacks to more than 99 bytes"):
        decoded(compress(RULES), codings_in(coding), 99)


@pytest.mark.slow
@each_whole
def test_no_more_is_unpacked_than_may_be(coding: str, compress: Callable[[bytes], bytes]) -> None:
    """Of what is small on the wire, and 5 MB behind that."""
    bomb = compress(bytes(5_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than"):
            decoded(bomb, codings_in(coding), 100_000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_500_000


NO_CODINGS = [
    "", ",", "identity", " NONE ", "text/plain; charset=UTF-8", "application/octet-stream", "*",
    "UTF8", "charset=utf-8", "us-ascii", "ISO8859_1", "windows-1252", "Shift_JIS", "8-bit",
    "aws-chunked",
]  # fmt: skip
CODINGS = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-nobody"]


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
        (["x-nobody", "\x1b"], r"its Content-Encoding is not decoded: x-nobody, \x1b"),
        (["gzip", "gzip"], "its Content-Encoding is not decoded: gzip, gzip"),
    ],
)
def test_the_reason_names_the_coding(codings: list[str], why: str) -> None:
    with pytest.raises(ValueError, match="Content-Encoding") as raised:
        decoded(gzip.compress(RULES), codings, MAX_BYTES)
    assert str(raised.value) == why


@pytest.mark.parametrize("behind", [b"", bytes(9)])
def test_a_gzip_file_is_known_by_its_first_octets(behind: bytes) -> None:
    packed = gzip.compress(RULES) + behind
    assert gunzipped(packed, MAX_BYTES) == RULES
    assert gunzipped(packed, 99) == RULES[:100]
    assert gunzipped(RULES, 99) == RULES
    assert gunzipped(b"", 99) == b""


@pytest.mark.parametrize(
    "broken",
    [gzip.compress(RULES)[:-9], b"\x1f\x8b\x08 no gzip", gzip.compress(RULES) * 2],
    ids=["cut", "no gzip", "two members"],
)
def test_a_gzip_file_without_its_end(broken: bytes) -> None:
    assert gunzipped(broken, MAX_BYTES) is None
