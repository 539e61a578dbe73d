"""What becomes of a URL on its way: held against the libraries that send it.

test_wire.py holds it against the handlers themselves.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request

from scrapy_koster.protocol.path import url_path
from scrapy_koster.protocol.rewriting import _rewritten, is_plain, sent_as

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
        ("/a/..", ["/a/..", "/"]),
        ("/a/./b?c", ["/a/./b?c", "/a/b?c"]),
        ("//../b", ["//../b", "////../b", "/b"]),
        ("/a?b=%2Fc", ["/a?b=%2Fc", "/a?b=/c"]),
        ("/b;c?q", ["/b;c?q", "/b?q"]),
        ("/a?", ["/a?", "/a"]),
        ("//a", ["//a", "////a"]),
        ("/a\tb\n ", ["/a\tb\n ", "/ab ", "/ab"]),
        ("/a/..\x0b", ["/a/..\x0b"]),
        ("/b\x0b ;c", ["/b\x0b ;c", "/b\x0b ", "/b\x0b"]),
    ],
)
def test_what_it_may_be_sent_as(url: str, expected: list[str]) -> None:
    assert paths(url) == [url_path(f"http://a.example{path}") for path in expected]


def test_space_and_controls_in_front_are_dropped() -> None:
    assert list(sent_as("\0 \x1fhttp://h/a")) == ["\0 \x1fhttp://h/a", "http://h/a"]


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
def test_nothing_else_is_sent(
    library: Callable[[], Callable[[str], str]], data: st.DataObject
) -> None:
    pieces = data.draw(st.lists(st.sampled_from(PIECES + MORE_PIECES), max_size=8))
    mark = data.draw(st.sampled_from(["/", "?", "#"]))
    url = Request("http://a.example" + mark + "".join(pieces)).url
    sent = url_path("http://a.example" + library()(url))
    assert sent in [url_path(each) for each in sent_as(url)]


@given(pieces=st.lists(st.sampled_from(PIECES + MORE_PIECES), max_size=6))
def test_what_is_plain_has_one_spelling(pieces: list[str]) -> None:
    url = Request("http://a.example/" + "".join(pieces)).url
    if is_plain(url):
        assert set(map(url_path, _rewritten(url))) == {url_path(url)}


@pytest.mark.parametrize(
    "path",
    ["", "?a", "/a?", "/a#", "/\ta", "/a;b", "/a%2Fb", "/a%2e", "/a/.", "//", "/./a"],
)
def test_urls_that_may_be_rewritten_are_not_plain(path: str) -> None:
    assert not is_plain(f"http://h{path}")
