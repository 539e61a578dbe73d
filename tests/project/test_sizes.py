"""How large and how entangled the package is: what a reader can hold in mind.

The complexity of functions is ruff's to judge (C90, in pyproject.toml).
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "scrapy_koster"
FILES = sorted(SOURCE.rglob("*.py"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

FAN_OUT_MOST = 24
ASSEMBLERS = {"crawl.assembly"}
"""A module that puts others together: its functions are long lists, and simple."""
LISTS = {"report.tables"}
"""A module whose function is one long list: the tables of the report."""
FAN_IN_MOST = 12
FOUNDATIONS = {
    "crawl.clock", "crawl.config", "crawl.messages.log", "crawl.sites",
    "crawl.states",
    "crawl.robot", "crawl.engine.private",
}  # fmt: skip
"""Modules of crawl/ that any room may use."""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def imports() -> dict[str, set[str]]:
    """The modules of the package that each of them imports, also for its types alone."""
    found: dict[str, set[str]] = {}
    for path in FILES:
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        prefix = "scrapy_koster."
        found[name_of(path)] = {
            module.removeprefix(prefix)
            for module in modules
            if module and module.startswith(prefix)
        }
    return found


def test_no_file_and_no_function_is_too_long() -> None:
    for path in FILES:
        source = path.read_text("utf-8")
        assert len(source.splitlines()) <= 400, path.name
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, FUNCTIONS) and name_of(path) not in ASSEMBLERS | LISTS:
                has_docstring = ast.get_docstring(node) is not None and len(node.body) > 1
                first, last = node.body[has_docstring].lineno, node.end_lineno
                assert last is not None
                assert last - first < 40, (path.name, node.name)


def test_no_module_needs_too_many_others() -> None:
    many = {name for name, needed in imports().items() if len(needed) > FAN_OUT_MOST}
    assert many <= ASSEMBLERS


def test_no_room_leans_on_one_module() -> None:
    users: dict[str, set[str]] = defaultdict(set)
    for name, needed in imports().items():
        for module in needed:
            users[module].add(name)
    many = {
        name for name, by in users.items() if name.startswith("crawl.") and len(by) > FAN_IN_MOST
    }
    assert many <= FOUNDATIONS
