"""Section 6: what a server sent, made harmless for logs and terminals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.protocol.printable import error_text, printable


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        pytest.param("\0\x1b[31m\x7f\x85", 200, "\\x00\\x1b[31m\\x7f\\x85", id="controls"),
        pytest.param("\u202egro\u2028", 200, "\\u202egro\\u2028", id="direction"),
        pytest.param("\ud800", 200, "\\ud800", id="surrogate"),
        pytest.param(b"caf\xe9\x00", 200, "café\\x00", id="octets are latin-1"),
        pytest.param("x" * 11, 10, "x" * 7 + "...", id="cut"),
        pytest.param("\0" * 3, 10, "\\x00\\x0...", id="escapes count"),
    ],
)
def test_hostile_text_is_shown_escaped_and_cut(text: str | bytes, limit: int, shown: str) -> None:
    assert printable(text, limit) == shown


@given(st.one_of(st.text(), st.binary()), st.integers(3, 50))
def test_result_is_printable_and_bounded(text: str | bytes, limit: int) -> None:
    shown = printable(text, limit)
    assert shown.isprintable()
    assert len(shown) <= limit


class BrokenError(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize("error", [BrokenError(), BrokenError("\x1b" * 2000)])
def test_an_error_of_anybody_s_class_has_a_text(error: Exception) -> None:
    assert error_text(error) == "BrokenError"
    assert error_text(OSError("\x1b" * 2000)).startswith("OSError: \\x1b")
