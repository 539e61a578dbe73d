"""The tests that do not run on every kind of loop: the table of tests/loops.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Row:
    tests: str
    """A file, or a test of one: `file::test`."""
    not_on: tuple[str, ...]
    why: str


@cache
def table() -> tuple[Row, ...]:
    return tuple(_rows())


def _rows() -> Iterator[Row]:
    for line in (TESTS / "loops.md").read_text("utf-8").splitlines():
        if ".py" in line and line.startswith("|"):
            tests, loops, why = (cell.strip() for cell in line.strip("|").split("|"))
            yield Row(tests, tuple(loops.split(", ")), why)


def is_left_out(nodeid: str, loop: str) -> bool:
    """Whether this test does not run on that kind of loop ("asyncio", "default" or "none")."""
    test = nodeid.partition("[")[0].removeprefix("tests/")
    return any(
        loop in row.not_on and (test == row.tests or test.startswith(f"{row.tests}::"))
        for row in table()
    )
