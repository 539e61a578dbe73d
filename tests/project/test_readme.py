"""What the README shows is run."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.documents import (
    ROOT,
    blocks,
    code,
    crawls,
    rows,
    section,
    settings_of,
    spider_of,
    stats_of,
    text,
)
from harness.replies import Reply
from harness.server import Server
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import default_settings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from scrapy_koster.crawl.config import DEFAULTS

README = text("README.md")
BY_NAME = """\
User-agent: figtree
Disallow: /private

User-agent: figtree-images
Disallow: /images

User-agent: *
Disallow: /
"""


def python_blocks(heading: str) -> list[str]:
    return blocks(section(README, heading), "python")


SETTINGS = [block for block in blocks(README, "python") if "class " not in block]


@pytest.mark.parametrize("block", SETTINGS, ids=range(len(SETTINGS)))
async def test_each_block_of_settings_makes_a_crawl_that_obeys(
    crawl: Crawl, server: Server, block: str
) -> None:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /private\n"
    urls = [site.url("/"), *site.urls(5, "/private/{}")]
    result = await crawl(urls=urls, robots=None, settings=settings_of(block))
    dry = "KOSTER_DRY_RUN" in block
    assert sorted(result.fetched) == sorted(urls if dry else urls[:1])
    assert result.stats["koster/dry_run/forbidden" if dry else "koster/forbidden/rule"] == 5
    assert result.logged(logging.WARNING, "scrapy_koster") == []
    assert site.asked("/robots.txt") == 1


def test_by_hand_and_by_the_add_on_is_the_same(crawl: Crawl) -> None:
    addon, by_hand = (
        Crawler(RecordingSpider, crawl.settings(None, settings_of(block)))
        for block in python_blocks("## Enable")[:2]
    )
    addon._apply_settings()
    by_hand._apply_settings()
    for kind in ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"):
        assert components(addon, kind) == components(by_hand, kind)
    for name in ("ROBOTSTXT_OBEY", "SCHEDULER"):
        assert addon.settings[name] == by_hand.settings[name]


def components(crawler: Crawler, kind: str) -> list[object]:
    enabled = crawler.settings.get_component_priority_dict_with_base(kind)
    return [load_object(path) for path in build_component_list(enabled)]


class Yielding(RecordingSpider):
    def page(self, response: Response) -> Any:
        yield {"url": response.url}


async def test_the_directives_of_pages_are_obeyed_by_hand_too(crawl: Crawl, server: Server) -> None:
    site = server.site()
    page = Reply(
        200, '<meta name="robots" content="noindex">', headers={"Content-Type": "text/html"}
    )
    site.pages(page)
    by_hand = settings_of(python_blocks("## Enable")[1])
    result = await crawl(Yielding, urls=[site.url("/")], robots=None, settings=by_hand)
    assert len(result.fetched) == 1
    assert result.items == ()


async def test_the_strictest_parser_forbids_what_the_draft_would_allow(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /*.pdf$\n"
    [block] = python_blocks("## Reading today's files by the draft")
    strictest = await crawl(urls=[site.url("/a.pdf")], robots=None, settings=settings_of(block))
    assert len(strictest.refused) == 1
    draft = await crawl(urls=[site.url("/a.pdf")])
    assert len(draft.fetched) == 1


HAZARDS = {
    "order": ("Allow: /\nDisallow: /private", "scrapy", True),
    "repeated agents": ("Disallow: /x\n\nUser-agent: *\nDisallow: /private", "scrapy", True),
    "a field between agents": (
        "Disallow: /x\n\nUser-agent: scrapy\nSitemap: /s\nUser-agent: b\nDisallow: /",
        "scrapy",
        True,
    ),
    "a name in a record": ("Allow: /\n\nUser-agent: FigTree\nDisallow: /", "fig", False),
    "a record in a name": ("Allow: /\n\nUser-agent: fig\nDisallow: /", "figtree", True),
}


@pytest.mark.parametrize(("rules", "robot", "allowed"), HAZARDS.values(), ids=HAZARDS)
async def test_the_hazards(
    crawl: Crawl, server: Server, rules: str, robot: str, allowed: bool
) -> None:
    site = server.site()
    site.robots = f"User-agent: *\n{rules}\n"
    settings = {"USER_AGENT": f"{robot}/1"}
    result = await crawl(urls=[site.url("/private")], settings=settings)
    assert bool(result.fetched) is allowed


async def test_the_spider_with_a_name(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    site = server.site()
    site.robots = BY_NAME
    [_, block] = python_blocks("## The name of the robot")
    result = await crawl(spider_of(block, tmp_path, site))
    assert site.pages_asked == ["/"]
    assert result.stats["robotstxt/forbidden"] == 1
    assert result.logged(logging.WARNING, "scrapy_koster") == []
    [asked] = [asked for asked in site.requests if asked.path == "/"]
    assert "FigTree/0.1" in (asked.header("User-Agent") or "")


async def test_the_spider_with_an_errback(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /private/\n"
    [block] = python_blocks("## What a refusal looks like")
    result = await crawl(spider_of(block, tmp_path, site))
    robots_txt = site.url("/robots.txt")
    assert result.items == (
        {
            "url": site.url("/private/"),
            "robots_txt": robots_txt,
            "line": 2,
            "why": f"forbidden by {robots_txt}: line 2 'Disallow: /private/' of the record at"
            " line 1 for * (3.2.2)",
        },
    )
    assert site.pages_asked == []


async def test_the_refusal_at_the_top(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = "\n" * 10 + "User-agent: *\n" + "Allow: /a\n" * 4 + "Disallow: /\n"
    result = await crawl(urls=[site.url("/")])
    [(_, error)] = result.refused
    assert f"\n    {str(error).replace(site.url(''), 'https://example.com')}\n" in README


async def test_the_table_of_stats(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    counted = stats_of(await crawls(crawl, server, tmp_path))
    for row in rows(section(README, "## Stats")):
        for cell in row[0].split(", "):
            assert code(cell) in counted


def test_the_settings_it_names_exist() -> None:
    for name in re.findall(r"\b(?:KOSTER|ROBOTSTXT)_[A-Z_]+[A-Z]\b", README):
        assert name in DEFAULTS or hasattr(default_settings, name), name


def test_what_it_says_of_the_life_of_a_copy() -> None:
    said = section(README, "## How long a copy lasts")
    days, minutes = 86400, 60
    assert f"from {DEFAULTS['KOSTER_EXPIRY_MIN_SECS'] // minutes} minutes" in said
    assert f"up to {DEFAULTS['KOSTER_EXPIRY_MAX_SECS'] // days} days" in said
    assert f"for {DEFAULTS['KOSTER_EXPIRY_SECS'] // days} days where it says nothing" in said
    assert f"`.scrapy/{DEFAULTS['KOSTER_SQLITE_PATH']}`" in said


def test_two_commands_set_it_up() -> None:
    [commands, _] = blocks(README, "sh")
    targets = re.findall(r"^make (\w+)", commands, re.MULTILINE)
    assert targets == ["demo", "test"]
    assert all(re.search(rf"^{target}:", text("Makefile"), re.MULTILINE) for target in targets)


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert not [link for link in links if "://" not in link and not (ROOT / link).exists()]
