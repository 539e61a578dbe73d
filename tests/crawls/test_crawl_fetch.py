"""The request for a /robots.txt stands apart from the crawl, whatever the crawl's settings are."""

from __future__ import annotations

import time
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import pytest
import scrapy
from harness.comparison import PADDED, RULES, SETTINGS
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Raw, Reply, endless, redirect
from harness.server import Server, Site
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_koster import RobotsForbidden, RobotsUnavailable
from scrapy_koster.crawl.config import DEFAULTS

MAX_BYTES = 512_000
STALLED = {**SETTINGS, "KOSTER_TIMEOUT_SECS": 0.5, "KOSTER_DEFER_LIMIT_SECS": 0.1}


async def crawl_site(crawl: Crawl, site: Site, **arguments: Any) -> CrawlResult:
    """A page that is allowed, then one that is not."""
    settings = {**SETTINGS, "CONCURRENT_REQUESTS": 1, **arguments.pop("settings", {})}
    urls = [site.url("/page"), site.url("/secret")]
    return await crawl(
        arguments.pop("spider", RecordingSpider), urls=urls, settings=settings, **arguments
    )


def obeyed(result: CrawlResult, site: Site) -> bool:
    return (
        result.fetched == (site.url("/page"),)
        and [(url, type(error)) for url, error in result.refused]
        == [(site.url("/secret"), RobotsForbidden)]
        and site.pages_asked == ["/page"]
    )


# The settings of the crawl change nothing.

EITHER_WAY = (
    "REDIRECT_ENABLED",
    "RETRY_ENABLED",
    "COOKIES_ENABLED",
    "HTTPCACHE_ENABLED",
    "AUTOTHROTTLE_ENABLED",
    "METAREFRESH_ENABLED",
    "HTTPPROXY_ENABLED",
    "DOWNLOADER_STATS",
    "COMPRESSION_ENABLED",
)


@pytest.mark.parametrize("switched_on", [True, False])
async def test_no_switch_changes_what_an_answer_means(
    crawl: Crawl, server: Server, switched_on: bool
) -> None:
    """A failure, then redirects to another host, which sets a cookie, to the rules."""
    site, other = server.site(), server.site(host="127.0.0.2")
    site.robots = [Reply(503), redirect("/hop6")]
    site.page("/hop6", redirect(other.url("/hop5")))
    for hop in range(5, 1, -1):
        other.page(f"/hop{hop}", redirect(f"/hop{hop - 1}"))
    other.page("/hop1", Reply(200, PADDED, headers={"Set-Cookie": "a=b"}))
    settings = {
        **dict.fromkeys(EITHER_WAY, switched_on),
        "HTTPCACHE_DIR": str(crawl.folder / "httpcache"),
        "KOSTER_DEFER_LIMIT_SECS": 10,
        "KOSTER_REDIRECT_MAX": 6,  # one more than without it
        "DOWNLOAD_MAXSIZE": 100,
        "AUTOTHROTTLE_START_DELAY": 0.1,
    }
    result = await crawl_site(
        crawl, site, settings=settings, arguments={"allowed_domains": ["127.0.0.1"]}
    )
    assert result.fetched == (site.url("/page"),)
    assert site.pages_asked == ["/hop6", "/page"]
    assert site.asked("/robots.txt") == 2
    assert other.asked("/hop1") == 1
    assert result.stats["robotstxt/request_count"] == 2
    assert result.stats["robotstxt/response_count"] == 2
    assert "httpcache/hit" not in result.stats
    assert result.stats.get("httpcache/store", 0) == switched_on  # of the page
    assert "retry/count" not in result.stats
    assert "offsite/filtered" not in result.stats


async def test_the_rules_are_those_of_the_site_that_was_asked(crawl: Crawl, server: Server) -> None:
    """Not of the other, which has its own."""
    site, other = server.site(), server.site()
    site.robots = redirect(other.url("/rules"))
    other.page("/rules", RULES)
    urls = [each.url("/secret") for each in (site, other)]
    for _ in range(2):  # the second time both have them from the storage
        result = await crawl(urls=urls, settings=SETTINGS)
        assert result.errors == {site.url("/secret"): RobotsForbidden}


# What is sent.


