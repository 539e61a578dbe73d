"""What becomes of a URL on its way: held against the libraries that send it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.spiders import Spider

from scrapy_koster.crawl.rewriting import may_rewrite, sent_as
from scrapy_koster.protocol.robotstxt import url_path

PIECES = ["/", ".", "?", "#", "%2F", "%2f", "%2e", "%2E", "%25", "%3f", "%", "..", "./", "../"]
MORE_PIECES = ["//", ";", "&", "=", "+", "%20", "%41", "~", "a", "b", "\u00e9", "%c3", "\\", "@"]


def paths(url: str) -> list[str]:
    return list(dict.fromkeys(map(url_path, sent_as(f"http://a.example{url}"))))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", ["/"]),
        ("/a.b/c%20d?e=.", ["/a.b/c d?e=."]),
        ("/a/../b", ["/a/../b", "/b"]),
        ("/a/./b?c", ["/a/./b?c", "/a/b?c"]),
        ("/../../b#/../c", ["/../../b", "/b"]),
        ("/a/..", ["/a/..", "/"]),
        ("/a/.", ["/a/.", "/a", "/a/"]),
        ("//../b", ["//../b", "/b"]),
        ("/a/%2e%2E/b", ["/a/../b", "/b"]),
        ("/a?/../b", ["/a?/../b"]),
        ("/a?b=%2Fc", ["/a?b=%2Fc", "/a?b=/c"]),
        ("?b=%2fc", ["/?b=%2fc", "/?b=/c"]),
        ("/a%2Fb", ["/a%2Fb"]),
        ("/.a/..b/c..", ["/.a/..b/c.."]),
    ],
)
def test_what_it_may_be_sent_as(url: str, expected: list[str]) -> None:
    assert paths(url) == [url_path(f"http://a.example{path}") for path in expected]


def by_yarl() -> Callable[[str], str]:
    yarl = pytest.importorskip("yarl")
    return lambda url: str(yarl.URL(url).raw_path_qs)


def by_httpx() -> Callable[[str], str]:
    for name in ("httpx2", "httpx"):
        if importlib.util.find_spec(name):
            httpx = importlib.import_module(name)
            return lambda url: str(httpx.URL(url).raw_path.decode())
    return pytest.skip("httpx is not installed: pip install scrapy[httpx]")


@pytest.mark.parametrize("library", [by_yarl, by_httpx])
@given(data=st.data())
def test_nothing_else_is_sent(library: Callable[[], Callable[[str], str]], data) -> None:
    pieces = data.draw(st.lists(st.sampled_from(PIECES + MORE_PIECES), max_size=8))
    mark = data.draw(st.sampled_from(["/", "?", "#"]))
    url = Request("http://a.example" + mark + "".join(pieces)).url
    sent = url_path("http://a.example" + library()(url))
    assert sent in [url_path(each) for each in sent_as(url)]


HTTP11 = "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"


class Other:
    pass


@pytest.mark.parametrize(
    ("handlers", "expected"),
    [
        ({"http": HTTP11, "https": HTTP11}, False),
        ({"http": HTTP11, "https": None}, False),
        ({"http": HTTP11, "https": f"{__name__}.Other"}, True),
        ({"http": Other, "https": HTTP11}, True),
    ],
)
def test_which_handlers_rewrite(handlers: dict[str, object], expected: bool) -> None:
    crawler = Crawler(Spider, Settings({"DOWNLOAD_HANDLERS": handlers}))
    assert may_rewrite(crawler) is expected
