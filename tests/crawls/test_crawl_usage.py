"""Sites, one for each source and combination: what is kept, dropped, refused and reported."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Reply
from harness.server import Server
from scrapy import signals
from scrapy.exceptions import DropItem
from scrapy.http import Response

from scrapy_koster import RobotsForbidden, Usage
from scrapy_koster.protocol.site_status import Ground
from scrapy_koster.report.numbers import read

FIGTREE = {"USER_AGENT": "FigTree/0.1 (+https://figtree.example)"}
HTML = {"Content-Type": "text/html"}
RECORD = "User-agent: *\nDisallow: /private\n"
META = "<html><head>%s</head><body>x</body></html>"


class Row(NamedTuple):
    """A site with a page, and what becomes of the page in a crawl for "train-ai"."""

    title: str
    robots: str
    headers: dict[str, str]
    head: str
    says: str
    """The preferences of the page."""
    by: str
    """The statement that decides on train-ai, if it is disallowed."""
    dropped: bool
    """Whether its items are dropped, with KOSTER_USAGE_ACTION "drop"."""
    refused: bool
    """Whether it is refused, with "refuse"."""


# What is expected is written by hand: the texts of the standards, read by people.
ROWS = [
    Row("no statement", RECORD, {}, "", "", "", dropped=False, refused=False),
    Row("robots.txt disallows", RECORD + "Content-Usage: train-ai=n\n", {}, "", "train-ai=n",
        "line 3 'Content-Usage: train-ai=n' of robots.txt", dropped=True, refused=True),
    Row("robots.txt allows this path", RECORD
        + "Content-Usage: train-ai=n\nContent-Usage: /page train-ai=y\n", {}, "", "train-ai=y",
        "", dropped=False, refused=False),
    Row("Content-Signal", RECORD + "Content-Signal: search=yes,ai-train=no,use=reference\n", {}, "",
        "search=y, train-ai=n",
        "line 3 'Content-Signal: search=yes,ai-train=no,use=reference' of robots.txt",
        dropped=True, refused=True),
    Row("Content-Signal in header and META", RECORD, {"Content-Signal": "ai-train=no, use=full"},
        '<meta name="content-signal" content="search=yes, use=immediate">', "search=y, train-ai=n",
        "the header 'Content-Signal: ai-train=no, use=full'", dropped=True, refused=False),
    Row("the header disallows what robots.txt allows", RECORD + "Content-Usage: train-ai=y\n",
        {"Content-Usage": "train-ai=n, search=y"}, "", "search=y, train-ai=n",
        "the header 'Content-Usage: train-ai=n, search=y'", dropped=True, refused=False),
    Row("robots.txt disallows what the header allows", RECORD + "Content-Usage: train-ai=n\n",
        {"Content-Usage": "train-ai=y"}, "", "train-ai=n",
        "line 3 'Content-Usage: train-ai=n' of robots.txt", dropped=True, refused=True),
    Row("TDMRep, META over header", RECORD, {"tdm-reservation": "0"},
        '<meta name="tdm-reservation" content="1">', "tdm=n", "", dropped=False, refused=False),
    Row("noai in META", RECORD, {}, '<meta name="robots" content="noai, noimageai">',
        "noimageai=n, train-ai=n", """the META tag 'name="robots" content="noai, noimageai"'""",
        dropped=True, refused=False),
    Row("noai in X-Robots-Tag", RECORD, {"X-Robots-Tag": "figtree: noai"}, "", "train-ai=n",
        "the header 'X-Robots-Tag: figtree: noai'", dropped=True, refused=False),
    Row("what cannot be parsed", RECORD + "Content-Usage: Train-AI=n\nLicense: https://l.example\n",
        {"Content-Usage": "train-ai=yes"}, "<meta name=robots content=noimageai>", "noimageai=n",
        "", dropped=False, refused=False),
]  # fmt: skip


@dataclass
class Holder:
    """An item that can hold the usage of its page."""

    url: str
    usage: dict[str, Any] = field(default_factory=dict)


class Pages(RecordingSpider):
    """Yields an item for each page, and keeps the usage of it."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.usages: dict[str, Usage] = {}
        self.dropped: dict[str, str] = {}

    def page(self, response: Response) -> Iterator[Any]:
        self.usages[response.url] = response.meta["koster_usage"]
        yield Holder(response.url)


async def crawled(
    crawl: Crawl, server: Server, **settings: Any
) -> tuple[CrawlResult, Pages, list[str]]:
    """A crawl of the page of each site, its spider, and the URLs in the order of the rows."""
    urls = []
    for row in ROWS:
        site = server.site()
        site.robots = row.robots
        site.page("/page", Reply(body=META % row.head, headers={**HTML, **row.headers}))
        urls.append(site.url("/page"))
    purposes = {"KOSTER_USAGE_PURPOSES": ["train-ai"]}
    running = crawl.start(Pages, urls=urls, settings={**FIGTREE, **purposes, **settings})

    def dropped(item: Holder, exception: DropItem, spider: Pages) -> None:
        spider.dropped[item.url] = str(exception)

    running.crawler.signals.connect(dropped, signal=signals.item_dropped)
    result = await running.result()
    spider = result.crawler.spider
    assert isinstance(spider, Pages)
    return result, spider, urls


