"""A crawl with a Scrapy in which a name is another one, as a later release may have it.

    python renamed.py NAMES URLS_AS_JSON SETTINGS_AS_JSON

It prints a JSON object when it has ended. Each of NAMES is the full name of an attribute of a class
of Scrapy, or of an object of a module. Scrapy itself is consistent: the name is changed wherever
Scrapy uses it, so that only others miss it.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Any


class _OfAClass(ast.NodeTransformer):
    """Renames an attribute of all classes."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _new(self, name: str) -> str:
        return f"{name}_renamed" if name == self._name else name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._new(node.attr)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        for part in node.body:
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                part.name = self._new(part.name)
            elif isinstance(part, ast.Assign | ast.AnnAssign):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        target.id = self._new(target.id)
        return self.generic_visit(node)


class _OfItsModule(ast.NodeTransformer):
    """Renames an object of a module, in that module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == self._name:
            node.id += "_renamed"
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if node.name == self._name:
            node.name += "_renamed"
        return self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> ast.AST:
        if node.name == self._name:  # it is another module's, under its own name
            node.asname = f"{self._name}_renamed"
        return node


_KEPT = {"scrapy.utils.log"}
"""Modules in which an attribute of such a name may be one of the standard library's."""


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module of Scrapy with the other name, and no bytecode that was compiled without."""

    renaming: ast.NodeTransformer
    old_name: bytes

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        if fullname in _KEPT or self.old_name not in source:
            code = super().get_code(fullname)
            assert code is not None
            return code
        tree = self.renaming.visit(ast.parse(source))
        return compile(ast.fix_missing_locations(tree), path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules in which a name is another one, for a loader of its own."""

    def __init__(self, renaming: ast.NodeTransformer, old_name: str, below: str) -> None:
        self._renaming = renaming
        self._old_name = old_name.encode()
        self._below = below

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not f"{fullname}.".startswith(f"{self._below}."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            loader = _Loader(fullname, spec.origin)
            loader.renaming, loader.old_name = self._renaming, self._old_name
            spec.loader = loader
        return spec


def rename(name: str) -> None:
    """Have Scrapy, imported from now on, use another name for *name*."""
    owner, _, last = name.rpartition(".")
    is_of_a_class = owner.rpartition(".")[2].lstrip("_")[:1].isupper()
    finder = (
        _Finder(_OfAClass(last), last, owner.partition(".")[0])
        if is_of_a_class
        else _Finder(_OfItsModule(last), last, owner)
    )
    sys.meta_path.insert(0, finder)


def crawl(urls: list[str], settings: dict[str, Any]) -> dict[str, Any]:
    """Crawl the URLs at once; return how each ended, and the reason that the crawl ended with."""
    from scrapy import Request, Spider, signals
    from scrapy.crawler import AsyncCrawlerProcess

    from scrapy_koster import Addon

    ended: dict[str, str] = {}
    reasons: list[str] = []

    class Crawling(Spider):
        name = "crawling"

        async def start(self) -> Any:
            for url in urls:
                yield Request(url, errback=self.failed)

        def parse(self, response: Any) -> None:
            ended[response.url] = "fetched"

        def failed(self, failure: Any) -> None:
            ended[failure.request.url] = type(failure.value).__name__

    process = AsyncCrawlerProcess({"ADDONS": {Addon: 500}, **settings})
    crawler = process.create_crawler(Crawling)

    def closed(reason: str) -> None:
        reasons.append(reason)

    crawler.signals.connect(closed, signal=signals.spider_closed)
    process.crawl(crawler)
    process.start()
    return {"ended": ended, "reasons": reasons}


def main() -> None:
    names, urls, settings = sys.argv[1:]
    for name in names.split():
        rename(name)
    json.dump(crawl(json.loads(urls), json.loads(settings)), sys.stdout)


if __name__ == "__main__":
    main()
