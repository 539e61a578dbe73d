"""What RobotsMetaMiddleware adds to the CPU time of pages that their callback parses.

    python benchmarks/page_directives.py [--pages 1000] [--rounds 3] [--seed 1996]

Every page is made into a response, which goes through Scrapy's own spider middlewares to its
callback, and what comes of it through them back: with RobotsMetaMiddleware and without it by
turns, in one process. Downloading, scheduling and storing are left out, which makes the
middleware's share greater than it is in a crawl. There are two callbacks: the least that one
does, all links of the page in one item; and a request for each link.
"""

from __future__ import annotations

import argparse
import gc
import platform
import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import process_time_ns
from typing import Any, TypeAlias

import scrapy
from scrapy import Request, Spider
from scrapy.core.spidermw import SpiderMiddlewareManager
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler
from twisted.python.failure import Failure

PAGE_BYTES = 100_000
ROBOT = "figtree"
ENABLED = {
    "SPIDER_MIDDLEWARES": {"scrapy_koster.crawl.spidermiddleware.RobotsMetaMiddleware": 100},
}
ROBOTS = '<meta name="robots" content="%s">'


Scraping: TypeAlias = Callable[[bytes], None]


@dataclass(frozen=True)
class Kind:
    """Pages of one kind, and of a hundred pages how many are of it."""

    name: str
    share: int
    robots: str = ""
    at_end: bool = False
    microdata: bool = False


KINDS = [
    Kind("no directive", 60),
    Kind("index, follow in the head", 25, "index, follow, max-image-preview:large"),
    Kind("noindex, nofollow in the head", 10, "noindex, nofollow"),
    Kind("200 META tags of microdata", 5, microdata=True),
]
WORST = Kind("noindex at the end of the body", 0, "noindex", at_end=True)


