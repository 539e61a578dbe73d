"""The pages of settings and of stats, against the code."""

from __future__ import annotations

import ast
import re

import pytest
import scrapy
from harness.crawling import Crawl, RecordingSpider
from harness.documents import ROOT, blocks, code, like, rows, section, settings_of, text
from scrapy.crawler import Crawler
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from scrapy_koster import signals
from scrapy_koster.crawl.config import DEFAULTS, Config

SETTINGS = text("docs/settings.md")
STATS = text("docs/stats.md")
SCRAPYS = ["ROBOTSTXT_OBEY", "ROBOTSTXT_USER_AGENT"]
UNITS = {"SECS": "seconds", "BYTES": "bytes", "MAX": "redirects", "SITES": "sites"}


# docs/settings.md


def test_every_setting_has_its_section() -> None:
    named = re.findall(r"^### (\S+)$", SETTINGS, re.MULTILINE)
    scrapys = len(SCRAPYS)
    assert named[:scrapys] == SCRAPYS
    assert sorted(named[scrapys:]) == sorted(DEFAULTS)


def test_what_is_no_setting_is_not_named() -> None:
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")):
        named = set(re.findall(r"\bKOSTER_[A-Z_]+[A-Z]\b", page.read_text("utf-8")))
        assert named <= set(DEFAULTS), page.name


def test_the_defaults_of_the_settings_and_their_units() -> None:
    for name, default in DEFAULTS.items():
        of_it = section(SETTINGS, f"### {name}")
        stated = re.search(r"^Default: `(.+?)`(.*)$", of_it, re.MULTILINE)
        assert stated, name
        assert ast.literal_eval(stated[1]) == default, name
        numeric = isinstance(default, int) and not isinstance(default, bool)
        assert stated[2].strip() == (UNITS[name.rpartition("_")[2]] if numeric else ""), name


def test_the_examples_of_the_settings_are_valid(crawl: Crawl) -> None:
    """A setting whose default is a number needs no example."""
    for name in (*SCRAPYS, *DEFAULTS):
        examples = blocks(section(SETTINGS, f"### {name}"), "python")
        assert len(examples) == (0 if name.rpartition("_")[2] in UNITS else 1), name
        for block in examples:
            example = settings_of(block)
            assert name in example
            crawler = Crawler(RecordingSpider, crawl.settings(None, example))
            crawler._apply_settings()
            Config.from_crawler(crawler)


BY_HAND = blocks(section(SETTINGS, "## Without the add-on"), "python")[0]


def test_by_hand_and_by_the_add_on_is_the_same(crawl: Crawl) -> None:
    addon, by_hand = (
        Crawler(RecordingSpider, crawl.settings(None, settings))
        for settings in ({"ADDONS": {"scrapy_koster.Addon": 500}}, settings_of(BY_HAND))
    )
    addon._apply_settings()
    by_hand._apply_settings()
    for kind in ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"):
        assert components(addon, kind) == components(by_hand, kind)
    for name in ("ROBOTSTXT_OBEY", "SCHEDULER"):
        assert addon.settings[name] == by_hand.settings[name]


def components(crawler: Crawler, kind: str) -> list[object]:
    components = crawler.settings.getwithbase(kind).items()
    return build_component_list({load_object(path): order for path, order in components})


# docs/stats.md


SOURCE = "".join(path.read_text("utf-8") for path in (ROOT / "scrapy_koster").rglob("*.py"))


def test_every_stat_of_the_code_is_documented() -> None:
    """But for those of Scrapy."""
    names = [code(row[0]) for row in rows(section(STATS, "## Stats"))]
    counted = set(re.findall(r'\b(?:inc|set|max)_value\(\s*f?"([^"]+)"', SOURCE))
    patterns = [like(name) for name in counted if not name.startswith("spider_exceptions/")]
    for pattern in patterns:
        assert any(map(pattern.fullmatch, names)), pattern
    for name in names:
        assert any(pattern.fullmatch(name) for pattern in patterns), name


@pytest.mark.skipif(scrapy.version_info < (2, 18), reason="Scrapy 2.18 has this signal")
def test_every_signal_is_documented() -> None:
    names = [code(row[0]) for row in rows(section(STATS, "## Signals"))]
    assert names == [name for name, value in vars(signals).items() if type(value) is object]
