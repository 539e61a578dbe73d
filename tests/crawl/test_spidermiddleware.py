"""RobotsMetaMiddleware by itself; tests/crawls/test_crawl_meta.py has it in crawls."""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from harness.crawling import reactor_settings
from scrapy import Request, Spider
from scrapy.exceptions import NotConfigured
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
    return RobotsMetaMiddleware.from_crawler(crawler)


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
        for name, value in obeyed._stats.get_stats().items()
        if name.startswith("koster/")
    }


class TestSettings:
    @pytest.mark.parametrize(
        "settings", [{"ROBOTSTXT_OBEY": False}, {"KOSTER_PAGE_DIRECTIVES": []}]
    )
    def test_switched_off(self, settings: dict[str, Any]) -> None:
        with pytest.raises(NotConfigured):
            middleware(**settings)

    @pytest.mark.parametrize("value", [["meta", "headers"], "body", 7])
    def test_a_wrong_source_is_told_at_start(self, value: Any) -> None:
        with pytest.raises(ValueError, match=r"KOSTER_PAGE_DIRECTIVES.*'meta', 'header'"):
            middleware(KOSTER_PAGE_DIRECTIVES=value)

    @pytest.mark.parametrize(
        ("sources", "expected"),
        [
            (["meta", "header"], ["noindex", "nofollow"]),
            (["meta"], ["noindex"]),
            (["header"], ["nofollow"]),
            ("header", ["nofollow"]),
        ],
    )
    def test_sources(self, sources: Any, expected: list[str]) -> None:
        response = page(META % "noindex", robots_tags=["nofollow"])
        assert words(response, middleware(KOSTER_PAGE_DIRECTIVES=sources)) == expected


class TestOutput:
    @pytest.mark.parametrize(
        ("content", "expected", "counted"),
        [
            ("all", [ITEM, LINK, LINK, ITEM], {}),
            ("noindex", [LINK, LINK], {"noindex": 2}),
            ("nofollow", [ITEM, ITEM], {"nofollow": 2}),
            ("none", [], {"noindex": 2, "nofollow": 2}),
        ],
    )
    async def test_what_is_forbidden_is_dropped_and_counted(
        self, content: str, expected: list[Any], counted: dict[str, int]
    ) -> None:
        obeyed = middleware()
        outputs = [ITEM, LINK, LINK, ITEM]
        assert await passed(obeyed, page(META % content), outputs) == expected
        assert stats(obeyed) == counted

    async def test_order(self) -> None:
        items = [{"n": n} for n in range(5)]
        outputs = [items[0], LINK, *items[1:3], LINK, *items[3:]]
        assert await passed(middleware(), page(META % "nofollow"), outputs) == items

    async def test_none_is_no_item(self) -> None:
        obeyed = middleware()
        assert await passed(obeyed, page(META % "noindex"), [None, LINK]) == [None, LINK]
        assert stats(obeyed) == {}

    async def test_header_and_meta_that_disagree(self) -> None:
        obeyed = middleware()
        response = page(META % "index, nofollow", robots_tags=["noindex, follow"])
        assert await passed(obeyed, response) == []

    async def test_dry_run(self) -> None:
        obeyed = middleware(KOSTER_DRY_RUN=True)
        response = page(META % "none")
        assert await passed(obeyed, response) == [ITEM, LINK]
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

    def test_pages_are_forgotten(self) -> None:
        obeyed = middleware()
        response = page(META % "none")
        obeyed.process_spider_input(response)
        assert len(obeyed._found) == 1
        del response
        gc.collect()
        assert len(obeyed._found) == 0


class TestAnnotation:
    def test_it_is_plain(self) -> None:
        response = page(META % "none")
        words(response)
        assert json.dumps(response.meta["koster_page_directives"]) == '["noindex", "nofollow"]'

    def test_a_page_without_directives(self) -> None:
        assert words(page("<p>x")) == []

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

    def test_that_of_the_spider(self) -> None:
        class Named(Spider):
            name = "named"
            robotstxt_user_agent = "webcrawler"

        crawler = get_crawler(Named, {**reactor_settings(), "ROBOTSTXT_OBEY": True})
        crawler.spider = Named()
        obeyed = RobotsMetaMiddleware.from_crawler(crawler)
        assert words(page("<meta name=webcrawler content=noindex>"), obeyed) == ["noindex"]

    def test_no_header(self) -> None:
        response = page(META % "noindex")
        assert response.request is not None
        del response.request.headers["User-Agent"]
        assert words(response) == ["noindex"]


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

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
    def test_encodings_in_which_ascii_is_not_ascii(self, encoding: str) -> None:
        body = f"<html>{META % 'noindex'}\ud83d".encode(encoding, "replace")
        response = page(body, content_type=f"text/html; charset={encoding}")
        assert words(response) == ["noindex"]

    def test_utf_16_that_only_its_mark_tells(self) -> None:
        assert words(page((META % "noindex").encode("utf-16"))) == ["noindex"]

    @pytest.mark.parametrize("charset", ["hex", "zip", "rot13", "idna", "undefined", "none"])
    def test_a_charset_that_decodes_no_text(self, charset: str) -> None:
        body = b"\0" + (META % "noindex").encode()
        assert words(page(body, content_type=f"text/html; charset={charset}")) == ["noindex"]

    def test_a_page_is_neither_decoded_nor_parsed(self) -> None:
        response = page(META % "noindex")
        assert words(response) == ["noindex"]
        assert isinstance(response, HtmlResponse)
        assert response._cached_selector is None
        assert response._cached_ubody is None


class TestLog:
    async def test_the_first_of_each_kind_tells_how_to_switch_it_off(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "scrapy_koster")
        obeyed = middleware()
        await passed(obeyed, page(META % "nofollow"), [LINK, LINK])
        await passed(obeyed, page(robots_tags=["none"]), [ITEM, LINK, ITEM])
        records = [record for record in caplog.records if record.name.startswith("scrapy_koster")]
        assert [record.levelname for record in records] == [
            "INFO",
            "DEBUG",
            "INFO",
            "DEBUG",
            "DEBUG",
        ]
        first, second, third, *_ = (record.getMessage() for record in records)
        assert first.startswith(
            "Dropped <GET https://example.com/next> from https://example.com/page,"
            ' which says META name="robots" content="nofollow".'
        )
        how = (
            " Further ones are logged at DEBUG. KOSTER_PAGE_DIRECTIVES = [] keeps all requests and"
            " items. dont_obey_robotstxt in the meta of the page's request keeps those of that"
            " page."
        )
        assert first == second + how
        assert third.endswith(how)
        assert third.startswith(
            "Dropped an item (dict) from https://example.com/page, which says X-Robots-Tag: none."
        )

    async def test_dry_run(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "scrapy_koster")
        await passed(middleware(KOSTER_DRY_RUN=True), page(META % "noindex"))
        assert "Would drop an item (dict)" in caplog.text
