"""Names of Scrapy that are not public: a list in docs/architecture.md, and a test for each.

If a release of Scrapy removes one, the test of that name fails and says what it was used for.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import scrapy
from harness.documents import ROOT, code, rows, section, text

PACKAGE = ROOT / "scrapy_koster"
ENGINE = PACKAGE / "crawl" / "engine"
LISTED = [
    (code(name), release, use)
    for name, release, use in rows(
        section(text("docs/architecture.md"), "## Names of Scrapy that are not public")
    )
]
OF_OTHERS = {
    "_replace": "the standard library: NamedTuple",
    "_encode_request": "scrapy-redis: the queue",
    "_factory": "Twisted: HTTPConnectionPool",
    "_reactor": "the same",
    "_putConnection": "the same",
    "_removeConnection": "the same",
    "_timeouts": "the same",
    "_conns": "aiohttp: BaseConnector",
    "_release": "the same",
    "_transport": "httpx: AsyncClient",
    "_network_backend": "httpcore: AsyncConnectionPool",
}
"""Private names that are not Scrapy's."""
OF_THE_ENGINE = {"downloader", "scraper", "scheduler", "paused", "running", "pause", "unpause"}
"""What a crawl's engine has, and its documentation has not."""


def has(cls: type, name: str) -> bool:
    """Whether instances of *cls* have an attribute: most are set by the constructor."""
    if hasattr(cls, name) or any(
        name in vars(base).get("__annotations__", {}) for base in cls.__mro__
    ):
        return True
    sources = (inspect.getsource(base) for base in cls.__mro__ if base.__module__ != "builtins")
    return any(re.search(rf"\bself\.{name}\b[^=\n]*=[^=]", source) for source in sources)


@pytest.mark.parametrize(("name", "release", "use"), LISTED, ids=[name for name, _, _ in LISTED])
def test_scrapy_has_it(name: str, release: str, use: str) -> None:
    since = () if release == "all" else tuple(map(int, release.split(".")))
    if scrapy.version_info[:2] < since:
        pytest.skip(f"from Scrapy {release} on")
    path, attribute = name.rsplit(".", 1)
    module, cls = path.rsplit(".", 1)
    gone = (
        f"Scrapy {scrapy.__version__} has no {name} any more. scrapy_koster/crawl/engine/ uses it:"
        f" {use}. Find what took its place, with a fallback in compat.py for older releases."
    )
    try:
        owner = getattr(import_module(module), cls, None)
    except ImportError as error:
        if not (error.name or "").startswith("scrapy"):
            pytest.skip(f"{error.name} is not installed")
        pytest.fail(gone)
    assert owner is not None, gone
    assert has(owner, attribute), gone


def test_a_name_that_is_gone_is_missed() -> None:
    from scrapy.core.engine import ExecutionEngine

    assert has(ExecutionEngine, "_slot")
    assert not has(ExecutionEngine, "_no_such_slot")
    assert not has(ExecutionEngine, "slo")


def used(path: Path) -> Iterator[tuple[str, str]]:
    """The attributes of other objects in a file: their names, and the expression before."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if owner not in {"self", "cls"}:
                yield node.attr, owner
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            of, name = node.args[:2]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value, ast.unparse(of)


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


def test_what_is_used_is_listed() -> None:
    listed = {name.rpartition(".")[2] for name, _, _ in LISTED}
    names = {name for path in ENGINE.glob("*.py") for name, _ in used(path)}
    names |= {name for path in ENGINE.glob("[!_]*.py") for name in inherited(path)}
    private = set(filter(is_private, names)) - OF_OTHERS.keys()
    assert private - listed == set()
    assert listed - names == set()


def test_it_is_used_there_alone() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.parent == ENGINE:
            continue
        for name, owner in used(path):
            assert not is_private(name) or name in OF_OTHERS or owner in OWN, (
                path.name,
                owner,
                name,
            )
            assert not (name in OF_THE_ENGINE and owner.endswith("crawler.engine")), path.name


OWN = {"Standing", "member"}
"""Classes of the package whose private names are used by themselves."""
