"""docs/first-crawl.md: what the log of a first crawl is, and that it is enough."""

from __future__ import annotations

import re

import pytest
import scrapy
from harness.crawling import Crawl
from harness.documents import text
from harness.first_crawl import SITES, first_crawl, log_of, shown
from harness.server import Server

from scrapy_koster.crawl.config import DEFAULTS

PAGE = text("docs/first-crawl.md")
UNREMARKABLE = ("obeyed",)
NOTHING_TO_BE_DONE = ("no-file", "html", "no-such-host")


@pytest.mark.skipif(scrapy.version_info < (2, 15), reason="Scrapy 2.14 has other names of errors")
async def test_the_page_has_the_log_of_a_crawl(crawl: Crawl, server: Server) -> None:
    """Sites are asked at the same time: in which order they are named is theirs to say."""
    result = await first_crawl(crawl, server)
    assert sorted(log_of(result)) == sorted(shown(PAGE))


def test_each_site_that_was_not_simply_obeyed_is_named() -> None:
    for name in SITES:
        lines = [line for line in shown(PAGE) if f"http://{name}.example" in line]
        assert bool(lines) is (name not in UNREMARKABLE), name
        if lines and name not in NOTHING_TO_BE_DONE:
            settings = re.findall(r"KOSTER_\w+", " ".join(lines))
            assert settings, name
            assert set(settings) <= set(DEFAULTS)
