"""The table in promises.md: what README and docs promise, and the test that holds it.

    python tests/promises.py

writes it anew, from the marks of the tests: `@pytest.mark.promise(page, words)`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

TESTS = Path(__file__).parent
PAGE = TESTS / "promises.md"
HEAD = """\
# Promises

Each row is a promise of a page, in short, and a test that holds it. `python tests/promises.py`
makes the table from the marks of the tests (`@pytest.mark.promise`). What pure functions promise
(how rules are read, what the checker finds) is in the tests of these functions.
"""


def promises() -> Iterator[tuple[str, str, str]]:
    """Yield the page, the words and the test of each mark."""
    for path, test, (page, words) in marked_tests("promise"):
        yield page, words, f"{path.relative_to(TESTS).as_posix()}::{test.name}"


Test: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def marked_tests(mark: str) -> Iterator[tuple[Path, Test, list[str]]]:
    """Yield the file, the test and the arguments of each mark of this name."""
    name = f"pytest.mark.{mark}"
    for path in sorted(TESTS.rglob("test_*.py")):
        for test in ast.parse(path.read_text("utf-8")).body:
            if isinstance(test, Test):
                for call in test.decorator_list:
                    if isinstance(call, ast.Call) and ast.unparse(call.func) == name:
                        yield path, test, [ast.literal_eval(part) for part in call.args]


def table(found: Iterable[tuple[str, str, str]]) -> str:
    by_page: dict[str, list[str]] = defaultdict(list)
    for page, words, test in found:
        by_page[page].append(f"| {words} | `{test}` |")
    parts = [
        "\n".join([f"## {page}\n", "| promise | test |", "|---|---|", *rows, ""])
        for page, rows in sorted(by_page.items())
    ]
    return "\n".join([HEAD, *parts])


if __name__ == "__main__":
    PAGE.write_text(table(promises()), "utf-8")
