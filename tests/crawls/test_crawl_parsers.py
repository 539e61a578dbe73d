"""Parsers of others that return a value of a wrong type: they open nothing."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from harness.comparison import RULES
from harness.crawling import Crawl, RecordingSpider, kept_log
from harness.faults_of_sites import ALLOWED, FORBIDDEN
from harness.server import Server
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.robotstxt import ProtegoRobotParser
from twisted.internet import defer

from scrapy_koster import KosterRobotParser, RobotsForbidden, StrictestRobotParser
from scrapy_koster.protocol.defect import ParserDefectError

PAGES = (*ALLOWED, *FORBIDDEN)
LOGGER = "scrapy_koster.crawl.components.downloadermiddleware"


async def _soon() -> bool:
    return True


class Truthy:
    """As an array of numpy: it is no bool."""

    def __bool__(self) -> bool:
        return True


WRONG: dict[str, Callable[[], Any]] = {
    "a tuple": lambda: (False, "a reason"),
    "text": lambda: "no",
    "NotImplemented": lambda: NotImplemented,
    "a coroutine": _soon,
    "an object": Truthy,
    "1": lambda: 1,
    "None": lambda: None,
    "a list": list,
}


@pytest.fixture(autouse=True)
def warned() -> Iterator[None]:
    """A coroutine that nobody awaits is told of by a warning, which is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def returning(base: Any, method: str, value: Callable[[], Any]) -> Any:
    return type("Odd", (base,), {method: lambda self, *_: value()})


@pytest.mark.parametrize("base", [KosterRobotParser, StrictestRobotParser, ProtegoRobotParser])
@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
async def test_only_true_opens(
    crawl: Crawl, server: Server, base: type, value: Callable[[], Any]
) -> None:
    site = server.site()
    site.robots = RULES
    parser = returning(base, "allowed", value)
    with kept_log() as log:
        running = crawl.start(urls=site.urls(3), settings={"KOSTER_PARSER": parser})
        with pytest.raises(AssertionError, match="Odd"):  # it is logged, with a traceback
            await running.result()
    spider = running.crawler.spider
    assert isinstance(spider, RecordingSpider)
    assert site.pages_asked == []
    [said] = [record for record in log if record.name == LOGGER]
    assert said.levelno == logging.ERROR
    assert "Odd" in said.getMessage()
    assert [type(error) for _, error in spider.refused] == [ParserDefectError] * 3


async def test_true_and_false_are_answers(crawl: Crawl, server: Server) -> None:
    class Protego(ProtegoRobotParser):
        def allowed(self, url: Any, user_agent: Any) -> bool:
            return "secret" not in str(url)

    site = server.site()
    site.robots = RULES
    urls = [site.url("/open"), site.url("/secret")]
    result = await crawl(urls=urls, settings={"KOSTER_PARSER": Protego})
    assert result.fetched == (urls[0],)
    [(url, error)] = result.refused
    assert url == urls[1]
    assert isinstance(error, RobotsForbidden)


@pytest.mark.parametrize("value", [_soon, lambda: None], ids=["a coroutine", "None"])
async def test_a_line_that_is_none(crawl: Crawl, server: Server, value: Callable[[], Any]) -> None:
    site = server.site()
    site.robots = RULES
    urls = [site.url(path) for path in PAGES]
    running = crawl.start(
        urls=urls, settings={"KOSTER_PARSER": returning(KosterRobotParser, "ruling", value)}
    )
    with pytest.raises(AssertionError, match="Odd"):
        await running.result()
    assert sorted(site.pages_asked) == sorted(ALLOWED)


@pytest.mark.parametrize(
    ("method", "value"),
    [
        *(("crawl_delay", value) for name, value in WRONG.items() if name not in ("1", "None")),
        *(("lines", value) for name, value in WRONG.items() if name not in ("a list", "None")),
    ],
)
async def test_a_delay_that_is_none(
    crawl: Crawl, server: Server, method: str, value: Callable[[], Any]
) -> None:
    site = server.site()
    site.robots = RULES + "Crawl-delay: 1\n"
    base = KosterRobotParser if method == "lines" else ProtegoRobotParser
    settings = {
        "KOSTER_PARSER": returning(base, method, value),
        "KOSTER_CRAWL_DELAY": "obey",
        "KOSTER_CRAWL_DELAY_MAX_SECS": 0.01,
    }
    with pytest.raises(AssertionError, match="Error while reading the delay"):
        await crawl(urls=[site.url(ALLOWED[0])], settings=settings)
    assert site.pages_asked == [ALLOWED[0]]