async def test_the_headers(crawl: Crawl, server: Server) -> None:
    """Cookies that the answers set are not kept."""
    site = server.site()
    site.robots = [
        Reply(302, headers={"Location": "/robots.txt?2", "Set-Cookie": "hop=1; Path=/"}),
        Reply(200, RULES, headers={"Set-Cookie": "session=1; Path=/"}),
    ]
    await crawl_site(crawl, site, headers={"User-Agent": "FigTree/0.1", "X-Page": "1"})
    asked = site.requests[0]
    assert asked.method == "GET"
    assert asked.header("User-Agent") == "FigTree/0.1"
    assert asked.header("Accept") == "text/plain, */*;q=0.1"
    assert asked.header("Accept-Encoding") == "identity"
    for name in ("X-Page", "Referer", "Authorization", "If-None-Match"):
        assert asked.header(name) is None
    assert [asked.header("Cookie") for asked in site.requests] == [None, None, None]


# The proxy of the page that asks.


class Recorder:
    """A downloader middleware that signs requests, and keeps the meta of those for a robots.txt."""

    seen: list[dict[str, Any]] = []
    answered: list[int] = []

    def process_request(self, request: Request) -> None:
        request.headers["X-Signed"] = "1"
        if request.url.endswith("/robots.txt"):
            self.seen.append(dict(request.meta))

    def process_response(self, request: Request, response: Any) -> Any:
        self.answered.append(response.status)
        return response


CONNECTED = {"bindaddress": ("127.0.0.1", 0), "impersonate": "a", "impersonate_args": {"b": 1}}


@pytest.mark.parametrize("keys", [DEFAULTS["KOSTER_PAGE_META"], ["mine", "dont_retry"]])
async def test_the_connection_meta_of_the_page(
    crawl: Crawl, server: Server, monkeypatch: pytest.MonkeyPatch, keys: list[str]
) -> None:
    site = server.site()
    site.robots = RULES
    monkeypatch.setattr(Recorder, "seen", [])
    monkeypatch.setattr(Recorder, "answered", [])
    settings = {"DOWNLOADER_MIDDLEWARES": {Recorder: 900}, "KOSTER_PAGE_META": keys}
    meta = {**CONNECTED, "mine": 1, "dont_retry": False}
    assert obeyed(await crawl_site(crawl, site, meta=meta, settings=settings), site)
    [seen] = Recorder.seen
    passed = {"mine": 1} if "mine" in keys else CONNECTED
    assert {key: seen[key] for key in (*CONNECTED, "mine") if key in seen} == passed
    assert seen["dont_retry"] is True
    assert Recorder.answered == [200, 200]
    assert [asked.header("X-Signed") for asked in site.requests] == ["1", "1"]


async def test_a_retry_uses_another_proxy_of_the_waiting_pages(
    crawl: Crawl, server: Server
) -> None:
    """The first page and the last have a dead one, which is no failure of the site."""
    site, dead, good = server.site(), server.down().url(), server.proxy().url()
    urls = site.urls(4)
    proxies = zip(urls, (dead, good, good, dead), strict=True)
    requests = [Request(url, meta={"proxy": proxy, "max_retry_times": 0}) for url, proxy in proxies]
    result = await crawl(urls=requests)
    assert sorted(result.fetched) == urls[1:3]
    assert result.stats["robotstxt/request_count"] == 2


# Redirects into the network of the crawler.


class Internet:
    """A download handler whose sites have the addresses that their names say."""

    lazy = False
    moved: dict[str, str] = {}
    asked: list[str] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Any:
        return cls()

    async def download_request(self, request: Request) -> Any:
        self.asked.append(request.url)
        host = urlsplit(request.url).hostname or ""
        is_public = host.startswith("public")
        address = "8.8.8.8" if is_public else "10.0.0.9" if host.endswith("example") else host
        to = self.moved.get(request.url)
        return Response(
            request.url,
            302 if to else 200,
            headers={"Location": to} if to else {},
            body=b"" if to else RULES.encode(),
            ip_address=ip_address(address),
        )

    async def close(self) -> None:
        pass


INSIDE = "http://inside.example"
TO_THE_NETWORK = {
    "http://public1.example": "http://169.254.169.254/latest/meta-data/",
    "http://public2.example": "http://[::ffff:10.0.0.1]/",
    "http://public3.example": f"{INSIDE}/rules",
    "http://public4.example": "http://public5.example/moved",
}


