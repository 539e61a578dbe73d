"""No test and no benchmark puts something else in the place of a private name of the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATCHES = {"setattr", "object", "delattr"}
"""``monkeypatch.setattr(...)`` and ``patch.object(...)``."""
OWN = {"self", "cls"}
OF_TWISTED = {
    "tests/harness/faults_of_sites.py": ["patch.object(names, '_getaddrinfo', lookup)"],
    "tests/harness/virtual.py": ["reactor._poller"],
}
"""Its resolver and its poller, which have no other handle."""


def is_private(name: object) -> bool:
    return isinstance(name, str) and name.rpartition(".")[2].startswith("_") and "__" not in name


def is_own(target: ast.Attribute) -> bool:
    return isinstance(target.value, ast.Name) and target.value.id in OWN


def overwritten(tree: ast.AST) -> Iterator[str]:
    """The private names that are assigned to on another object, or patched."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute) and is_private(target.attr) and not is_own(target):
                yield ast.unparse(target)
        if isinstance(node, ast.Call):
            function = node.func
            name = (
                function.attr
                if isinstance(function, ast.Attribute)
                else getattr(function, "id", "")
            )
            constants = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
            if name in PATCHES and any(map(is_private, constants)):
                yield ast.unparse(node)[:70]


def test_no_private_name_is_overwritten() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): list(overwritten(ast.parse(path.read_text("utf-8"))))
        for folder in ("tests", "benchmarks", "example_project")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {name: names for name, names in found.items() if names} == OF_TWISTED