@pytest.mark.parametrize("value", [_soon, lambda: None], ids=["a coroutine", "None"])
async def test_a_parser_that_builds_none(
    crawl: Crawl, server: Server, value: Callable[[], Any]
) -> None:
    site = server.site()
    parser = returning(KosterRobotParser, "from_crawler", value)
    parser.from_crawler = classmethod(lambda cls, *_: value())
    with pytest.raises(ParserDefectError, match=r"from_crawler\(\) of the parser .*Odd"):
        await crawl(urls=site.urls(1), settings={"KOSTER_PARSER": parser})
    assert site.requests == ()


# Each method with each error. One that hangs hangs the crawl: it is called in the loop.

ERRORS: dict[str, BaseException] = {
    "ZeroDivisionError": ZeroDivisionError("odd"),
    "NotConfigured": NotConfigured("odd"),
    "IgnoreRequest": IgnoreRequest("odd"),
    "StopIteration": StopIteration("odd"),
    "CancelledError of asyncio": asyncio.CancelledError("odd"),
    "CancelledError of Twisted": defer.CancelledError("odd"),
}


def failing(base: Any, method: str, error: BaseException) -> Any:
    """A parser that fails at each file but the empty one that it is tried with."""

    class Odd(base):  # type: ignore[misc]
        @classmethod
        def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> Any:
            if robotstxt_body and method == "from_crawler":
                raise error
            return super().from_crawler(crawler, robotstxt_body)

    def fails(self: object, *_: object) -> Any:
        raise error

    if method != "from_crawler":
        setattr(Odd, method, fails)
    return Odd


async def crawled_oddly(crawl: Crawl, server: Server, parser: Any) -> tuple[Any, str]:
    """Return the spider, and what was logged: all requests have ended, and nothing leaked."""
    site = server.site()
    site.robots = RULES + "Crawl-delay: 0.01\n"
    urls = [site.url(path) for path in PAGES]
    settings = {
        "KOSTER_PARSER": parser,
        "KOSTER_CRAWL_DELAY": "obey",
        "KOSTER_CRAWL_DELAY_MAX_SECS": 0.01,
        "KOSTER_DEFER_FIRST_SECS": 0.2,
        "KOSTER_DEFER_LIMIT_SECS": 0.5,
        "KOSTER_REPORT": str(crawl.folder / "report.html"),  # which asks for the record
    }
    with kept_log() as log:
        running = crawl.start(urls=urls, settings=settings)
        with suppress(AssertionError):  # it is logged, with a traceback
            await running.result()
    spider: Any = running.crawler.spider
    assert not set(site.pages_asked) & set(FORBIDDEN)
    assert sorted([*spider.fetched, *(url for url, _ in spider.refused)]) == sorted(urls)
    errors = [record for record in log if record.levelno >= logging.WARNING]
    return spider, "\n".join(logging.Formatter().format(record) for record in errors)


METHODS = ("from_crawler", "allowed", "ruling", "lines", "crawl_delay", "record", "watch")
"""All that a crawl calls; the last two of subclasses of KosterRobotParser alone."""
CLOSING = ("from_crawler", "allowed", "record", "watch")


@pytest.mark.parametrize(
    ("method", "error"),
    [
        pytest.param(method, error, id=f"{method}-{name}")
        for method in METHODS
        for name, error in ERRORS.items()
        if method in METHODS[:2] or name in ("ZeroDivisionError", "CancelledError of asyncio")
    ],
)
async def test_that_raise(crawl: Crawl, server: Server, method: str, error: BaseException) -> None:
    base = ProtegoRobotParser if method == "crawl_delay" else KosterRobotParser
    spider, said = await crawled_oddly(crawl, server, failing(base, method, error))
    assert "odd" in said
    assert "Odd" in said
    if method in CLOSING:
        assert spider.fetched == []


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
async def test_a_file_of_which_none_is_built(
    crawl: Crawl, server: Server, value: Callable[[], Any]
) -> None:
    """The empty file that it is tried with is read."""

    class Odd(KosterRobotParser):
        @classmethod
        def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> Any:
            return value() if robotstxt_body else super().from_crawler(crawler, robotstxt_body)

    spider, said = await crawled_oddly(crawl, server, Odd)
    assert spider.fetched == []
    assert "from_crawler() of the parser" in said
    assert "Odd" in said
