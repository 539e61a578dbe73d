"""docs/ecosystem.md has a row for each test with the mark `beside`, whatever versions it names."""

from __future__ import annotations

from ecosystem.page import expected, written

MEND = "the table is out of date: make ecosystem-page"


def test_the_page_has_the_rows_of_the_tests() -> None:
    rows = [row._replace(version="") for row in written()]
    assert rows == [row._replace(test="") for row in expected()], MEND


def test_each_row_has_been_seen() -> None:
    assert [row for row in written() if not row.version or row.version == "not yet"] == [], MEND


def test_each_test_says_what_holds() -> None:
    assert [row.test for row in expected() if not row.holds] == []
    for names in ([row.test for row in expected()], [row.beside for row in expected()]):
        assert len(set(names)) == len(names)
