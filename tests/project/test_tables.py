"""The table of other plugins."""

from __future__ import annotations

from ecosystem.page import expected, written

MEND = "the table is out of date: make ecosystem-page"


def test_the_page_of_other_plugins_has_the_rows_of_the_tests() -> None:
    """docs/ecosystem.md has a row for each test with the mark `beside`."""
    rows = expected()
    shown = [row._replace(version="") for row in written()]
    assert shown == [row._replace(test="") for row in rows], MEND
    assert [row for row in written() if not row.version or row.version == "not yet"] == [], MEND
    assert [row.test for row in rows if not row.holds] == []
