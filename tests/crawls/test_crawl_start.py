"""The start of a crawl: it obeys, wherever it is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.crawling import Crawl
from harness.server import Server
from scrapy.exceptions import NotConfigured

from scrapy_koster import RobotsForbidden
from scrapy_koster.crawl.engine.compat import robots_parsed

RULES = "User-agent: *\nDisallow: /private\n"


@pytest.mark.parametrize("where", ["nowhere", "settings module", "project"])
async def test_obeys_wherever_it_is_started(
    crawl: Crawl, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Outside of a project, with a settings module as scrapyd 1.6 has it, and in a project."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    if where == "settings module":
        monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "scrapy.settings.default_settings")
    if where == "project":
        (folder / "scrapy.cfg").write_text("[settings]\n")
    site = server.site()
    site.robots = RULES
    settings = {"KOSTER_SQLITE_PATH": "koster/robots.sqlite3"}
    result = await crawl(urls=[site.url("/private"), site.url("/page")], settings=settings)
    assert result.fetched == (site.url("/page"),)
    assert result.errors == {site.url("/private"): RobotsForbidden}
    assert site.asked("/private") == 0
    assert not result.warnings
    assert (folder / ".scrapy/koster/robots.sqlite3").exists()


async def test_a_handler_of_robots_parsed_that_raises_opens_no_site(
    crawl: Crawl, server: Server
) -> None:
    def parsed() -> None:
        raise NotConfigured("this handler is too odd")

    site = server.site()
    site.robots = RULES
    running = crawl.start(urls=[site.url("/private")], settings={"KOSTER_UNAVAILABLE": "allow"})
    running.crawler.signals.connect(parsed, signal=robots_parsed)
    with pytest.raises(AssertionError, match="is too odd"):  # it is logged, with a traceback
        await running.result()
    assert site.asked("/robots.txt") == 1
    assert site.pages_asked == []
