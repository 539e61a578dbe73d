"""(e) What RobotsMetaMiddleware adds to pages that their callback parses.

Every page is made into a response, which goes through Scrapy's own spider middlewares to its
callback, and what comes of it through them back. Downloading, scheduling and storing are left
out, which makes the middleware's share greater than it is in a crawl. There are two callbacks:
the least that one does, all links of the page in one item; and a request for each link.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeAlias

from pages import PAGE_BYTES, Kind, Pages
from report import Table
from scrapy import Request, Spider
from scrapy.core.spidermw import SpiderMiddlewareManager
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler
from timing import Times, by_turns, micros
from twisted.python.failure import Failure

SEED = 1996
PAGES = 40
ROBOT = "figtree"
ENABLED = {
    "SPIDER_MIDDLEWARES": {"scrapy_koster.RobotsMetaMiddleware": 100},
}
MIX = "all of these"
KINDS = (
    Kind("no directive", 60),
    Kind("index, follow in the head", 25, "index, follow, max-image-preview:large"),
    Kind("noindex, nofollow in the head", 10, "noindex, nofollow"),
    Kind("200 META tags of microdata", 5, microdata=True),
)
WORST = Kind("noindex at the end of the body", 5, "noindex", at_end=True)

Scraping: TypeAlias = Callable[[bytes], None]


def tables(rounds: int) -> Iterator[Table]:
    makes = Pages(SEED)
    several = {kind.name: makes.several(kind, PAGES * kind.share // 100) for kind in KINDS}
    several[MIX] = [page for pages in several.values() for page in pages]
    several[WORST.name] = makes.several(WORST, PAGES * WORST.share // 100)
    for callback in (links, follow):
        yield _table(callback, several, rounds)


def _table(
    callback: Callable[[Response], Iterator[Any]],
    several: dict[str, list[bytes]],
    rounds: int,
) -> Table:
    without, obeying = scraping(callback), scraping(callback, **ENABLED)
    jobs = {}
    for name, pages in several.items():
        jobs[f"{name}, without"] = _each(without, pages)
        jobs[name] = _each(obeying, pages)
    times = by_turns(jobs, rounds)
    return Table(
        f"META tags and headers of pages of {PAGE_BYTES // 1000} kB, us a page: {callback.__doc__}",
        ("", "pages", "without", "with", "added"),
        [
            _row(name, len(pages), times[f"{name}, without"], times[name])
            for name, pages in several.items()
        ],
    )


def _each(scrape: Scraping, pages: Sequence[bytes]) -> Callable[[], None]:
    def run() -> None:
        for page in pages:
            scrape(page)

    return run


def _row(name: str, pages: int, without: Times, obeying: Times) -> tuple[str, ...]:
    each = (micros(times.median / pages) for times in (without, obeying))
    return name, str(pages), *each, f"{without.ratio(obeying) - 1:.1%}"


def links(response: Response) -> Iterator[Any]:
    """all links in one item"""
    yield {"links": response.css("a::attr(href)").getall()}


def follow(response: Response) -> Iterator[Any]:
    """a request for each link"""
    for href in response.css("a::attr(href)").getall():
        yield response.follow(href)


def response_of(page: bytes) -> HtmlResponse:
    url = "https://example.com/page"
    headers = {"Content-Type": "text/html; charset=utf-8"}
    request = Request(url, headers={"User-Agent": "FigTree/0.1"})
    return HtmlResponse(url, body=page, headers=headers, request=request)


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run what waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits")


def scraping(callback: Callable[[Response], Iterator[Any]], **settings: Any) -> Scraping:
    """Return what brings a page through the spider middlewares."""
    crawler = get_crawler(
        Spider, {"ROBOTSTXT_OBEY": True, "ROBOTSTXT_USER_AGENT": ROBOT, **settings}
    )
    crawler.spider = Spider("measured")
    manager = SpiderMiddlewareManager.from_crawler(crawler)

    async def called(response: Response | Failure, _: Request) -> Iterator[Any]:
        assert isinstance(response, Response)
        return callback(response)

    async def scrape(response: Response) -> None:
        assert response.request is not None
        outputs = await manager.scrape_response_async(called, response, response.request)
        async for _ in outputs:
            pass

    return lambda page: run(scrape(response_of(page)))
