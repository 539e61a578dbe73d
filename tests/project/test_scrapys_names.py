"""Names of Scrapy that are not public: one list, and a test for each name.

If a release of Scrapy removes one, the test of that name fails and says what it was used for.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy
from harness.documents import ROOT

from scrapy_koster.crawl.scrapy_internals import NEEDED, OPTIONAL, check_internals

PACKAGE = ROOT / "scrapy_koster"
ENGINE = PACKAGE / "crawl" / "engine"
NAMES = {path: f"{owner}.{path.rpartition('.')[2]}" for path, owner in NEEDED.items()}
LISTED = [*NAMES.values(), *OPTIONAL]
OF_OTHERS = {
    "_replace": "the standard library: NamedTuple",
    "_value_": "the standard library: Enum",
    "_encode_request": "scrapy-redis: the queue",
}
"""Private names that are not Scrapy's."""
OF_THE_ENGINE = {"downloader", "scraper", "scheduler", "paused", "running"}
"""Attributes of a crawl's engine that its documentation does not have."""


def has(cls: type, name: str) -> bool:
    """Whether instances of *cls* have an attribute: most are set by the constructor."""
    if hasattr(cls, name) or any(
        name in vars(base).get("__annotations__", {}) for base in cls.__mro__
    ):
        return True
    sources = (inspect.getsource(base) for base in cls.__mro__ if base.__module__ != "builtins")
    return any(re.search(rf"\bself\.{name}\b[^=\n]*=[^=]", source) for source in sources)


@pytest.mark.parametrize("name", LISTED)
def test_scrapy_has_it(name: str) -> None:
    path, attribute = name.rsplit(".", 1)
    module, cls = path.rsplit(".", 1)
    gone = (
        f"Scrapy {scrapy.__version__} has no {name} any more. Find what took its place, with a"
        " fallback in compat.py for older releases"
    )
    found: Any
    try:
        try:
            found = import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
            found = getattr(import_module(module), cls, None)
    except ImportError as error:
        if not (error.name or "").startswith("scrapy"):
            pytest.skip(f"{error.name} is not installed")
        pytest.fail(gone)
    assert found is not None, gone
    assert has(found, attribute) if isinstance(found, type) else hasattr(found, attribute), gone


def test_a_crawl_does_not_start_without_one() -> None:
    """It might not obey robots.txt."""
    crawler: Any = SimpleNamespace(engine=SimpleNamespace(_slot=object()))
    with pytest.raises(RuntimeError, match=r"has no scrapy.core.engine._Slot.closing. The crawl"):
        check_internals(crawler)


def used(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """The attributes of other objects in a file: their names, and the expression before."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(value=owner, attr=name):
                yield name, owner
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"),
                args=[of, ast.Constant(value=str(name)), *_],
            ):
                yield name, of
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("scrapy."):
                yield from ((each.name, node) for each in names)


def inherited(path: Path) -> Iterator[str]:
    """The attributes that a class of a file uses of itself, and has from a class of Scrapy."""
    module = import_module(f"scrapy_koster.crawl.engine.{path.stem}")
    for _, cls in inspect.getmembers(module, inspect.isclass):
        bases = [base for base in cls.__mro__ if base.__module__.startswith("scrapy.")]
        if cls.__module__ != module.__name__ or not bases:
            continue
        for node in ast.walk(ast.parse(inspect.getsource(cls))):
            if not isinstance(node, ast.Attribute) or ast.unparse(node.value) != "self":
                continue
            if any(has(base, node.attr) for base in bases):
                yield node.attr


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_all_that_are_used_are_listed() -> None:
    listed = {each.rpartition(".")[2] for each in LISTED}
    names = {name for path in ENGINE.glob("*.py") for name, _ in used(path)}
    names |= {name for path in ENGINE.glob("[!_]*.py") for name in inherited(path)}
    private = set(filter(is_private, names)) - OF_OTHERS.keys()
    assert private - listed == set()
    assert listed - names == set()


def test_they_are_used_there_only() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.parent == ENGINE:
            continue
        for name, owner in used(path):
            assert not is_private(name) or name in OF_OTHERS, (path.name, name)
            if name in OF_THE_ENGINE:
                assert not ast.unparse(owner).endswith("crawler.engine"), path.name
