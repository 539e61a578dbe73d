"""A crawl with a Scrapy in which a name is another one, as a later release may have it.

    python renamed.py NAMES URLS_AS_JSON SETTINGS_AS_JSON

It prints a JSON object when it has ended. Each of NAMES is the full name of an attribute of a class
of Scrapy, or of an object of a module. Scrapy itself is consistent: the name is changed wherever
Scrapy uses it, so that only others miss it.
"""

from __future__ import annotations

import ast
import json
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any


def is_of_a_class(name: str) -> bool:
    return name.rpartition(".")[0].rpartition(".")[2].lstrip("_")[:1].isupper()


def with_another(name: str, tree: ast.Module) -> ast.Module:
    """Rename an attribute of all classes, or an object of the module."""
    last = name.rpartition(".")[2]
    renamed = f"{last}_renamed"
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=attr) if attr == last and is_of_a_class(name):
                node.attr = renamed
            case ast.ClassDef(body=body) if is_of_a_class(name):
                _rename_in_a_class(body, last, renamed)
            case ast.Name(id=id_) if id_ == last and not is_of_a_class(name):
                node.id = renamed
            case ast.ClassDef(name=class_name) if class_name == last:
                node.name = renamed
            case ast.alias(name=imported) if imported == last and not is_of_a_class(name):
                node.asname = renamed  # it is another module's, under its own name
    return tree


def _rename_in_a_class(body: list[ast.stmt], last: str, renamed: str) -> None:
    for part in body:
        match part:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name == last:
                part.name = renamed
            case ast.Assign(targets=[ast.Name(id=name) as target]) if name == last:
                target.id = renamed
            case ast.AnnAssign(target=ast.Name(id=name) as target) if name == last:
                target.id = renamed


KEPT = "scrapy.utils.log"
"""A module in which an attribute of such a name may be one of the standard library's."""
NAMES: list[str] = []
FOLDER = Path(str(getattr(find_spec("scrapy"), "origin", None))).parent


class Loader(SourceFileLoader):
    """Loads a module of Scrapy with other names."""

    def path_stats(self, path: Any) -> Any:
        raise OSError  # what was compiled has the names of Scrapy

    def source_to_code(self, data: Any, path: Any, **options: Any) -> CodeType:  # type: ignore[override]
        tree = ast.parse(data)
        for name in NAMES:
            owner = name.rpartition(".")[0]
            if self.name == owner or (is_of_a_class(name) and self.name != KEPT):
                tree = with_another(name, tree)
        return compile(tree, path, "exec")


def finder_of(folder: str) -> FileFinder:
    """Have the modules in the folders of Scrapy loaded with other names."""
    if not Path(folder).is_relative_to(FOLDER):
        raise ImportError
    return FileFinder(folder, (Loader, [".py"]))


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
    NAMES.extend(names.split())
    sys.path_hooks.insert(0, finder_of)
    json.dump(crawl(json.loads(urls), json.loads(settings)), sys.stdout)


if __name__ == "__main__":
    main()
