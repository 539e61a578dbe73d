"""What the documents say, for the tests that compare it with the code.

`crawls` runs what a user can meet: from it come all stats that there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import urlsplit

from scrapy import Spider

from harness.challenge_pages import ANUBIS
from harness.clocks import sleep
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Reply
from harness.server import Server, Site

ROOT = Path(__file__).parents[2]

_HTML = {"Content-Type": "text/html"}
_STALE = {"Cache-Control": "max-age=0", "ETag": '"1"'}


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def section(document: str, heading: str) -> str:
    """What stands below a heading, up to the next of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    _, _, below = document.partition(f"\n{heading}\n")
    assert below, f"there is no heading {heading!r}"
    return re.split(rf"(?m)^#{{1,{level}}} ", _without_code(below), maxsplit=1)[0]


def _without_code(markdown: str) -> str:
    """With the comments of code blocks hidden, which look like headings."""
    return re.sub(r"(?ms)^```.*?^```", lambda block: re.sub("(?m)^#", " #", block[0]), markdown)


def blocks(markdown: str, language: str) -> list[str]:
    """The code blocks in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)


def blocks_in(page: str, language: str) -> list[str]:
    """The code blocks of a page or of a part of it, those in lists too."""
    found = re.findall(rf"(?ms)^( *)```{language}\n(.*?)^\1```$", page)
    return [dedent(block) for _, block in found]


def rows(markdown: str) -> list[list[str]]:
    """The cells of its tables, without their heads."""
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in markdown.splitlines()
        if line.startswith("|")
    ]
    rules = [n for n, row in enumerate(cells) if set("".join(row)) <= set("-: ")]
    heads = {n for rule in rules for n in (rule - 1, rule)}
    return [row for n, row in enumerate(cells) if n not in heads]


def code(cell: str) -> str:
    """The text of a cell that is all code."""
    found = re.fullmatch(r"`(.+)`", cell)
    assert found, f"no code: {cell}"
    return found[1].replace(r"\|", "|")


def settings_of(block: str) -> dict[str, Any]:
    """The settings that a block of Python makes, as in settings.py."""
    namespace: dict[str, Any] = {}
    exec(block, namespace)
    return {name: value for name, value in namespace.items() if name.isupper()}


def spider_of(block: str, folder: Path, example: Site) -> type[Spider]:
    """The spider of a block of Python, which crawls *example* in place of example.com.

    It is written to a file, because Scrapy looks at the source of callbacks. Each site has its own:
    Python takes a file of the same second and size for the one that it has compiled.
    """
    path = folder / f"shown_{urlsplit(example.url('')).port}.py"
    path.write_text(re.sub(r"(?<=\")https://example\.com(?=/)", example.url(""), block), "utf-8")
    spec = spec_from_file_location("shown", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    [spider] = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Spider) and value.__module__ == "shown"
    ]
    return spider


def like(name: str) -> re.Pattern[str]:
    """What a name with {placeholders} stands for."""
    parts = re.split(r"\{[^}]*\}", name)
    return re.compile("[^/]+".join(map(re.escape, parts)))


class _Slow(RecordingSpider):
    """Asks for its last URL when copies that live for a second are stale."""

    async def start(self) -> Any:
        *urls, last = self.urls
        for url in urls:
            yield self.ask(url)
        await sleep(1.3)
        yield self.ask(last)

    def page(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield self.ask(response.urljoin(link))


class _Linking(RecordingSpider):
    def page(self, response: Any) -> Iterator[Any]:
        yield self.ask(response.urljoin("/private"))


class _Yielding(RecordingSpider):
    def page(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url}


async def crawls(crawl: Crawl, server: Server, folder: Path) -> list[CrawlResult]:
    """Crawls in which each thing that is counted happens."""
    ruled, closed, failing, stale, tagged, slow, page = (server.site() for _ in range(7))
    ruled.robots = "User-agent: *\nDisallow: /private\nDisallow: /*.gif\n"
    closed.robots = Reply(403)
    failing.robots = Reply(503)
    stale.robots = lambda asked: Reply(
        304 if asked.header("If-None-Match") else 200,
        "User-agent: *",
        headers=_STALE,
    )
    page.robots = Reply(200, ANUBIS)
    slow.robots = "User-agent: *\nCrawl-delay: 10"
    tagged.pages(Reply(200, '<meta name="robots" content="none"><a href="/x">.</a>', headers=_HTML))
    urls = [
        ruled.url("/"),
        ruled.url("/private"),
        ruled.url("/a.gif"),
        closed.url("/"),
        failing.url("/"),
        server.down().url("/"),
        tagged.url("/"),
        stale.url("/"),
        stale.url("/again"),
    ]
    settings = {
        "KOSTER_EXPIRY_MIN_SECS": 0,
        "KOSTER_DEFER_FIRST_SECS": 0.2,
        "KOSTER_DEFER_LIMIT_SECS": 0.5,
    }
    storages = {"KOSTER_SQLITE_PATH": str(folder), "KOSTER_MAX_BYTES": 40}  # no file; half of one
    kept = settings | {"JOBDIR": str(folder / "job"), "KOSTER_IDLE_LIMIT_SECS": 0}
    archived = {"KOSTER_ARCHIVE": str(folder / "evidence")}
    clamps = {"KOSTER_CRAWL_DELAY": "obey", "KOSTER_CRAWL_DELAY_MAX_SECS": 0.1}
    refuses = clamps | {"KOSTER_CRAWL_DELAY": "refuse"}
    override = {"site": ruled.url(""), "reason": "agreed", "until": "2999-12-31"}
    paths = ({"allow": ["/private"]}, {"disallow": ["/x"]})
    filters = {"KOSTER_FILTER_LINKS": True}
    overrides = {"KOSTER_OVERRIDES": [override | each for each in paths]}
    stating = server.site()
    stating.robots = "User-agent: *\nContent-Usage: train-ai=n, search=y\n"
    collecting = {"KOSTER_USAGE_PURPOSES": ["train-ai"], "KOSTER_USAGE_ACTION": "drop"}
    return [
        await crawl(urls=[ruled.url("/private"), ruled.url("/x")], settings=overrides),
        await crawl(_Linking, urls=[ruled.url("/")], settings=filters),
        await crawl(_Yielding, urls=stating.urls(1), settings=collecting),
        await crawl(urls=stating.urls(1), settings=collecting | {"KOSTER_USAGE_ACTION": "refuse"}),
        await crawl(urls=slow.urls(2), settings=clamps),
        await crawl(urls=slow.urls(1), settings=refuses),
        await crawl(_Slow, urls=urls, settings=settings),
        await crawl(urls=[failing.url("/")], settings=kept | archived),
        await crawl(urls=[failing.url("/")], settings={"KOSTER_ARCHIVE": "/proc/self/x"}),
        await crawl(_Slow, urls=urls[:3], settings={"KOSTER_DRY_RUN": True}),
        await crawl(_Slow, urls=urls[:3], settings=storages),
        await crawl(urls=[tagged.url("/")], settings={"KOSTER_MISSING": "disallow"}),
        await crawl(urls=[page.url("/")], settings={"KOSTER_HTML_ROBOTSTXT": "disallow"}),
    ]


def stats_of(results: list[CrawlResult]) -> set[str]:
    """The names of the stats that were counted, of robots.txt and of ours."""
    names = {name for result in results for name in result.stats}
    return {name for name in names if name.startswith(("robotstxt/", "koster/"))}
