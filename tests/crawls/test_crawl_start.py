"""The start of a crawl: it obeys, wherever it is started, or it does not begin."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.server import Server
from scrapy.exceptions import NotConfigured

from scrapy_koster import (
    RobotsForbidden,
)
from scrapy_koster.crawl.engine.compat import robots_parsed
from scrapy_koster.storage.memory import MemoryStorage

RULES = "User-agent: *\nDisallow: /private\n"
DEFAULT_PATH = {"KOSTER_SQLITE_PATH": "koster/robots.sqlite3"}
IN_MEMORY = {"KOSTER_STORAGE": MemoryStorage}

# What Scrapy leaves open of a crawl that fails at its start is not ours to close.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True, scope="module")
def collected() -> Iterator[None]:
    """What is left open comes up here, and not in the next module."""
    yield
    gc.collect()


# Where it is started.


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, outside of any project."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    return folder


def nothing(_folder: Path, _monkeypatch: pytest.MonkeyPatch) -> None:
    pass


def settings_module(_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with scrapyd 1.6: settings of a project, without its scrapy.cfg."""
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "scrapy.settings.default_settings")


def project(folder: Path, _monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "scrapy.cfg").write_text("[settings]\n")


@pytest.mark.promise("docs/reliability.md", "no scrapy.cfg: rules are obeyed")
@pytest.mark.parametrize(
    ("where", "settings"),
    [(nothing, DEFAULT_PATH), (settings_module, DEFAULT_PATH), (project, IN_MEMORY)],
    ids=["nothing", "settings module", "project, in memory"],
)
async def test_obeys_wherever_it_is_started(
    crawl: Crawl,
    server: Server,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    where: Callable[[Path, pytest.MonkeyPatch], None],
    settings: dict[str, Any],
) -> None:
    where(folder, monkeypatch)
    site = server.site()
    site.robots = RULES
    result = await crawl(urls=[site.url("/private"), site.url("/page")], settings=settings)
    assert result.fetched == (site.url("/page"),)
    assert result.errors == {site.url("/private"): RobotsForbidden}
    assert site.asked("/private") == 0
    assert not result.warnings
    is_in_memory = settings is IN_MEMORY
    assert (folder / ".scrapy/koster/robots.sqlite3").exists() is not is_in_memory


# What goes wrong.


# In the middle of a crawl.


class Raising(RecordingSpider):
    """Has a handler of robots_parsed with a defect."""

    @classmethod
    def from_crawler(cls, crawler: Any, *arguments: Any, **named: Any) -> Any:
        spider = super().from_crawler(crawler, *arguments, **named)
        crawler.signals.connect(spider.robots_parsed, signal=robots_parsed)
        return spider

    def robots_parsed(self) -> None:
        raise NotConfigured("this handler is too odd")


async def test_a_handler_of_robots_parsed_that_raises_opens_no_site(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = RULES
    settings = {"KOSTER_UNAVAILABLE": "allow"}
    with pytest.raises(AssertionError, match="is too odd"):  # it is logged, with a traceback
        await crawl(Raising, urls=[site.url("/private")], settings=settings)
    assert site.asked("/robots.txt") == 1
    assert site.pages_asked == []


# The commands.
