"""What the README shows is run."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from urllib.parse import unquote

from harness.crawling import Crawl
from harness.documents import ROOT, blocks, section, settings_of, spider_of, text
from harness.server import Server

README = text("README.md")
[ENABLED] = [block for block in blocks(README, "python") if "class " not in block]
RULES = "User-agent: *\nDisallow: /private\n"


async def test_the_settings_make_a_crawl_that_obeys(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = (
        "User-agent: figtree\nDisallow: /*.gif\nDisallow: /private\nAllow: /private/\n\n"
        "User-agent: *\nDisallow: /\n"
    )
    urls = [site.url("/"), site.url("/a.gif"), *site.urls(5, "/private/{}")]
    result = await crawl(urls=urls, robots=None, settings=settings_of(ENABLED))
    assert sorted(result.fetched) == sorted([urls[0], *urls[2:]])  # as RFC 9309 reads the file
    assert result.stats["koster/forbidden/rule"] == 1
    assert result.warnings == []
    assert site.asked("/robots.txt") == 1


async def test_the_spider_and_the_lines_of_the_log(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    site = server.site()
    site.robots = RULES
    [block] = blocks(section(README, "## Handle a refusal"), "python")
    result = await crawl(spider_of(block, tmp_path, site), settings=settings_of(ENABLED))
    [item] = result.items
    assert item["url"] == site.url("/private/")
    assert item["line"] == 2
    assert site.pages_asked == []
    [lines] = blocks(README, "text")
    path = "copies in .scrapy/koster/robots.sqlite3,"
    said = {re.sub("copies in .*?,", path, line) for line in result.logged(logging.INFO)}
    assert said >= set(lines.splitlines())
    assert f"`{item['why'].replace(site.url(''), 'https://example.com')}`" in README


def test_its_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README):
        if "://" not in link:
            page, _, anchor = unquote(link).partition("#")
            assert (ROOT / page).exists(), link
            assert not anchor or anchor in anchors(text(page)), link


def anchors(page: str) -> list[str]:
    """The anchors that headings have on a page, as the sites that show Markdown make them."""
    headings = re.findall(r"(?m)^#+ (.+)$", page)
    return [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]
