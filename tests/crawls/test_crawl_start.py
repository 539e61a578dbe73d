"""The start of a crawl: it obeys, wherever it is started, or it does not begin."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import forks
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.defects import NoFile, NoUrl
from harness.server import Server
from scrapy.core.scheduler import Scheduler
from scrapy.exceptions import NotConfigured
from scrapy.robotstxt import RobotParser

from scrapy_koster import (
    DeferringScheduler,
    KosterMiddleware,
    KosterRobotParser,
    RobotsForbidden,
    RobotsMetaMiddleware,
)
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.engine.compat import robots_parsed
from scrapy_koster.crawl.sites import Sites
from scrapy_koster.protocol.defect import ParserDefectError
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


async def obeys(crawl: Crawl, server: Server, **settings: Any) -> CrawlResult:
    site = server.site()
    site.robots = RULES
    urls = [site.url("/private"), site.url("/page")]
    result = await crawl(urls=urls, settings={**DEFAULT_PATH, **settings})
    assert result.fetched == (site.url("/page"),)
    assert [type(error) for _, error in result.refused] == [RobotsForbidden]
    assert site.asked("/private") == 0
    return result


async def does_not_begin(
    crawl: Crawl, server: Server, error: type[Exception], says: str | None, **settings: Any
) -> None:
    site = server.site()
    with pytest.raises(error, match=says):
        await crawl(urls=[site.url()], settings=settings)
    assert site.requests == ()


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


WHERE = pytest.mark.parametrize(
    "where", [nothing, settings_module, project], ids=lambda where: where.__name__
)


@WHERE
@pytest.mark.parametrize("settings", [{}, IN_MEMORY], ids=["sqlite", "memory"])
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
    result = await obeys(crawl, server, **settings)
    assert not result.logged(logging.WARNING, "scrapy_koster")
    assert (folder / ".scrapy/koster/robots.sqlite3").exists() == (not settings)


def file_in_the_way(folder: Path) -> None:
    (folder / ".scrapy").write_text("in the way")


def datadir_below_a_file(folder: Path) -> None:
    (folder / "file").write_text("in the way")
    (folder / "scrapy.cfg").write_text("[settings]\n[datadir]\ndefault = file/a/b\n")


@pytest.mark.parametrize(
    "harm", [file_in_the_way, datadir_below_a_file], ids=lambda harm: harm.__name__
)
async def test_a_folder_that_cannot_be_written_is_memory(
    crawl: Crawl, server: Server, folder: Path, harm: Callable[[Path], None]
) -> None:
    harm(folder)
    result = await obeys(crawl, server)
    [warning] = result.logged(logging.WARNING, "scrapy_koster")
    assert warning.startswith("The storage of robots.txt failed")
    assert "set KOSTER_SQLITE_PATH" in warning


# What goes wrong.


class Parser(KosterRobotParser):
    """A parser of the user's own."""


class Wrapped(Scheduler):
    """A scheduler of the user's own."""


class Subclass(KosterMiddleware):
    """A middleware of the user's own, in the place of ours."""


PARSED = {"KOSTER_PARSER": Parser}
SUBCLASS = {"DOWNLOADER_MIDDLEWARES": {KosterMiddleware: None, Subclass: 100}}


@pytest.mark.parametrize(
    "error",
    [(NotConfigured,), (NotConfigured, "no luck"), (ZeroDivisionError, "no luck")],
    ids=["silent", "NotConfigured", "ZeroDivisionError"],
)
@pytest.mark.parametrize(
    ("owner", "method", "settings"),
    [
        (KosterMiddleware, "from_crawler", {}),
        (KosterMiddleware, "__init__", {}),
        (Subclass, "from_crawler", SUBCLASS),
        (RobotsMetaMiddleware, "from_crawler", {}),
        (RobotsMetaMiddleware, "__init__", {}),
        (DeferringScheduler, "from_crawler", {}),
        (DeferringScheduler, "__init__", {}),
        (Wrapped, "from_crawler", {"SCHEDULER": Wrapped}),
        (Config, "from_crawler", {}),
        (Sites, "__init__", {}),
        (KosterRobotParser, "from_crawler", {}),
        (Parser, "from_crawler", PARSED),
        (Parser, "__init__", PARSED),
    ],
    ids=lambda value: getattr(value, "__name__", value if isinstance(value, str) else ""),
)
async def test_whatever_is_raised_at_the_start_stops_the_crawl(
    crawl: Crawl,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    *,
    owner: type,
    method: str,
    settings: dict[str, Any],
    error: tuple[Any, ...],
) -> None:
    def fail(*_arguments: object, **_named: object) -> None:
        raise error[0](*error[1:])

    monkeypatch.setattr(owner, method, fail)
    await does_not_begin(crawl, server, Exception, None, **settings)


