"""Download handlers: browsers, and what fetches on somebody's behalf."""

from __future__ import annotations

import base64
import json
import logging
import shutil
from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Asked, Reply, redirect
from harness.server import Server, Site
from scrapy.http import Response

from ecosystem.obeying import GET, PATHS, RULES, check_obeyed, html

CHROMIUM = shutil.which("chromium")


# scrapy-playwright

BY_SCRIPT = """<title>before</title><script>
document.title = "rendered"
</script><a href="/open">open</a><a href="/private/page">private</a>"""
META_BY_SCRIPT = """<script>
const meta = document.createElement("meta")
meta.name = "robots"
meta.content = "noindex, nofollow"
document.head.append(meta)
</script><a href="/hidden">hidden</a>"""


class Rendering(RecordingSpider):
    meta = {"playwright": True}

    def page(self, response: Response) -> Any:
        yield {"url": response.url, "title": response.css("title::text").get()}
        for url in response.css("a::attr(href)").getall():
            yield self.ask(response.urljoin(url))


def playwright_settings() -> dict[str, Any]:
    pytest.importorskip("scrapy_playwright", reason=GET)
    if CHROMIUM is None:
        pytest.skip("no chromium: apt-get install chromium")
    handler = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
    return {
        "DOWNLOAD_HANDLERS": {"http": handler, "https": handler},
        "PLAYWRIGHT_LAUNCH_OPTIONS": {
            "executable_path": CHROMIUM,
            "args": ["--no-sandbox", "--disable-dev-shm-usage"],
        },
    }


@pytest.mark.beside("scrapy-playwright")
async def test_playwright(crawl: Crawl, server: Server) -> None:
    """Pages are rendered, the robots.txt is not; META tags that a script adds are obeyed."""
    site = server.site()
    site.robots = RULES
    site.page("/", html(BY_SCRIPT))
    site.page("/open", html(META_BY_SCRIPT))
    site.page("/favicon.ico", Reply(404))
    result = await crawl(Rendering, urls=[site.url()], settings=playwright_settings())
    pages = [page for page in site.pages_asked if page != "/favicon.ico"]
    assert sorted(pages) == ["/", "/open"]
    check_obeyed(result, site, *set(site.pages_asked))
    assert [item["title"] for item in result.items] == ["rendered"]
    assert result.stats["koster/meta/noindex"] == result.stats["koster/meta/nofollow"] == 1
    [robots] = [asked for asked in site.requests if asked.path == "/robots.txt"]
    assert robots.header("Sec-Fetch-Mode") is None
    assert result.stats["playwright/request_count/navigation"] == 2


async def by_itself(crawl: Crawl, server: Server, **settings: Any) -> list[str]:
    """What of the forbidden part the browser has asked for, on behalf of pages that are allowed.

    None of that reaches the callback.
    """
    site = server.site()
    site.robots = RULES
    site.page("/", html('<img src="/private/image"><a href="/moved"></a><a href="/script"></a>'))
    site.page("/moved", redirect(site.url("/private/moved"), 302))
    site.page("/script", html('<script>location.href = "/private/script"</script>'))
    site.page("/private/script", html("there"))
    settings = {**playwright_settings(), **settings}
    result = await crawl(Rendering, urls=[site.url()], settings=settings)
    [told] = result.logged(logging.WARNING, "scrapy_koster")
    assert f"ended at {site.url('/private/')}" in told
    assert not [url for url in result.fetched if "/private" in url]
    assert site.url("/moved") in [url for url, _ in result.refused]
    return sorted(path for path in site.pages_asked if path.startswith("/private"))


@pytest.mark.beside("scrapy-playwright", "what the browser does by itself")
async def test_playwright_by_itself(crawl: Crawl, server: Server) -> None:
    """The browser's own requests are not checked: see below."""
    asked = await by_itself(crawl, server)
    assert {"/private/image", "/private/moved"} <= set(asked)


def abort(request: Any) -> bool:
    is_first = request.is_navigation_request() and request.frame.url == "about:blank"
    return not is_first


@pytest.mark.beside("scrapy-playwright", "with PLAYWRIGHT_ABORT_REQUEST")
async def test_playwright_that_aborts(crawl: Crawl, server: Server) -> None:
    """It keeps the browser to the requested page, except for redirects: see below."""
    assert await by_itself(crawl, server, PLAYWRIGHT_ABORT_REQUEST=abort) == ["/private/moved"]


# scrapy-zyte-api


class Api:
    """A stand-in for Zyte API: it "fetches" the pages of its own site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.fetched: list[str] = []
        site.pages(self.extract)

    def extract(self, asked: Asked) -> Reply:
        wanted = json.loads(asked.body)
        url = wanted["url"]
        self.fetched.append(url)
        body = RULES if url.endswith("/robots.txt") else "page"
        answer = {
            "url": url,
            "statusCode": 200,
            "httpResponseBody": base64.b64encode(body.encode()).decode(),
            "httpResponseHeaders": [{"name": "Content-Type", "value": "text/plain"}],
        }
        return Reply(200, json.dumps(answer), headers={"Content-Type": "application/json"})


@pytest.mark.beside("scrapy-zyte-api")
async def test_zyte_api(crawl: Crawl, server: Server) -> None:
    """The robots.txt uses the API, too, without a warning about its headers."""
    pytest.importorskip("scrapy_zyte_api", reason=GET)
    api = Api(server.site())
    urls = [f"http://fict.example{path}" for path in PATHS]
    settings = {
        "ADDONS": {"scrapy_koster.Addon": 500, "scrapy_zyte_api.Addon": 600},
        "ZYTE_API_KEY": "a key",
        "ZYTE_API_URL": api.site.url("/v1/"),
    }
    result = await crawl(urls=urls, settings=settings)
    assert sorted(api.fetched) == sorted(["http://fict.example/robots.txt", *urls[:2]])
    assert result.stats["robotstxt/forbidden"] == 1
    assert sorted(result.fetched) == urls[:2]
    assert result.logged(logging.WARNING) == []


# scrapy-impersonate


@pytest.mark.beside("scrapy-impersonate")
async def test_impersonate(crawl: Crawl, server: Server) -> None:
    """The robots.txt is fetched by the browser that its page impersonates. Redirects obey."""
    pytest.importorskip("scrapy_impersonate", reason=GET)
    site = server.site()
    site.robots = RULES
    site.page("/moved", redirect(site.url("/private/moved")))
    handler = "scrapy_impersonate.ImpersonateDownloadHandler"
    result = await crawl(
        urls=[site.url(path) for path in (*PATHS, "/moved")],
        settings={
            "DOWNLOAD_HANDLERS": {"http": handler, "https": handler},
            "USER_AGENT": "FigTree/0.1 (+http://fict.example/robot)",
        },
        meta={"impersonate": "chrome131"},
    )
    check_obeyed(result, site, "/", "/open", "/moved", forbidden=2)
    assert {asked.header("User-Agent") for asked in site.requests} == {
        "FigTree/0.1 (+http://fict.example/robot)"
    }
    assert all("131" in (asked.header("sec-ch-ua") or "") for asked in site.requests)
