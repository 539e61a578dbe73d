"""Section 6: whatever servers and storages say, each line of ours is one printable line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from harness.comparison import SETTINGS
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Raw, Reply
from harness.server import Server
from scrapy import Request
from scrapy.http import Response

NASTY = "\x1b[2J\x9b31m\u2028\u202e\u200b\x07\r\n"
OCTETS = b"\x1b[2J\x9b31m\xe2\x80\xa8\xe2\x80\xae\x07"
HOSTS = ("a\u2028b.example", "a\u202eb.example", "\x9b31m.example")
QUICK = {**SETTINGS, "KOSTER_DEFER_LIMIT_SECS": 0.1}
LONGEST = 4000
"""Of a line; most are below 500."""


def ours(result: CrawlResult) -> list[logging.LogRecord]:
    return [record for record in result.log if record.name.startswith("scrapy_koster")]


def whole(record: logging.LogRecord) -> Iterator[str]:
    """The lines of a record, with its traceback: of that each is one."""
    yield record.getMessage()
    if record.exc_info:
        yield from logging.Formatter().formatException(record.exc_info).split("\n")


def assert_harmless(result: CrawlResult, *said: str) -> None:
    records = ours(result)
    for record in records:
        for line in whole(record):
            assert line.isprintable(), ascii(line)
            assert len(line) < LONGEST
    for _, error in result.refused:
        assert str(error).isprintable()
    messages = "\n".join(record.getMessage() for record in records)
    for words in said:
        assert words in messages


ANSWERS = (
    Raw(200, b"HTTP/1.1 503 " + OCTETS + b"\r\n\r\n"),
    Raw(200, b"HTTP/1.1 200 OK\r\n" + OCTETS + b": x\r\n\r\n"),
    Raw(200, b"HTTP/1.1 200 OK\r\nContent-Encoding: " + OCTETS + b"\r\n\r\n#"),
    Raw(200, b"HTTP/1.1 301 Moved\r\nLocation: http://" + OCTETS + b"/\r\n\r\n"),
    Reply(200, b"User-agent: *" + OCTETS + b"\nUser-agent: *\nDisallow: /" + OCTETS + b"*"),
)


async def test_hosts_and_answers_reach_the_log_as_printable_lines(
    crawl: Crawl, server: Server
) -> None:
    """Scrapy takes such a host as it is; a proxy is asked for it."""
    proxy = server.site()
    proxy.pages(Reply(503))
    through = {"proxy": proxy.url()}
    sites = [server.site() for _ in ANSWERS]
    for site, answer in zip(sites, ANSWERS, strict=True):
        site.robots = answer
    agent = {"User-Agent": OCTETS.decode("latin-1")}
    urls = [site.url(path) for site in sites for path in ("/", f"/{NASTY}*")]
    requests = [Request(url, headers=agent) for url in urls]
    requests += [Request(f"http://{host}/a", headers=agent, meta=through) for host in HOSTS]
    result = await crawl(urls=requests, settings=QUICK)
    assert_harmless(result, *(site.url("") for site in sites))


class Elsewhere:
    """A page may say that its URL is any other, by a handler or a middleware."""

    def process_response(self, request: Request, response: Response) -> Response:
        if request.url.endswith("/robots.txt"):
            return response
        response._set_url(f"http://{HOSTS[0]}/{NASTY}")
        return response


class Yielding(RecordingSpider):
    def page(self, response: Response) -> Any:
        kind = type(f"Item{NASTY}", (dict,), {})
        return [kind(), Request(f"http://{HOSTS[0]}/{NASTY}")]


async def test_a_page_reaches_the_log_as_printable_lines(crawl: Crawl, server: Server) -> None:
    site = server.site()
    head = f'<meta name="robots" content="none,{NASTY[:-3]}">'.encode()
    site.page("/page", Reply(200, head, headers={"Content-Type": "text/html"}))
    settings = {**SETTINGS, "DOWNLOADER_MIDDLEWARES": {Elsewhere: 1}}
    result = await crawl(Yielding, urls=[site.url("/page")], settings=settings)
    assert_harmless(result, "Dropped an item (Item\\x1b[2J", "Dropped <GET http://a\\u2028b")