async def test_it_is_said_what_raised_not_configured(
    crawl: Crawl, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise NotConfigured("the parser has no licence")

    monkeypatch.setattr(Parser, "from_crawler", fail)
    says = "KosterMiddleware cannot be built.*the parser has no licence.*ROBOTSTXT_OBEY"
    await does_not_begin(crawl, server, RuntimeError, says, **PARSED)


async def test_a_module_of_the_users_that_raises_not_configured(
    crawl: Crawl, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "unconfigured.py").write_text(
        "from scrapy.exceptions import NotConfigured\nraise NotConfigured('no licence')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("KOSTER_PARSER", "KOSTER_STORAGE", "SCHEDULER"):
        settings = {name: "unconfigured.Thing"}
        await does_not_begin(crawl, server, RuntimeError, "no licence", **settings)


async def test_our_middleware_taken_out_of_the_crawl(crawl: Crawl, server: Server) -> None:
    settings = {"DOWNLOADER_MIDDLEWARES": {KosterMiddleware: None}}
    await does_not_begin(crawl, server, RuntimeError, "there is no KosterMiddleware", **settings)


async def test_a_subclass_in_the_place_of_our_middleware(crawl: Crawl, server: Server) -> None:
    await obeys(crawl, server, **SUBCLASS)


async def test_the_user_may_take_the_page_directives_out(crawl: Crawl, server: Server) -> None:
    await obeys(crawl, server, KOSTER_PAGE_DIRECTIVES=[])
    await obeys(crawl, server, SPIDER_MIDDLEWARES={RobotsMetaMiddleware: None})


async def test_our_scheduler_with_scrapys_own_middleware(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = RULES
    settings = {"SCHEDULER": DeferringScheduler}
    result = await crawl(urls=[site.url("/private")], settings=settings, robots="scrapy")
    assert result.fetched == ()


class Unconfigured(MemoryStorage):
    """A storage that somebody else wrote."""

    @classmethod
    def from_settings(cls, settings: object) -> MemoryStorage:
        raise NotConfigured("no luck")


async def test_a_storage_that_is_not_configured_is_memory(crawl: Crawl, server: Server) -> None:
    result = await obeys(crawl, server, KOSTER_STORAGE=Unconfigured)
    [warning] = result.logged(logging.WARNING, "scrapy_koster")
    assert "no luck" in warning


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


def wrong(parser: type[RobotParser], unavailable: str) -> dict[str, Any]:
    return {
        "KOSTER_PARSER": parser,
        "KOSTER_UNAVAILABLE": unavailable,
        "KOSTER_DEFER_LIMIT_SECS": 0,
    }


UNAVAILABLE = pytest.mark.parametrize("unavailable", ["defer", "allow", "disallow"])


@UNAVAILABLE
@pytest.mark.parametrize(
    ("spider", "parser"),
    [(RecordingSpider, NoFile), (Raising, KosterRobotParser)],
    ids=["parser", "handler"],
)
async def test_what_fails_at_a_file_opens_no_site(
    crawl: Crawl,
    server: Server,
    *,
    spider: type[RecordingSpider],
    parser: type[RobotParser],
    unavailable: str,
) -> None:
    site = server.site()
    site.robots = RULES
    settings = wrong(parser, unavailable)
    with pytest.raises(AssertionError, match="is too odd"):  # it is logged, with a traceback
        await crawl(spider, urls=[site.url("/private")], settings=settings)
    assert site.asked("/robots.txt") == 1
    assert site.pages_asked == []


@UNAVAILABLE
async def test_a_parser_that_fails_at_a_url_opens_no_site(
    crawl: Crawl, server: Server, unavailable: str
) -> None:
    site = server.site()
    site.robots = RULES
    running = crawl.start(urls=[site.url("/private")], settings=wrong(NoUrl, unavailable))
    with pytest.raises(AssertionError, match=r"NoUrl has a defect"):  # it is logged
        await running.result()
    spider: Any = running.crawler.spider
    [(_, error)] = spider.refused
    assert isinstance(error, ParserDefectError)
    assert "NoUrl raised ZeroDivisionError" in str(error)
    assert site.pages_asked == []


# The commands.


def test_the_commands_without_a_scrapy_cfg(
    server: Server, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = server.site()
    site.robots = RULES
    (tmp_path / "fict_settings.py").write_text("COMMANDS_MODULE = 'scrapy_koster.commands'\n")
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "fict_settings")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))

    def robots(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "scrapy", "robots", *arguments]
        return forks.run(command, text=True, timeout=forks.ENDS_SECS)

    for command, status, says in (
        (("explain", site.url("/private")), 1, "forbidden"),
        (("cache", "list"), 0, "HTTP 200"),
    ):
        ran = robots(*command)
        assert (ran.returncode, ran.stderr) == (status, "")
        assert says in ran.stdout
    assert (folder / ".scrapy/koster/robots.sqlite3").exists()