class Pages:
    """Makes pages, the same ones from the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = [
            "".join(self._random.choices(letters, k=self._random.randint(2, 10)))
            for _ in range(3000)
        ]
        self._words += ["no", "none", "robots", "caf\u00e9", "na\u00efve", "Tom &amp; Jerry"]

    def several(self, kind: Kind, number: int) -> list[bytes]:
        return [self.page(kind) for _ in range(max(1, number))]

    def words(self, most: int) -> str:
        return " ".join(self._random.choices(self._words, k=self._random.randint(1, most)))

    def word(self) -> str:
        return self._random.choice(self._words[:3000])

    def page(self, kind: Kind) -> bytes:
        robots = ROBOTS % kind.robots if kind.robots else ""
        end = f"{robots if kind.at_end else ''}</body></html>\n"
        parts = [self.head("" if kind.at_end else robots)]
        size = len(parts[0].encode()) + len(end)
        while size < PAGE_BYTES:
            parts.append(self.block(kind))
            size += len(parts[-1].encode())
        return "".join([*parts, end]).encode()

    def head(self, robots: str) -> str:
        style = "".join(f".{self.word()}{{margin:0;display:none}}\n" for _ in range(60))
        script = "".join(f"if(a<{n}&&b>2){{w['{self.word()}']='</p>'}}\n" for n in range(40))
        tags = [f'<meta name="{self.word()}" content="{self.words(20)}">' for _ in range(8)]
        tags += [f'<meta property="og:{self.word()}" content="{self.words(9)}"/>' for _ in range(8)]
        tags += [f'<link rel="preload" href="/static/{self.word()}.css">' for _ in range(6)]
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{self.words(9)}</title>\n<!-- {self.words(9)} -->\n<style>{style}</style>\n"
            + "\n".join(tags)
            + f"\n<script>{script}</script>\n{robots}\n</head>\n<body>\n"
        )

    def block(self, kind: Kind) -> str:
        links = "".join(
            f'<li class="{self.word()}"><a href="/{self.word()}/{self.word()}?id={n}&amp;x=1">'
            f"{self.words(4)}</a></li>\n"
            for n in range(self._random.randint(1, 6))
        )
        tags = '<meta itemprop="position" content="1">' * 2 if kind.microdata else ""
        return (
            f'<div class="{self.word()} {self.word()}" id="{self.word()}">{tags}\n'
            f"<h2>{self.words(8)}</h2>\n"
            f'<img src="/i/{self.word()}.png" alt="{self.words(5)}" width="40" height="30">\n'
            f"<p>{self.words(60)} <b>{self.words(3)}</b> {self.words(60)}</p>\n"
            f"<ul>\n{links}</ul>\n</div>\n"
        )


def links(response: Response) -> Iterator[Any]:
    """All links in one item."""
    yield {"links": response.css("a::attr(href)").getall()}


def follow(response: Response) -> Iterator[Any]:
    """A request for each link."""
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


@dataclass
class Times:
    """Of one kind of page: microseconds of CPU, page by page, round by round."""

    kind: Kind
    pages: Sequence[bytes]
    rounds: list[tuple[list[float], list[float]]] = field(default_factory=list)

    def measure(self, without: Scraping, obeying_them: Scraping) -> None:
        plain: list[float] = []
        obeying: list[float] = []
        for number, page in enumerate(self.pages):
            turns = [(without, plain), (obeying_them, obeying)]
            for do, times in turns if number % 2 else reversed(turns):
                began = process_time_ns()
                do(page)
                times.append((process_time_ns() - began) / 1000)
            if number % 50 == 0:
                gc.collect()
        self.rounds.append((plain, obeying))

    def of_pages(self) -> tuple[list[float], list[float]]:
        """The median of each page over the rounds, without and with the middleware."""
        plain = [median(times) for times in zip(*(plain for plain, _ in self.rounds), strict=True)]
        obeying = [
            median(times) for times in zip(*(with_ for _, with_ in self.rounds), strict=True)
        ]
        return plain, obeying


def row(name: str, several: Sequence[Times]) -> str:
    plain: list[float] = []
    obeying: list[float] = []
    for times in several:
        of_pages = times.of_pages()
        plain += of_pages[0]
        obeying += of_pages[1]
    of_rounds = [
        sum(sum(times.rounds[n][1]) for times in several)
        / sum(sum(times.rounds[n][0]) for times in several)
        for n in range(len(several[0].rounds))
    ]
    added = [with_ - without_ for without_, with_ in zip(plain, obeying, strict=True)]
    return (
        f"{name:<32}{len(plain):>6}{median(plain):>10.0f}{median(obeying):>10.0f}"
        f"{median(added):>8.0f}{sum(obeying) / sum(plain) - 1:>9.1%}"
        f"   {min(of_rounds) - 1:.1%} to {max(of_rounds) - 1:.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1996)
    arguments = parser.parse_args()
    pages = Pages(arguments.seed)
    mixed = {kind: pages.several(kind, arguments.pages * kind.share // 100) for kind in KINDS}
    mixed[WORST] = pages.several(WORST, arguments.pages // 20)
    gc.disable()
    print(
        f"Python {platform.python_version()}, Scrapy {scrapy.__version__}; "
        f"{arguments.pages} pages of {PAGE_BYTES // 1000} kB, {arguments.rounds} rounds, "
        f"seed {arguments.seed}; us of CPU a page, medians"
    )
    for callback in (links, follow):
        several = [Times(kind, of_kind) for kind, of_kind in mixed.items()]
        without, obeying = scraping(callback), scraping(callback, **ENABLED)
        for _ in range(arguments.rounds):
            for times in several:
                times.measure(without, obeying)
        print(
            f"\n{callback.__doc__:<32}{'pages':>6}{'without':>10}{'with':>10}{'added':>8}"
            f"{'total':>9}   rounds, from and to"
        )
        *ordinary, worst = several
        for times in ordinary:
            print(row(times.kind.name, [times]))
        print(row("all of these", ordinary))
        print(row(worst.kind.name, [worst]))


if __name__ == "__main__":
    main()
