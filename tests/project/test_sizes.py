"""How entangled the package is: what a reader can hold in mind.

The complexity of functions is ruff's to judge (C90, in pyproject.toml).
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "scrapy_koster"
FILES = sorted(SOURCE.rglob("*.py"))

FAN_OUT_MOST = 24
ASSEMBLERS = {"crawl.assembly"}
"""A module that puts others together: its functions are long lists, and simple."""
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