async def test_a_redirect_from_a_public_site_to_the_network_of_the_crawler(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = {f"{site}/robots.txt": to for site, to in TO_THE_NETWORK.items()}
    moved["http://public5.example/moved"] = "http://10.0.0.1/"
    moved[f"{INSIDE}/robots.txt"] = "http://10.0.0.1/robots.txt"
    moved["http://public6.example/robots.txt"] = "http://public6.example/rules"
    monkeypatch.setattr(Internet, "asked", [])
    monkeypatch.setattr(Internet, "moved", moved)
    allowed = (INSIDE, "http://public6.example")
    urls = [f"{site}/secret" for site in (*TO_THE_NETWORK, *allowed)]
    settings = {**SETTINGS, "DOWNLOAD_HANDLERS": {"http": Internet}}
    result = await crawl(urls=urls, settings=settings)
    assert result.errors == {
        **{f"{site}/secret": RobotsUnavailable for site in TO_THE_NETWORK},
        **{f"{site}/secret": RobotsForbidden for site in allowed},
    }
    told = "it redirects to an address that is not public"
    for site in TO_THE_NETWORK:
        assert any(site in line and told in line for line in result.logged())
    assert f"{INSIDE}/rules" in Internet.asked  # its address is known when it has answered
    for private in ("169.254", "ffff", "10.0.0.1/"):
        assert not [url for url in Internet.asked if private in url and "robots" not in url]


# What it may cost.


async def test_an_endless_body_is_cut_at_the_cap(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = endless(f"{RULES}#\n" * 200)  # the limit divides a line
    result = await crawl_site(crawl, site)
    assert obeyed(result, site)
    assert site.asked("/robots.txt") == 1
    assert site.sent("/robots.txt") < MAX_BYTES + 5_000_000  # what buffers hold on both sides
    sent = site.sent("/robots.txt")
    await crawl.sleep(0.1)
    assert site.sent("/robots.txt") == sent


LONG_RULES = RULES.encode() + b"# %b\n" % (b"x" * 98) * 4990
HEAD = b"HTTP/1.1 200 OK\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
SMALL_CHUNKS = b"".join(b"8\r\n%b\r\n" % LONG_RULES[i : i + 8] for i in range(0, 160_000, 8))
WELL_MEANT = (
    Reply(200, LONG_RULES, headers=[("X", "x" * 400)] * 120),
    Raw(200, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + SMALL_CHUNKS + b"0\r\n\r\n"),
    Raw(200, INTERIM + HEAD + b"Content-Length: %d\r\n\r\n" % len(LONG_RULES) + LONG_RULES),
)


async def test_what_is_long_and_has_an_end_is_obeyed(crawl: Crawl, server: Server) -> None:
    sites = [server.site("https") for _ in WELL_MEANT]
    for site, answer in zip(sites, WELL_MEANT, strict=True):
        site.robots = answer
    urls = [site.url(path) for site in sites for path in ("/page", "/secret")]
    # So much over TLS is work: how long it takes says more of the machine.
    result = await crawl(urls=urls, settings={**SETTINGS, "KOSTER_TIMEOUT_SECS": 50})
    assert result.errors == {site.url("/secret"): RobotsForbidden for site in sites}
    assert [site.pages_asked for site in sites] == [["/page"]] * 3


async def test_headers_have_a_limit(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = Reply(200, RULES, headers=[("X", "x" * 1000)] * 70)
    settings = {**SETTINGS, "KOSTER_DEFER_LIMIT_SECS": 0.1}
    result = await crawl(urls=[site.url("/page")], settings=settings)
    [(_, error)] = result.refused
    assert "its headers are longer than 65536 bytes" in str(error)


class Blocking:
    """Blocks the loop when a piece of a robots.txt has arrived."""

    def __init__(self, crawler: Crawler) -> None:
        self.count = 0
        crawler.signals.connect(self.received, scrapy.signals.bytes_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Blocking:
        return cls(crawler)

    def received(self, request: Request) -> None:
        if request.url.endswith("/robots.txt") and self.count < 8:
            self.count += 1
            time.sleep(0.2)


@pytest.mark.real_time
async def test_time_in_which_the_loop_is_blocked_is_not_the_time_of_the_site(
    crawl: Crawl, server: Server
) -> None:
    """The file arrives at once, and the loop needs three times the time limit to read it."""
    site = server.site()
    site.robots = RULES + "#\n" * 250_000
    settings = {**STALLED, "EXTENSIONS": {Blocking: 1}}
    assert obeyed(await crawl_site(crawl, site, settings=settings), site)
