"""Names of Scrapy that are not public: one list, and a test for each name.

If a release of Scrapy removes one, the test of that name fails and says what it was used for.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy

from scrapy_koster.crawl.scrapy_internals import NEEDED, OPTIONAL, check_internals

NAMES = {path: f"{owner}.{path.rpartition('.')[2]}" for path, owner in NEEDED.items()}
LISTED = [*NAMES.values(), *OPTIONAL]


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
