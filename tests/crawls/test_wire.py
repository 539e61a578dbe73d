"""What download handlers make of random hostile URLs, as the site receives it.

Whatever is received has to be allowed by the file of the site that received it, and has to be a
spelling that `sent_as` foresaw. WIRE_URLS=20000 asks for more of them on each way.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from urllib.parse import urlparse

import pytest
import scrapy
from harness.crawling import Crawl
from harness.replies import Reply
from harness.server import Server, Site
from harness.sizes import so_many
from scrapy import Request
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.misc import load_object
from scrapy.utils.reactor import is_reactor_installed

from scrapy_koster import RobotsForbidden
from scrapy_koster.protocol.path import url_path
from scrapy_koster.protocol.reading import RobotsTxt
from scrapy_koster.protocol.rewriting import sent_as
from scrapy_koster.protocol.site import site_of

URLS = int(os.environ.get("WIRE_URLS", so_many(60, 300)))

PIECES = [
    "/", "/", "/", "//", ".", "..", "/../", "/./", "/.", ";", ";x", "?", "&", "=", "#", "a", "b",
    "%2F", "%2f", "%2e", "%2E", "%25", "%3F", "%3b", "%23", "%5C", "%", "%4", "%zz", "%41",
    "%c3%a9", "%E9", "\u00e9", " ", "%20", "\t", "\n", "\r", "+", "%2B", "%26", "%3D", "@", ":",
    "\\", "[", "]", "|", "^", "{", '"', "<", "'", "~", "%7e", "*", "\0", "%00", "\x7f", "\u2028",
    "!", "$", "%24", ",", "(", "`", "%09", "%0a", "%e3%80%82",
]  # fmt: skip
RULE_PIECES = [piece for piece in PIECES if not re.search(r"[#\s\0]", piece)]

FOLDER = "scrapy.core.downloader.handlers"
HANDLERS = {
    "HTTP/1.1": f"{FOLDER}.http11.HTTP11DownloadHandler",
    "HTTP/2": f"{FOLDER}.http2.H2DownloadHandler",
    "aiohttp": f"{FOLDER}._aiohttp.AiohttpDownloadHandler",
    "httpx": f"{FOLDER}._httpx.HttpxDownloadHandler",
}
LONG = pytest.mark.long
SECOND_WAYS = {("aiohttp", "https"), ("httpx", "http")}
"""Scrapy's own handler goes both ways in `make test`, and each of the others goes one."""
WAYS = [
    pytest.param(
        name,
        scheme,
        way,
        id=f"{name} {scheme} {way}",
        marks=LONG if (name, scheme) in SECOND_WAYS else (),
    )
    for name in HANDLERS
    for scheme, way in (("http", "proxy"), ("https", "direct"))
    # HTTP/2 is over https alone, and Scrapy 2.14 has no page with it and its newest pyOpenSSL.
    if name != "HTTP/2" or (scheme == "https" and scrapy.version_info >= (2, 15))
]


def requests(site: Site, chance: random.Random, **meta: object) -> list[Request]:
    """Return requests with their numbers, some of them for URLs as they are spelt."""
    made: list[Request] = []
    while len(made) < URLS:
        start = chance.choice(["/"] * 9 + ["?", "#", ""])
        url = site.url(start + "".join(chance.choices(PIECES, k=chance.randint(0, 8))))
        verbatim = {"verbatim_url": True} if chance.random() < 0.25 else {}
        headers = {"X-Number": str(len(made))}
        # Scrapy makes no request of some. A spider may make another request of one.
        with suppress(ValueError):
            request = Request(url, headers=headers, meta={**meta, **verbatim}, dont_filter=True)
            if site_of(request.replace().url) == site_of(site.url()):
                made.append(request)
    return made


