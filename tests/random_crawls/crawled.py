"""The crawled project: all processes of it are forked from `python crawled.py FD`.

It knows scrapy-koster by its settings alone, and writes what happens as lines of JSON: each
request that is made, each callback, errback and download, and the stats.
"""

from __future__ import annotations

import json
import os
import random
import resource
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.exceptions import DontCloseSpider
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

TOLD: dict[str, Any] = {}
"""What this process was told to crawl, and how."""
HANDLERS = "scrapy.core.downloader.handlers."
IMPORTED = (
    *("scrapy.pipelines.files", f"{HANDLERS}http11", f"{HANDLERS}_aiohttp", f"{HANDLERS}_httpx"),
    *("scrapy_redis.scheduler", "twisted.internet.asyncioreactor"),
)
"""Imported once for all processes. None of these may install a reactor."""


def tell(event: str, url: str = "", **more: Any) -> None:
    line = json.dumps({"event": event, "url": url, "at": time.time(), **more}, default=str)
    os.write(1, f"{line}\n".encode())


class Random(Spider):
    name = "random"
    first = "page"
    """The method that gets the responses of start requests."""
    made = 0

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signals.spider_idle)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        for url, secs in TOLD["starts"]:
            if secs:
                waiting: Deferred[None] = Deferred()
                call_later(secs, waiting.callback, None)
                await maybe_deferred_to_future(waiting)
            yield self.ask(Request(url))

    def ask(self, request: Request, **more: Any) -> Any:
        """Return the request to send, with a number."""
        self.made += 1
        more.setdefault("dont_filter", request.dont_filter)
        number = f"{os.getpid()}.{self.made}"
        tell("made", request.url, id=number, again=more["dont_filter"])
        return request.replace(
            callback=request.callback or getattr(self, self.first),
            errback=self.failed,
            priority=self.made % 3,
            cb_kwargs={"number": number},
            meta={**request.meta, "asked": request.url},
            **more,
        )

    def idle(self) -> None:
        if urls := TOLD.pop("idle", ()):
            for url in urls:
                self.crawler.engine.crawl(self.ask(Request(url)))
            raise DontCloseSpider

    async def page(self, response: Any, number: str = "") -> AsyncIterator[Any]:
        tell("callback", response.meta["asked"], id=number)
        for url in response.css("link[rel=inner]::attr(href)").getall():
            await self.download(url)
        if TOLD["spider"] != "crawl":
            for link in response.css("a"):
                yield self.ask(Request(link.attrib["href"]))
                if link.attrib["class"]:
                    yield self.ask(Request(link.attrib["href"]), dont_filter=True)
        pictures = response.css("img::attr(src)").getall()
        yield {"file_urls": pictures, "body": response.text}

    async def download(self, url: str) -> None:
        tell("download", url)
        try:
            await self.crawler.engine.download_async(Request(url))
        except Exception as error:  # noqa: BLE001
            tell("downloaded", url, error=type(error).__name__)
        else:
            tell("downloaded", url)

    def failed(self, failure: Any) -> Iterator[Any]:
        request, name = failure.request, type(failure.value).__name__
        url = request.meta["asked"]
        tell("errback", url, id=request.cb_kwargs["number"], error=name)
        if TOLD["retries"] and not request.meta.get("second"):
            yield self.ask(Request(url, meta={"second": True}), dont_filter=True)


class Crawling(Random, CrawlSpider):
    first = "_parse"
    rules = [Rule(LinkExtractor(), callback="page", process_request="asked", follow=True)]

    def asked(self, request: Request, _response: Any) -> Any:
        return self.ask(request)

    async def parse_start_url(self, response: Any, **kwargs: Any) -> Any:
        return [item async for item in self.page(response, **kwargs)]


class Mapped(Random, SitemapSpider):
    sitemap_rules = [("", "page")]

    async def start(self) -> AsyncIterator[Any]:
        yield Request(TOLD["sitemap"], self._parse_sitemap)

    def _parse_sitemap(self, response: Any) -> Iterator[Request]:
        yield from map(self.ask, SitemapSpider._parse_sitemap(self, response))


class Blocking:
    """A pipeline that blocks the loop."""

    count = 0

    def process_item(self, item: Any) -> Any:
        self.count += 1
        if self.count % 5 == 0 and TOLD["block"]:
            tell("blocks", until=time.time() + TOLD["block"])
            time.sleep(TOLD["block"])
        return item


class Turning:
    """A middleware after scrapy-koster that changes the URL of a request in place."""

    def process_request(self, request: Request) -> None:
        if request.url in TOLD["turned"]:
            request._set_url(TOLD["turned"][request.url])


def known(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without those of the memory that this scrapy-koster does not have."""
    source = Path(str(files("scrapy_koster")))
    text = "".join(path.read_text("utf-8") for path in source.rglob("*.py"))
    return {
        name: value
        for name, value in settings.items()
        if not name.startswith("KOSTER_MEMORY") or f'"{name}"' in text
    }


def crawl() -> None:
    # As `scrapy crawl` does.
    kind = CrawlerProcess if "TWISTED_REACTOR" in TOLD["settings"] else AsyncCrawlerProcess
    process = kind(known(TOLD["settings"]))
    spiders = {"plain": Random, "crawl": Crawling, "sitemap": Mapped}
    crawler = process.create_crawler(spiders[TOLD["spider"]])
    process.crawl(crawler)
    process.start()
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    tell("ended", stats=crawler.stats.get_stats(), megabytes=used)


def fork_all(server: socket.socket) -> None:
    """Fork a process for each file that is sent, and return in that process."""
    for name in IMPORTED:
        with suppress(ImportError):
            import_module(name)
    while True:
        message, fds, _, _ = socket.recv_fds(server, 10_000, 3)
        if not message:
            os._exit(0)
        if not os.fork():
            break
        for fd in fds:
            os.close(fd)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    if program := os.fork():  # the parent tells how it ends
        os.close(fds[0])
        os.close(fds[1])
        os.write(fds[2], struct.pack("i", program))
        os.write(fds[2], struct.pack("i", os.waitpid(program, 0)[1]))
        os._exit(0)
    server.close()
    for number, fd in enumerate(fds, start=1):
        os.dup2(fd, number) if number < 3 else os.close(fd)
    file, environment = json.loads(message)
    os.environ.update(environment)
    os.chdir(Path(file).parent)
    random.seed()
    TOLD.update(json.loads(Path(file).read_text("utf-8")))


if __name__ == "__main__":
    fork_all(socket.socket(fileno=int(sys.argv[1])))
    crawl()
