"""Names of Scrapy that are not public: one list, and a test for each name.

If a release of Scrapy removes one, the test of that name fails and says what it was used for.
`tests/crawls/test_crawl_next_scrapy.py` crawls without each.
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

from scrapy_koster.crawl.scrapy_internals import (
    INTERNALS,
    QUEUE_INTERNALS,
    Internal,
    check_internals,
)

PACKAGE = ROOT / "scrapy_koster"
ENGINE = PACKAGE / "crawl" / "engine"
LISTED = INTERNALS + QUEUE_INTERNALS
OF_OTHERS = {
    "_replace": "the standard library: NamedTuple",
    "_value_": "the standard library: Enum",
    "_encode_request": "scrapy-redis: the queue",
}
"""Private names that are not Scrapy's."""
OF_THE_ENGINE = {"downloader", "scraper", "scheduler", "paused", "running"}
"""Attributes of a crawl's engine that its documentation does not have."""
SET = {
    "commands/robots.py": {"formatter_class", "epilog", "allow_abbrev", "set"},
    "report/database.py": {"text_factory", "row_factory"},
    "storage/sqlite.py": {"text_factory"},
    "protocol/hazard.py": {"_value_"},
    "protocol/standing.py": {"_value_"},
    "crawl/engine/private.py": {"setattr"},
    "crawl/components/linkfilter.py": {"request"},
}
"""Attributes that are set on objects of others: of the standard library but for crawl/engine.

``setattr`` in private.py sets what belongs to a crawl on its crawler. The failure of
linkfilter.py is our own, and has the request for an errback, as Scrapy's has.
"""
OF_SCRAPY = re.compile(
    r"\b(crawler|engine|downloader|handlers?|scraper|slot|spider|settings|scheduler|reactor|"
    r"middlewares?|pool|pages|protocol|transport|client|session|connector|connection|"
    r"backend|stream|request|response|failure|factory)$"
)
"""What an object of another library is called in the package."""


def has(cls: type, name: str) -> bool:
    """Whether instances of *cls* have an attribute: most are set by the constructor."""
    if hasattr(cls, name) or any(
        name in vars(base).get("__annotations__", {}) for base in cls.__mro__
    ):
        return True
    sources = (inspect.getsource(base) for base in cls.__mro__ if base.__module__ != "builtins")
    return any(re.search(rf"\bself\.{name}\b[^=\n]*=[^=]", source) for source in sources)


@pytest.mark.parametrize("internal", LISTED, ids=lambda internal: internal.name)
def test_scrapy_has_it(internal: Internal) -> None:
    path, attribute = internal.name.rsplit(".", 1)
    module, cls = path.rsplit(".", 1)
    gone = (
        f"Scrapy {scrapy.__version__} has no {internal.name} any more. It was used for:"
        f" {internal.purpose}. Find what took its place, with a fallback in compat.py for older"
        f" releases. Until then: {internal.without}"
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


def test_there_are_few() -> None:
    assert len(INTERNALS) <= 15


def test_a_name_that_is_gone_is_missed() -> None:
    from scrapy.core.engine import ExecutionEngine

    assert has(ExecutionEngine, "_slot")
    assert not has(ExecutionEngine, "_no_such_slot")
    assert not has(ExecutionEngine, "slo")


@pytest.mark.parametrize("internal", LISTED, ids=lambda internal: internal.name)
def test_its_row(internal: Internal) -> None:
    """The row has what happens without it; where a crawl has it ends with the name."""
    assert internal.purpose
    assert internal.without.endswith(".")
    stops = internal.without == Internal("", "").without
    assert stops == bool(internal.place)
    if internal.place:
        assert internal.place.rpartition(".")[2] == internal.name.rpartition(".")[2]


def crawler_with(*places: str) -> Any:
    """A crawler that has the objects of these places and no others."""
    crawler = SimpleNamespace()
    for place in places:
        owner: Any = crawler
        for step in place.split("."):
            if not hasattr(owner, step):
                setattr(owner, step, SimpleNamespace())
            owner = getattr(owner, step)
    return crawler


NEEDED = [internal for internal in INTERNALS if internal.place]


@pytest.mark.parametrize("internal", NEEDED, ids=lambda internal: internal.name)
def test_a_crawl_without_it_does_not_start(internal: Internal) -> None:
    others = [
        each.place for each in NEEDED if not f"{each.place}.".startswith(f"{internal.place}.")
    ]
    crawler = crawler_with(*others)
    with pytest.raises(RuntimeError, match=f"which has no {re.escape(internal.name)}\\. "):
        check_internals(crawler)


def used(path: Path) -> Iterator[tuple[str, str]]:
    """The attributes of other objects in a file: their names, and the expression before."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if owner not in {"self", "cls"}:
                yield node.attr, owner
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"getattr", "hasattr"}:
            of, name = node.args[:2]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value, ast.unparse(of)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "scrapy":
            yield from ((each.name, node.module or "") for each in node.names)


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
    listed = {each.name.rpartition(".")[2] for each in LISTED}
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
            assert not is_private(name) or name in OF_OTHERS, (path.name, owner, name)
            assert not (name in OF_THE_ENGINE and owner.endswith("crawler.engine")), path.name


def declared(tree: ast.AST) -> Iterator[str]:
    """The attributes of the classes of a file: annotated, or set by their own methods."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    yield part.target.id
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node.value) == "self"
        ):
            yield node.attr


def set_on_others(tree: ast.AST, own: set[str]) -> Iterator[str]:
    """The attributes that a file sets on objects of other libraries, or deletes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            owner = ast.unparse(node.value)
            if owner not in {"self", "cls"} and (node.attr not in own or OF_SCRAPY.search(owner)):
                yield node.attr
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in {"setattr", "delattr"}:
                yield called
            if called.endswith("__setattr__"):
                assert called == "object.__setattr__"
                assert ast.unparse(node.args[0]) == "self"


OWN = {
    name for path in PACKAGE.rglob("*.py") for name in declared(ast.parse(path.read_text("utf-8")))
}


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_no_object_of_others_is_changed(path: Path) -> None:
    allowed = SET.get(path.relative_to(PACKAGE).as_posix(), set())
    assert set(set_on_others(ast.parse(path.read_text("utf-8")), OWN)) == allowed


@pytest.mark.parametrize(
    "line",
    [
        "self._crawler.engine.pause = paused",
        "handlers.download_request_async = within",
        "handler._pool = pool",
        "setattr(engine, name, paused)",
        "del spider.start",
        "a.pause, b.no_such_attribute = 1, 2",
    ],
)
def test_a_change_is_seen(line: str) -> None:
    assert set(set_on_others(ast.parse(line), {"pause", "start"}))
    assert not set(set_on_others(ast.parse("state.pause = 1\nself.x = 2"), {"pause", "start"}))


def test_a_release_that_removes_the_queue_s_names_costs_the_queue_only() -> None:
    """No module that a crawl imports without naming it imports the queue."""
    importing = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith(".roundrobin")
    ]
    assert importing == []
