"""Packages that people install beside Scrapy, and middlewares that they choose."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.server import Server
from scrapy.http import Response

from ecosystem.obeying import GET, PATHS, RULES, check_fetched, check_obeyed, html


@pytest.mark.beside("scrapy-rotating-proxies")
async def test_rotating_proxies(crawl: Crawl, server: Server) -> None:
    """The robots.txt uses a proxy, as pages do. A refusal does not ban a proxy."""
    pytest.importorskip("rotating_proxies", reason=GET)
    site = server.site()
    site.robots = RULES
    proxies = [server.proxy(), server.proxy()]
    settings = {
        "ROTATING_PROXY_LIST": [proxy.url("") for proxy in proxies],
        "DOWNLOADER_MIDDLEWARES": {
            "rotating_proxies.middlewares.RotatingProxyMiddleware": 610,
            "rotating_proxies.middlewares.BanDetectionMiddleware": 620,
        },
    }
    result = await crawl(urls=[site.url(path) for path in PATHS], settings=settings)
    check_obeyed(result, site, "/", "/open")
    asked = [each.target for proxy in proxies for each in proxy.requests]
    assert sorted(asked) == sorted(map(site.url, ("/", "/open", "/robots.txt")))
    assert "proxies/dead" not in result.stats
    assert "bans/error/scrapy_koster.crawl.exceptions.RobotsForbidden" not in result.stats


@pytest.mark.beside("scrapy-user-agents")
async def test_random_user_agents(crawl: Crawl, server: Server) -> None:
    """The robot's name in the settings decides. A warning names the header that is sent."""
    pytest.importorskip("scrapy_user_agents", reason=GET)
    site = server.site()
    site.robots = f"User-agent: figtree\nDisallow: /private\n\n{RULES}Disallow: /open\n"
    settings = {
        "ROBOTSTXT_USER_AGENT": "figtree",
        "DOWNLOADER_MIDDLEWARES": {
            "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
            "scrapy_user_agents.middlewares.RandomUserAgentMiddleware": 400,
        },
    }
    result = await crawl(urls=[site.url(path) for path in PATHS], settings=settings)
    check_fetched(site, "/", "/open")
    assert all((asked.header("User-Agent") or "").startswith("Mozilla") for asked in site.requests)
    warnings = result.logged(logging.WARNING, "scrapy_koster")
    assert warnings
    assert all("cannot recognize your robot" in line for line in warnings)


class Item(RecordingSpider):
    def page(self, response: Response) -> Any:
        return {"url": response.url}


@pytest.mark.beside("spidermon")
async def test_spidermon(crawl: Crawl, server: Server) -> None:
    """Its monitors see our stats: a monitor that counts refusals reports them."""
    pytest.importorskip("spidermon", reason=GET)
    from ecosystem.monitors import Refusals

    site = server.site()
    site.robots = RULES
    settings = {
        "SPIDERMON_ENABLED": True,
        "EXTENSIONS": {"spidermon.contrib.scrapy.extensions.Spidermon": 500},
        "SPIDERMON_SPIDER_CLOSE_MONITORS": ["ecosystem.monitors.AtTheEnd"],
    }
    Refusals.seen.clear()
    result = await crawl(Item, urls=[site.url(path) for path in PATHS], settings=settings)
    check_obeyed(result, site, "/", "/open")
    assert Refusals.seen == [1]
    assert len(result.items) == 2


@pytest.mark.beside("scrapy-poet")
async def test_scrapy_poet(crawl: Crawl, server: Server) -> None:
    """Page objects are made of allowed pages, in either order of the add-ons."""
    pytest.importorskip("scrapy_poet", reason=GET)
    from ecosystem.pages import WithPages

    for order in (300, 700):
        site = server.site()
        site.robots = RULES
        site.pages(html("<title>a page</title>"))
        addons = {"scrapy_koster.Addon": 500, "scrapy_poet.Addon": order}
        urls = [site.url(path) for path in PATHS]
        result = await crawl(WithPages, urls=urls, settings={"ADDONS": addons})
        check_obeyed(result, site, "/", "/open")
        assert [item["title"] for item in result.items] == ["a page", "a page"]
