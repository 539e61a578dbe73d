"""docs/storage.md: its storage passes the contract and serves a crawl, as it stands there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl
from harness.documents import blocks, text
from harness.server import Server

from scrapy_koster.storage import contract

PAGE = text("docs/storage.md")
STORAGE, SETTINGS, TEST = blocks(PAGE, "python")
RULES = "User-agent: *\nDisallow: /private\n"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module that a reader saves."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "robots_table.py").write_text(STORAGE, "utf-8")
    sys.path.insert(0, str(folder))
    try:
        yield import_module("robots_table")
    finally:
        sys.path.remove(str(folder))
        del sys.modules["robots_table"]


class _Plain:
    """Has what a storage has to have."""


def test_the_test_of_the_page_runs(module: Any, tmp_path: Path) -> None:
    shown: dict[str, Any] = {}
    exec(TEST, shown)
    assert shown["CHECKS"].keys() == contract.checks(_Plain).keys()
    for n, check in enumerate(shown["CHECKS"].values()):
        shown["test_table_storage"](check, tmp_path / str(n))


@pytest.mark.usefixtures("module")
async def test_a_crawl_with_it(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    site = server.site()
    site.robots = RULES
    settings: dict[str, Any] = {}
    exec(SETTINGS, settings)
    path = tmp_path / settings["PROJECT_DATABASE"]
    mine = settings | {"PROJECT_DATABASE": path}
    for _ in range(2):
        result = await crawl(urls=[site.url("/"), site.url("/private")], settings=mine)
        assert result.fetched == (site.url("/"),)
        assert "koster/storage/error" not in result.stats
    assert site.asked("/robots.txt") == 1
    assert path.is_file()
