"""RobotsMetaMiddleware by itself; tests/crawls/test_crawl_meta.py has it in crawls."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from harness.crawling import reactor_settings
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse
from scrapy.utils.test import get_crawler

from scrapy_koster.crawl.components.spidermiddleware import RobotsMetaMiddleware

URL = "https://example.com/page"
META = '<meta name="robots" content="%s">'
XHTML = f'<html xmlns="http://www.w3.org/1999/xhtml"><head>{META % "none"}</head></html>'
ITEM = {"title": "x"}
LINK = Request("https://example.com/next")


def middleware(**settings: Any) -> RobotsMetaMiddleware:
    crawler = get_crawler(
        Spider, {**reactor_settings(), "ROBOTSTXT_OBEY": True, "USER_AGENT": "none", **settings}
    )
    made: RobotsMetaMiddleware = RobotsMetaMiddleware.from_crawler(crawler)
    return made


def page(
    body: str | bytes = "",
    *,
    cls: type[Response] = HtmlResponse,
    robots_tags: Sequence[str] = (),
    content_type: str = "text/html",
    robot: str = "FigTree/0.1",
    meta: dict[str, Any] | None = None,
) -> Response:
    return cls(
        URL,
        body=body if isinstance(body, bytes) else body.encode(),
        headers=[
            ("Content-Type", content_type),
            *(("X-Robots-Tag", value) for value in robots_tags),
        ],
        request=Request(URL, headers={"User-Agent": robot}, meta=meta),
    )


def words(response: Response, obeyed: RobotsMetaMiddleware | None = None) -> Any:
    """What the page is annotated with."""
    (obeyed or middleware()).process_spider_input(response)
    return response.meta.get("koster_page_directives")


async def passed(
    obeyed: RobotsMetaMiddleware, response: Response, outputs: Sequence[Any] = (ITEM, LINK)
) -> list[Any]:
    async def yielded() -> AsyncIterator[Any]:
        for output in outputs:
            yield output

    obeyed.process_spider_input(response)
    return [output async for output in obeyed.process_spider_output(response, yielded())]


def stats(obeyed: RobotsMetaMiddleware) -> dict[str, Any]:
    return {
        name.removeprefix("koster/meta/"): value
        for name, value in obeyed._crawler.stats.get_stats().items()
        if name.startswith("koster/")
    }


class TestSettings:
    @pytest.mark.parametrize(
        ("sources", "expected"),
        [
            (["meta", "header"], ["noindex", "nofollow"]),
            (["meta"], ["noindex"]),
            ("header", ["nofollow"]),
        ],
    )
    def test_sources(self, sources: Any, expected: list[str]) -> None:
        response = page(META % "noindex", robots_tags=["nofollow"])
        assert words(response, middleware(KOSTER_PAGE_DIRECTIVES=sources)) == expected


class TestOutput:
    async def test_dry_run(self, caplog: pytest.LogCaptureFixture) -> None:
        obeyed = middleware(KOSTER_DRY_RUN=True)
        response = page(META % "none")
        caplog.set_level(logging.INFO, "scrapy_koster")
        assert await passed(obeyed, response) == [ITEM, LINK]
        assert "Would drop an item (dict)" in caplog.text
        assert stats(obeyed) == {"noindex": 1, "nofollow": 1}
        assert response.meta["koster_page_directives"] == ["noindex", "nofollow"]

    async def test_exempt(self) -> None:
        obeyed = middleware()
        response = page(META % "none", meta={"dont_obey_robotstxt": True})
        assert await passed(obeyed, response) == [ITEM, LINK]
        assert stats(obeyed) == {}
        assert response.meta["koster_page_directives"] == []

    async def test_output_of_a_page_that_was_not_read(self) -> None:
        """An errback's, after a spider middleware in front refused the page."""

        async def yielded() -> AsyncIterator[Any]:
            yield LINK

        obeyed = middleware()
        passing = obeyed.process_spider_output(page(META % "none"), yielded())
        assert [output async for output in passing] == [LINK]


class TestAnnotation:
    @pytest.mark.parametrize("meta", [{}, {"dont_obey_robotstxt": True}])
    def test_that_of_another_page_is_removed(self, meta: dict[str, Any]) -> None:
        """`Request(url, meta=response.meta)` is common."""
        response = page("<p>x", meta={"koster_page_directives": ["noindex"], **meta})
        assert not words(response)


class TestToken:
    """The name that the robots.txt is read for."""

    @pytest.mark.parametrize(
        ("settings", "meta", "expected"),
        [
            ({}, {}, ["noindex"]),
            ({"ROBOTSTXT_USER_AGENT": "WebCrawler"}, {}, ["nofollow"]),
            ({}, {"robotstxt_user_agent": "webcrawler"}, ["nofollow"]),
            ({"ROBOTSTXT_USER_AGENT": "x"}, {"robotstxt_user_agent": b"FIGTREE"}, ["noindex"]),
        ],
    )
    def test_it(self, settings: Any, meta: Any, expected: list[str]) -> None:
        body = '<meta name=figtree content=noindex><meta name=webcrawler content="nofollow">'
        tags = ["figtree: noindex", "webcrawler: nofollow"]
        for response in (page(body, meta=meta), page(robots_tags=tags, meta=meta)):
            assert words(response, middleware(**settings)) == expected


class TestResponses:
    @pytest.mark.parametrize("cls", [Response, TextResponse, JsonResponse, XmlResponse])
    def test_only_html_has_meta_tags_and_all_have_headers(self, cls: type[Response]) -> None:
        body = META % "noindex"
        assert words(page(body, cls=cls)) == []
        assert words(page(body, cls=cls, robots_tags=["nofollow"])) == ["nofollow"]

    def test_xhtml(self) -> None:
        body = XHTML.replace("<head>", "<head><title/>")
        assert words(page(body, content_type="application/xhtml+xml")) == ["noindex", "nofollow"]
        assert words(page(body, cls=XmlResponse)) == ["noindex", "nofollow"]

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
    def test_encodings_in_which_ascii_is_not_ascii(self, encoding: str) -> None:
        body = f"<html>{META % 'noindex'}\ud83d".encode(encoding, "replace")
        response = page(body, content_type=f"text/html; charset={encoding}")
        assert words(response) == ["noindex"]

    @pytest.mark.parametrize("charset", ["hex", "none"])
    def test_a_charset_that_decodes_no_text(self, charset: str) -> None:
        body = b"\0" + (META % "noindex").encode()
        assert words(page(body, content_type=f"text/html; charset={charset}")) == ["noindex"]
