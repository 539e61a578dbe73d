"""The table of tests/loops.md names tests that exist, and the loops they do not run on."""

from __future__ import annotations

import re

from harness.one_loop import TESTS, table


def test_each_row_names_tests_that_exist() -> None:
    rows = table()
    assert len(rows) == len({row.tests for row in rows}) > 20
    for row in rows:
        file, _, test = row.tests.partition("::")
        source = (TESTS / file).read_text("utf-8")
        assert re.search(rf"^ *async def {test or 'test_'}", source, re.MULTILINE), row.tests
        assert set(row.not_on) <= {"default", "none"}
        assert row.why
