"""How large files, classes and functions of the package are: what a reader can hold in mind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TypeAlias

import pytest

SOURCE = Path(__file__).parents[2] / "scrapy_koster"
FILES = sorted(SOURCE.rglob("*.py"))
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def defined(kind: type[ast.ClassDef] | tuple[type[Function], ...], path: Path) -> Iterator[ast.AST]:
    return (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, kind))


def lines_of(node: ast.AST) -> int:
    assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_and_nothing_in_it_is_too_long(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 400
    assert not [node for node in defined(ast.ClassDef, path) if lines_of(node) > 200]
    assert not [node for node in defined(FUNCTIONS, path) if lines_of(node) > 40]


def test_the_median_function() -> None:
    assert median(lines_of(node) for path in FILES for node in defined(FUNCTIONS, path)) <= 6
