"""One assembly a crawl: nobody completes an object of somebody else's after it was built."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scrapy_koster.crawl.engine.private import SendingHooks
from scrapy_koster.crawl.pacing.host import Host
from scrapy_koster.crawl.parking.parked_requests import SiteQueue
from scrapy_koster.crawl.states import SiteState, Waiting

PACKAGE = Path(__file__).parents[2] / "scrapy_koster"
WITHOUT_SCRAPY = {"archive", "audit", "checker", "protocol", "report", "storage"}
"""The folders that may not import Scrapy (``make lint-imports``)."""
FILES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path.relative_to(PACKAGE).parts[0] not in WITHOUT_SCRAPY
)

RECORDS: tuple[Any, ...] = (SiteState, Waiting, Host, SiteQueue, SendingHooks)
"""What is known and counted of a site, a host, a queue: no collaborator of anybody."""

OF_SCRAPY = {
    # A command sets these of its own argument parser, as Scrapy's commands do.
    "commands/robots.py": {
        "parser.formatter_class", "parser.epilog", "parser.allow_abbrev", "opts.set",
    },
    "crawl/components/spidermiddleware.py": {"failure.request"},
}  # fmt: skip
"""Attributes of what Scrapy has, for which there is no other way, and of copies of it; and of small
records of the same file.
"""


def assigned(node: ast.AST) -> Iterator[ast.Attribute]:
    for each in ast.walk(node):
        targets: list[ast.expr] = each.targets if isinstance(each, ast.Assign) else []
        if isinstance(each, ast.AnnAssign | ast.AugAssign):
            targets = [each.target]
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (part for part in parts if isinstance(part, ast.Attribute))


def is_own(target: ast.Attribute) -> bool:
    return isinstance(target.value, ast.Name) and target.value.id == "self"


def test_nobody_completes_an_object_from_outside() -> None:
    fields = {field for record in RECORDS for field in record.__slots__}
    found: dict[str, set[str]] = {}
    for path in FILES:
        for each in assigned(ast.parse(path.read_text("utf-8"))):
            if not is_own(each) and each.attr not in fields:
                name = path.relative_to(PACKAGE).as_posix()
                found.setdefault(name, set()).add(ast.unparse(each))
    assert found == OF_SCRAPY
    by_name = re.compile(r"\b(set|del)attr\(")
    setting = [path.name for path in FILES if by_name.search(path.read_text("utf-8"))]
    assert setting == ["private.py"]  # what belongs to a crawl, on its crawler
