"""The table in docs/ecosystem.md: what the tests with the mark `beside` say, and what ran."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from harness.documents import rows

PAGE = Path(__file__).parents[2] / "docs/ecosystem.md"
HEAD = "| Plugin | Tested with | Result |\n|---|---|---|\n"


class Row(NamedTuple):
    beside: str
    version: str
    holds: str
    test: str = ""
    """The name of its test, which the page does not show."""


def expected() -> list[Row]:
    """The rows that the tests ask for, without their versions."""
    paths = Path(__file__).parents[1].rglob("test_*.py")
    return sorted(
        (row for path in paths for row in _marked(path)), key=lambda row: row.beside.lower()
    )


def _marked(path: Path) -> Iterator[Row]:
    for test in ast.parse(path.read_text("utf-8")).body:
        for call in getattr(test, "decorator_list", []):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.beside":
                assert isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef)
                holds = (ast.get_docstring(test) or "").partition("\n\n")[0]
                names = [ast.literal_eval(part) for part in call.args]
                yield Row(": ".join(names), "", " ".join(holds.split()), test.name)


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