def file_of(chance: random.Random) -> bytes:
    """About half of the URLs are forbidden by it."""
    lines = ["User-agent: *"]
    for length in [3] * 40 + [2] * 40 + [1] * (len(RULE_PIECES) // 3):
        field = "Disallow" if length == 1 else chance.choice(["Allow", "Disallow"])
        lines.append(f"{field}: /{''.join(chance.choices(RULE_PIECES, k=length))}")
    return "\n".join(lines).encode()


def received(site: Site) -> Iterator[tuple[int, bytes]]:
    """The number of each page that was asked for, and the URL that the site takes it for."""
    for asked in site.requests:
        number = asked.header("X-Number")
        if number is not None:
            target = asked.target.encode("latin-1")
            if not target.startswith((b"http://", b"https://")):
                target = b"http://h" + target
            yield int(number), target


def settings_for(name: str) -> dict[str, object]:
    """Return the settings that have everything downloaded by this handler."""
    if not is_reactor_installed() if name.startswith("HTTP/") else not is_asyncio_available():
        pytest.skip("needs a reactor, or asyncio")
    try:
        load_object(HANDLERS[name])
    except (ImportError, NameError):
        pytest.skip("this Scrapy has it not, or the library is not installed")
    return {
        "DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), HANDLERS[name]),
        "LOG_LEVEL": "CRITICAL",
        "RETRY_ENABLED": False,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    }


@pytest.mark.bound(60 + URLS / 10)
@pytest.mark.parametrize(("name", "scheme", "way"), WAYS)
async def test_all_that_a_site_receives_is_allowed(
    crawl: Crawl, server: Server, name: str, scheme: str, way: str
) -> None:
    settings = settings_for(name)
    chance = random.Random(f"{name} {scheme} {way}")
    robots = file_of(chance)
    site = server.http2() if name == "HTTP/2" else server.site(scheme)
    site.robots = Reply(body=robots)
    meta, asked_at = {}, site
    if way == "proxy":
        asked_at = server.site()
        asked_at.page(site.url("/robots.txt"), Reply(body=robots))
        meta["proxy"] = asked_at.url()

    asked = requests(site, chance, **meta)
    result = await crawl(urls=asked, settings=settings)
    rules = RobotsTxt(robots)
    sent = list(received(asked_at))
    unforeseen = [
        (asked[number].url, target)
        for number, target in sent
        if url_path(target) not in {url_path(each) for each in sent_as(asked[number].url)}
    ]
    assert unforeseen == []
    assert [target for _, target in sent if not rules.allowed(target, "figtree")] == []
    assert len(sent) > URLS // 10
    refused = [error for _, error in result.refused if isinstance(error, RobotsForbidden)]
    assert len(refused) > URLS // 10


AUTHORITIES = [
    "{a}@{b}", "{b}@{a}", "{a}\\@{b}", "{b}\\@{a}", "{a}/@{b}", "{a}?@{b}", "{a}#@{b}",
    "{a};@{b}", "{a}%2F@{b}", "{a}%40{b}", "{a}\t@{b}", "{a}\n@{b}", "{a} @{b}", "\t{a}", " {a}",
    "@{a}", ":@{b}", "user:pw@{a}", "a@b@{b}", "127.0.0.%31:{port}", "127.0.0.%32:{port}",
    "127.1:{port}", "127.0.0.02:{port}", "2130706433:{port}", "0x7f.1:{port}", "127.0.0.1:0{port}",
    "127.0.0.1:+{port}", "127.0.0.1: {port}", "127\u30020\u30020\u30021:{port}",
    "\u2460\u2461\u2466.0.0.1:{port}", "127.0.0.\uff11:{port}", "[::ffff:127.0.0.2]:{port}",
    "LOCALHOST:{port}", "localhost:0{port}", "/{a}", "\\{b}",
]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["HTTP/1.1", pytest.param("aiohttp", marks=LONG), pytest.param("httpx", marks=LONG)]
)
async def test_the_site_that_is_asked_is_the_one_that_decided(
    crawl: Crawl, server: Server, name: str
) -> None:
    first, second = server.site(host="127.0.0.1"), server.site(host="127.0.0.2")
    first.robots, second.robots = "User-agent: *\nDisallow: /b", "User-agent: *\nDisallow: /a"
    asked = []
    ways = product(AUTHORITIES, ([first, second], [second, first]), "ab", (False, True))
    for authority, sites, path, is_verbatim in ways:
        spelt = authority.format(a=sites[0].authority, b=sites[1].authority, port=sites[0].port)
        url = f"http://{spelt}/{path}"
        meta = {"verbatim_url": True} if is_verbatim else {}
        with suppress(ValueError):
            request = Request(url, meta=meta, dont_filter=True)
            urlparse(request.replace().url)
            asked.append(request)
    settings = settings_for(name) | {"KOSTER_UNAVAILABLE": "disallow"}
    await crawl(urls=asked, settings=settings)
    for site, forbidden in ((first, "/b"), (second, "/a")):
        assert len(site.pages_asked) > 5
        assert not [page for page in site.pages_asked if page.startswith(forbidden)]
