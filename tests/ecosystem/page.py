"""The table in docs/ecosystem.md: what the tests with the mark `beside` say, and what ran."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from harness.documents import rows

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs/ecosystem.md"
HEAD = "| Plugin | Tested with | Result |\n|---|---|---|\n"


class Row(NamedTuple):
    beside: str
    version: str
    holds: str
    test: str = ""
    """The name of its test, which the page does not show."""


def expected() -> list[Row]:
    """The rows that the tests ask for, without their versions."""
    found = [row for path in sorted(TESTS.rglob("test_*.py")) for row in _rows_of(path)]
    return sorted(found, key=lambda row: row.beside.lower())


def _rows_of(path: Path) -> Iterator[Row]:
    for node in ast.parse(path.read_text("utf-8")).body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.beside":
                names = [ast.literal_eval(name) for name in mark.args]
                holds = (ast.get_docstring(node) or "").partition("\n\n")[0]
                yield Row(": ".join(names), "", " ".join(holds.split()), node.name)


def written() -> list[Row]:
    """The rows of the page."""
    _, head, table = PAGE.read_text("utf-8").partition(HEAD)
    return [Row(*cells) for cells in rows(head + table.partition("\n\n")[0])]


def write(versions: Mapping[str, str]) -> None:
    """Write the table anew; *versions* are those with which each test has passed, by its name.

    What did not run keeps the version that it has.
    """
    known = {row.beside: row.version for row in written()}
    table = [row._replace(version=_version(row, versions, known)) for row in expected()]
    before, _, rest = PAGE.read_text("utf-8").partition(HEAD)
    after = re.sub(r"\A(\|.*\n)*", "", rest)
    lines = "".join(f"| {row.beside} | {row.version} | {row.holds} |\n" for row in table)
    PAGE.write_text(before + HEAD + lines + after, "utf-8")


def _version(row: Row, versions: Mapping[str, str], known: Mapping[str, str]) -> str:
    return versions.get(row.test) or known.get(row.beside) or "not yet"
