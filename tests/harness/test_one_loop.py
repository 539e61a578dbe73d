"""The table of tests/loops.md names tests that exist, and the loops they do not run on."""

from __future__ import annotations

import re

from harness.one_loop import TESTS, is_left_out, table


def test_each_row_names_tests_that_exist() -> None:
    rows = table()
    assert len(rows) == len({row.tests for row in rows}) > 20
    for row in rows:
        file, _, test = row.tests.partition("::")
        source = (TESTS / file).read_text("utf-8")
        assert re.search(rf"^ *async def {test or 'test_'}", source, re.MULTILINE), row.tests
        assert set(row.not_on) <= {"default", "none"}
        assert row.why


def test_what_is_left_out() -> None:
    refused = "tests/crawls/test_crawl_refused.py::test_any[1]"
    wire = "tests/crawls/test_wire.py::test_any"
    assert [is_left_out(refused, loop) for loop in ("asyncio", "default", "none")] == [0, 1, 1]
    assert [is_left_out(wire, loop) for loop in ("asyncio", "default", "none")] == [0, 1, 0]
    assert not is_left_out("tests/crawls/test_crawl.py::test_any", "default")
