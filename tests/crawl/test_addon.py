"""The add-on: what it sets, and what it leaves as the user set it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest
import scrapy
from harness.crawling import Crawl, RecordingSpider
from harness.server import Server
from scrapy.core.downloader import Downloader
from scrapy.core.scheduler import Scheduler
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from scrapy_koster import (
    Addon,
    DeferringScheduler,
    KosterMiddleware,
    RobotsDownloader,
    RobotsMetaMiddleware,
)

SCRAPYS = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"


class OtherScheduler(Scheduler):
    """A scheduler that a user has chosen."""


class OtherDownloader(Downloader):
    """A downloader that a user has chosen."""


def updated(
    project: Mapping[Any, Any] | None = None, spider: Mapping[Any, Any] | None = None
) -> Settings:
    settings = Settings(project or {}, priority="project")
    settings.setdict(spider or {}, priority="spider")
    Addon().update_settings(settings)
    return settings


def enabled(settings: Settings, name: str) -> dict[Any, int]:
    components = {load_object(path): order for path, order in settings.getwithbase(name).items()}
    return {component: order for component, order in components.items() if order is not None}


def test_one_line_is_all() -> None:
    settings = updated()
    assert settings.getbool("ROBOTSTXT_OBEY")
    downloader = enabled(settings, "DOWNLOADER_MIDDLEWARES")
    assert downloader[KosterMiddleware] == 100
    assert load_object(SCRAPYS) not in downloader
    assert enabled(settings, "SPIDER_MIDDLEWARES")[RobotsMetaMiddleware] == 100
    assert load_object(settings["SCHEDULER"]) is DeferringScheduler
    assert load_object(settings["KOSTER_FALLBACK_SCHEDULER"]) is Scheduler


@pytest.mark.parametrize("priority", ["project", "spider"])
def test_robotstxt_obey_false_is_the_users_word(priority: str) -> None:
    settings = updated(**{priority: {"ROBOTSTXT_OBEY": False}})
    assert not settings.getbool("ROBOTSTXT_OBEY")
    assert KosterMiddleware not in enabled(settings, "DOWNLOADER_MIDDLEWARES")
    assert load_object(settings["SCHEDULER"]) is Scheduler


async def test_a_crawl_says_that_it_is_off(crawl: Crawl, server: Server) -> None:
    urls = [server.site().url("/page")]
    result = await crawl(urls=urls, robots=None, settings={
        "ADDONS": {"scrapy_koster.Addon": 500}, "ROBOTSTXT_OBEY": False
    })  # fmt: skip
    [line] = result.logged(logging.INFO, "scrapy_koster.addon")
    assert line == "scrapy-koster is off: ROBOTSTXT_OBEY is False, so robots.txt is not obeyed"


@pytest.mark.parametrize("key", [KosterMiddleware, "scrapy_koster.KosterMiddleware"])
def test_a_component_with_a_place_keeps_it(key: Any) -> None:
    settings = updated({"DOWNLOADER_MIDDLEWARES": {key: 42, SCRAPYS: 90}})
    downloader = enabled(settings, "DOWNLOADER_MIDDLEWARES")
    assert downloader[KosterMiddleware] == 42
    assert load_object(SCRAPYS) not in downloader


@pytest.mark.parametrize("priority", ["project", "spider"])
def test_the_users_scheduler_is_wrapped(priority: str) -> None:
    settings = updated(**{priority: {"SCHEDULER": f"{__name__}.OtherScheduler"}})
    assert load_object(settings["SCHEDULER"]) is DeferringScheduler
    assert load_object(settings["KOSTER_FALLBACK_SCHEDULER"]) is OtherScheduler


@pytest.mark.parametrize("priority", ["project", "spider"])
def test_the_users_downloader_is_extended(priority: str) -> None:
    settings = updated(**{priority: {"DOWNLOADER": f"{__name__}.OtherDownloader"}})
    extended = load_object(settings["DOWNLOADER"])
    assert issubclass(extended, OtherDownloader)
    Addon().update_settings(settings)
    assert settings["DOWNLOADER"] is extended


def test_scrapys_downloader_is_extended() -> None:
    assert load_object(updated()["DOWNLOADER"]) is RobotsDownloader
    named = {"DOWNLOADER": "scrapy_koster.RobotsDownloader"}
    assert updated(named)["DOWNLOADER"] == named["DOWNLOADER"]


@pytest.mark.skipif(scrapy.version_info < (2, 15), reason="Scrapy 2.15 has these handlers")
def test_handlers_that_limit_connections_get_more() -> None:
    named = {"http": "scrapy.core.downloader.handlers._httpx.HttpxDownloadHandler", "ftp": None}
    given = updated({"DOWNLOAD_HANDLERS": dict(named)})["DOWNLOAD_HANDLERS"]
    assert "HttpxDownloadHandler" in repr(given["http"])
    assert given["http"] != named["http"]
    assert "https" not in given
    assert not updated()["DOWNLOAD_HANDLERS"]
    bare = updated({"TWISTED_REACTOR_ENABLED": False})["DOWNLOAD_HANDLERS"]
    assert set(bare) == {"http", "https"}


@pytest.mark.parametrize("path", ["no.such.Handler", None])
def test_handlers_that_do_not_are_left_alone(path: Any) -> None:
    assert updated({"DOWNLOAD_HANDLERS": {"http": path}})["DOWNLOAD_HANDLERS"]["http"] is path


class OwnDeferringScheduler(DeferringScheduler):
    """A subclass that a user has written."""


@pytest.mark.parametrize("scheduler", [DeferringScheduler, OwnDeferringScheduler])
def test_ours_named_by_the_user_is_not_wrapped_again(scheduler: type) -> None:
    settings = updated({"SCHEDULER": scheduler})
    assert load_object(settings["SCHEDULER"]) is scheduler
    assert settings.get("KOSTER_FALLBACK_SCHEDULER") is None


@pytest.mark.parametrize("scheduler", [dict, "builtins.len"])
def test_an_error_about_the_scheduler_names_the_setting_of_the_user(scheduler: Any) -> None:
    with pytest.raises(TypeError, match=r"^Invalid SCHEDULER: .* the scheduler interface"):
        updated({"SCHEDULER": scheduler})


@pytest.mark.parametrize("path", ["scrapy_koster.Addon", "scrapy_koster.addon"])
async def test_in_the_settings_of_a_spider(crawl: Crawl, server: Server, path: str) -> None:
    """The module does, too: new users write it."""

    class Obeying(RecordingSpider):
        custom_settings = {"ADDONS": {path: 500}}

    site = server.site()
    site.robots = "User-agent: *\nDisallow: /no"
    urls = [site.url("/"), site.url("/no")]
    result = await crawl(Obeying, urls=urls, robots=None, settings={"ADDONS": {}})
    assert result.fetched == (site.url("/"),)
    assert result.stats["koster/forbidden/rule"] == 1
    assert "Enabled addons:\n[scrapy_koster.Addon]" in result.logged(logging.INFO)