def counted(result: CrawlResult) -> dict[str, int]:
    return {
        name.removeprefix("koster/usage/"): n
        for name, n in result.stats.items()
        if name.startswith("koster/usage/")
    }


STATED = {
    "train-ai/disallow": 7, "train-ai/allow": 1, "search/allow": 3, "tdm/disallow": 1,
    "noimageai/disallow": 2,
}  # fmt: skip
"""By page, of all sites."""


async def test_the_table_with_report(crawl: Crawl, server: Server) -> None:
    result, spider, urls = await crawled(crawl, server, KOSTER_USAGE_FIELD="usage")
    says = {url: row.says for url, row in zip(urls, ROWS, strict=True)}
    assert {url: str(usage) for url, usage in spider.usages.items()} == says
    assert {item.url for item in result.items} == set(urls)
    for item in result.items:
        preferences = item.usage["preferences"]
        assert ", ".join(f"{label}={p}" for label, p in preferences.items()) == says[item.url]
    use = {item.url: item.usage["use"] for item in result.items if item.usage["use"]}
    assert use == {urls[3]: ["reference"], urls[4]: ["immediate", "full"]}
    assert counted(result) == STATED
    assert not result.refused


async def test_the_table_with_drop(crawl: Crawl, server: Server) -> None:
    settings = {"KOSTER_USAGE_ACTION": "drop", "KOSTER_USAGE_UNKNOWN": "drop"}
    result, spider, urls = await crawled(crawl, server, **settings)
    rows = dict(zip(urls, ROWS, strict=True))
    [kept] = [url for url, row in rows.items() if "train-ai=y" in row.says]
    assert [item.url for item in result.items] == [kept]
    because = {
        url: f"disallowed by {row.by}" if row.dropped else "unknown (KOSTER_USAGE_UNKNOWN)"
        for url, row in rows.items()
        if url != kept
    }
    assert spider.dropped == {
        url: f"The page may not be used: train-ai is {why}" for url, why in because.items()
    }
    assert set(result.fetched) == set(urls)
    assert counted(result) == {**STATED, "dropped": 10}
    assert result.stats["item_dropped_count"] == 10
    assert result.logged(logging.INFO, "scrapy_koster.crawl.components.usagemiddleware")[-1] == (
        "Dropped because their pages disallow a purpose: train-ai: 10."
        ' KOSTER_USAGE_ACTION = "report" keeps all items.'
    )


async def test_the_table_with_refuse(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    result, _, urls = await crawled(
        crawl,
        server,
        KOSTER_USAGE_ACTION="refuse",
        KOSTER_REPORT=str(tmp_path / "report.html"),
        KOSTER_SQLITE_PATH=str(tmp_path / "robots.sqlite3"),
    )
    rows = dict(zip(urls, ROWS, strict=True))
    assert {url for url, _ in result.refused} == {url for url, row in rows.items() if row.refused}
    for url, error in result.refused:
        assert isinstance(error, RobotsForbidden)
        verdict = error.verdict
        assert verdict.ground is Ground.USAGE
        assert verdict.line == 3
        assert (
            verdict.because() == f"{rows[url].by}, which disallows a use in KOSTER_USAGE_PURPOSES"
        )
        assert verdict.known.expires - verdict.known.fetched == pytest.approx(86_400)  # type: ignore[union-attr]
    assert sum("expire after 86400 s" in line for line in result.logged(logging.INFO)) == 1
    assert {item.url for item in result.items} == {
        url for url, row in rows.items() if not row.dropped
    }
    assert result.stats["koster/forbidden/usage"] == 3
    assert counted(result) == {
        "train-ai/disallow": 4, "train-ai/allow": 1, "search/allow": 2, "tdm/disallow": 1,
        "noimageai/disallow": 2, "dropped": 4, "refused": 3,
    }  # fmt: skip
    [database] = (tmp_path / "reports").glob("*.sqlite3")
    numbers = read(str(database))
    assert numbers["requests"]["refused"]["usage"] == 3
    assert numbers["totals"]["usage_dropped"] == 4


async def test_a_dry_run_counts_and_keeps_all(crawl: Crawl, server: Server) -> None:
    result, _, urls = await crawled(
        crawl, server, KOSTER_USAGE_ACTION="refuse", KOSTER_DRY_RUN=True
    )
    assert {item.url for item in result.items} == set(urls)
    assert counted(result) == {**STATED, "dropped": 7, "refused": 3}
    assert result.stats["koster/dry_run/forbidden"] == 3
