"""tests/promises.md has the promises that tests are marked with."""

from __future__ import annotations

from harness.documents import text
from promises import PAGE, promises, table


def test_each_promise_is_of_a_page_and_has_one_test() -> None:
    """`python tests/promises.py` writes the table."""
    found = list(promises())
    assert PAGE.read_text("utf-8") == table(found)
    assert len({(page, words) for page, words, _ in found}) == len(found)
    assert all(text(page) for page, _, _ in found)
