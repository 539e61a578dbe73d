"""Which site a URL belongs to."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from scrapy_koster.crawl.context import context_of


@pytest.fixture
def records() -> Any:
    storage = "scrapy_koster.storage.memory.MemoryStorage"
    crawler = get_crawler(Spider, {"KOSTER_STORAGE": storage})
    crawler.spider = Spider("asks")
    return context_of(crawler).sites.records


A_COM = (
    *("http://a.com/", "http://a.com", "http://a.com:80", "http://a.com:80/x"),
    *("http://A.Com/x", "HTTP://a.com/x"),
)


@pytest.mark.parametrize("first", A_COM)
def test_one_site_in_all_its_spellings(records: Any, first: str) -> None:
    state = records.state_of(first)
    for url in (*A_COM, "http://u@a.com/", "http://u:p@a.com:80/?x", "http://a.com?x=/y", first):
        assert records.state_of(url) is state
    assert str(state.site) == "http://a.com"


OTHERS = (
    "https://a.com/",
    "http://a.com:8/",
    "http://a.com:8080/",
    "http://a.co/",
    "http://a.com.au/",
    "http://www.a.com/",
    "https://a.com:80/",
    "http://a.com:443/",
    "http://a.com@b.com/",
    "http://[::1]/",
    "http://[::1]:8080/",
)


@pytest.mark.parametrize("order", ["it first", "the others first"])
def test_other_sites(records: Any, order: str) -> None:
    urls = [*A_COM, *OTHERS] if order == "it first" else [*OTHERS, *A_COM]
    state = {url: records.state_of(url) for url in urls}
    assert len({state[url] for url in OTHERS}) == len(OTHERS)
    assert not {state[url] for url in A_COM} & {state[url] for url in OTHERS}
    for url in reversed(urls):
        assert records.state_of(url) is records.state_of(url.rstrip("/")) is state[url]
