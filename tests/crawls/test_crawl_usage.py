"""Ten sites, one for each source and combination: what is kept, dropped, refused and reported."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from gzip import compress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from harness.archives import read as read_archive
from harness.clocks import JumpingClock
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Asked, Reply
from harness.server import Server, Site
from scrapy import Item, Request, signals
from scrapy.exceptions import DropItem
from scrapy.http import Response

from scrapy_koster import Preference, RobotsForbidden, Usage, UsageMiddleware
from scrapy_koster.protocol.standing import Ground
from scrapy_koster.report.database import reading
from scrapy_koster.report.numbers import read, statements_of

FIGTREE = {"USER_AGENT": "FigTree/0.1 (+https://figtree.example)"}
FIELD: dict[str, Any] = {**FIGTREE, "KOSTER_USAGE_FIELD": "usage"}
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
    Row("Content-Signal", RECORD + "Content-Signal: search=yes, ai-train=no\n", {}, "",
        "search=y, train-ai=n", "line 3 'Content-Signal: search=yes, ai-train=no' of robots.txt",
        dropped=True, refused=True),
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
        self.crawler_signals = None

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.item_dropped, signal=signals.item_dropped)
        return spider

    def page(self, response: Response) -> Iterator[Any]:
        if "koster_usage" in response.meta:
            self.usages[response.url] = response.meta["koster_usage"]
        yield Holder(response.url)

    def item_dropped(self, item: Holder, response: Response, exception: DropItem) -> None:
        assert item.url == response.url
        self.dropped[item.url] = str(exception)


def sites_of(server: Server) -> list[Site]:
    found = []
    for row in ROWS:
        site = server.site()
        site.robots = row.robots
        site.page("/page", Reply(body=META % row.head, headers={**HTML, **row.headers}))
        found.append(site)
    return found


async def crawled(crawl: Crawl, server: Server, **settings: Any) -> tuple[CrawlResult, list[str]]:
    """A crawl of the page of each site; what came of it, and the URLs in the order of the rows."""
    urls = [site.url("/page") for site in sites_of(server)]
    result = await crawl(Pages, urls=urls, settings={**FIGTREE, **settings})
    return result, urls


def spider_of(result: CrawlResult) -> Pages:
    spider = result.crawler.spider
    assert isinstance(spider, Pages)
    return spider


def counted(result: CrawlResult) -> dict[str, int]:
    return {
        name.removeprefix("koster/usage/"): n
        for name, n in result.stats.items()
        if name.startswith("koster/usage/")
    }


STATED = {
    "train-ai/disallow": 6, "train-ai/allow": 1, "search/allow": 2, "tdm/disallow": 1,
    "noimageai/disallow": 2,
}  # fmt: skip
"""By page, of all ten."""


async def test_without_its_settings_nothing_of_it_runs(crawl: Crawl, server: Server) -> None:
    result, urls = await crawled(crawl, server)
    assert result.crawler.get_spider_middleware(UsageMiddleware) is None
    assert {item.url for item in result.items} == set(urls)
    assert spider_of(result).usages == {}
    assert counted(result) == {}


async def test_the_table_with_report(crawl: Crawl, server: Server) -> None:
    result, urls = await crawled(crawl, server, KOSTER_USAGE_PURPOSES=["train-ai"])
    assert {url: str(usage) for url, usage in spider_of(result).usages.items()} == {
        url: row.says for url, row in zip(urls, ROWS, strict=True)
    }
    assert {item.url for item in result.items} == set(urls)
    assert not any(item.usage for item in result.items)
    assert counted(result) == STATED
    assert not result.refused


async def test_the_table_with_drop(crawl: Crawl, server: Server) -> None:
    result, urls = await crawled(
        crawl, server, KOSTER_USAGE_PURPOSES=["train-ai"], KOSTER_USAGE_ACTION="drop"
    )
    spider = spider_of(result)
    assert {item.url for item in result.items} == {
        url for url, row in zip(urls, ROWS, strict=True) if not row.dropped
    }
    assert spider.dropped == {
        url: f"The page may not be used: train-ai is disallowed by {row.by}"
        for url, row in zip(urls, ROWS, strict=True)
        if row.dropped
    }
    for row in ROWS:
        by = f"train-ai is disallowed by {row.by}"
        assert any(by in line for line in result.logged()) is row.dropped or not row.by
    assert set(result.fetched) == set(urls)
    assert counted(result) == {**STATED, "dropped": 6}
    assert result.stats["item_dropped_count"] == 6
    assert result.logged(logging.INFO, "scrapy_koster.crawl.components.usagemiddleware")[-1] == (
        "Dropped because their pages may not be used for it: items (train-ai: 6)."
        ' KOSTER_USAGE_ACTION = "report" keeps them.'
    )


async def test_the_table_with_refuse(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result, urls = await crawled(
        crawl,
        server,
        KOSTER_USAGE_PURPOSES=["train-ai"],
        KOSTER_USAGE_ACTION="refuse",
        KOSTER_REPORT=str(page),
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
        assert verdict.to_dict()["line"] == 3
    assert {item.url for item in result.items} == {
        url for url, row in rows.items() if not row.dropped
    }
    assert result.stats["koster/forbidden/usage"] == 3
    assert counted(result) == {
        "train-ai/disallow": 3, "train-ai/allow": 1, "search/allow": 1, "tdm/disallow": 1,
        "noimageai/disallow": 2, "dropped": 3, "refused": 3,
    }  # fmt: skip
    [database] = (tmp_path / "reports").glob("*.sqlite3")
    numbers = read(str(database))
    assert numbers.usage == {"search": {"y": 1, "n": 0}, "train-ai": {"y": 2, "n": 4}}
    assert numbers.refused["usage"] == 3
    assert numbers.totals["usage_dropped"] == 3
    with reading(str(database)) as connection:
        lines = [(line, text, stated) for _, line, text, stated in statements_of(connection)]
    assert sorted(lines) == sorted([
        (3, "Content-Usage: train-ai=n", "train-ai=n"),
        (3, "Content-Usage: train-ai=n", "train-ai=n"),
        (4, "Content-Usage: /page train-ai=y", "train-ai=y"),
        (3, "Content-Signal: search=yes, ai-train=no", "search=y, train-ai=n"),
        (3, "Content-Usage: train-ai=y", "train-ai=y"),
        (3, "Content-Usage: train-ai=n", "train-ai=n"),
        (3, "Content-Usage: Train-AI=n", None),
        (4, "License: https://l.example", None),
    ])  # fmt: skip
    text = page.read_text("utf-8")
    assert "Usage preferences" in text
    assert "Content-Signal: search=yes, ai-train=no" in text
    assert "in headers or META tags of pages" in text


async def test_what_is_unknown_may_be_dropped(crawl: Crawl, server: Server) -> None:
    result, urls = await crawled(
        crawl, server, KOSTER_USAGE_PURPOSES=["train-ai"], KOSTER_USAGE_ACTION="drop",
        KOSTER_USAGE_UNKNOWN="drop",
    )  # fmt: skip
    assert [item.url for item in result.items] == [urls[2]]
    assert counted(result) == {**STATED, "dropped": 9}
    unknown = "train-ai is unknown (KOSTER_USAGE_UNKNOWN)"
    assert spider_of(result).dropped[urls[0]] == f"The page may not be used: {unknown}"


@pytest.mark.parametrize("action", ["drop", "refuse"])
async def test_a_dry_run_counts_and_keeps_all(crawl: Crawl, server: Server, action: str) -> None:
    result, urls = await crawled(
        crawl, server, KOSTER_USAGE_PURPOSES=["train-ai"], KOSTER_USAGE_ACTION=action,
        KOSTER_DRY_RUN=True, KOSTER_USAGE_FIELD="usage",
    )  # fmt: skip
    assert {item.url for item in result.items} == set(urls)
    refused = {"refused": 3} if action == "refuse" else {}
    assert counted(result) == {**STATED, "dropped": 6, **refused}
    assert result.stats.get("koster/dry_run/forbidden", 0) == len(refused) * 3
    assert all(item.usage for item in result.items)


async def test_a_field_of_each_item(crawl: Crawl, server: Server) -> None:
    result, urls = await crawled(crawl, server, KOSTER_USAGE_FIELD="usage")
    rows = dict(zip(urls, ROWS, strict=True))
    for item in result.items:
        preferences = item.usage["preferences"]
        assert ", ".join(f"{label}={p}" for label, p in preferences.items()) == rows[item.url].says
    [item] = [item for item in result.items if item.url == urls[1]]
    [statement] = item.usage["statements"]
    assert statement["line"] == 3
    assert statement["preferences"] == {"train-ai": "n"}
    assert counted(result) == STATED


class Fielded(Item):
    """A Scrapy item without the field."""


class Various(Pages):
    """Yields items of several kinds, some of which hold the usage of their page."""

    def page(self, response: Response) -> Iterator[Any]:
        yield {"kind": "dict"}
        yield {"kind": "taken", "usage": "mine"}
        yield {"kind": "empty", "usage": None}
        yield Fielded()
        yield None


async def test_a_field_that_has_a_value_and_items_that_cannot_hold_it(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = RECORD + "Content-Usage: train-ai=n\n"
    result = await crawl(
        Various, urls=[site.url("/")], settings={**FIGTREE, "KOSTER_USAGE_FIELD": "usage"}
    )
    filled, taken, empty, item = result.items
    assert filled["usage"]["preferences"] == {"train-ai": "n"}
    assert empty["usage"] == filled["usage"]
    assert taken == {"kind": "taken", "usage": "mine"}
    assert dict(item) == {}


class Passing(Pages):
    """Passes its meta on, as people do."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.scheduled: list[dict[str, Any]] = []

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.request_scheduled, signal=signals.request_scheduled)
        return spider

    def request_scheduled(self, request: Request) -> None:
        self.scheduled.append(dict(request.meta))

    def page(self, response: Response) -> Iterator[Any]:
        super_page = super().page(response)
        yield from super_page
        if response.url.endswith("/page"):
            yield self.ask(Request(response.url + "/next", meta=response.meta))


async def test_the_usage_reaches_no_queue_and_no_other_page(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    site = server.site()
    site.robots = RECORD + "Content-Usage: /page$ train-ai=n\n"
    result = await crawl(
        Passing, urls=[site.url("/page")], settings={**FIELD, "JOBDIR": str(tmp_path)}
    )
    spider: Any = result.crawler.spider
    seen = spider.scheduled
    assert len(seen) == 2
    assert not any("koster_usage" in meta for meta in seen)
    usages = spider_of(result).usages
    assert usages[site.url("/page")].preference("train-ai") is Preference.DISALLOW
    assert usages[site.url("/page/next")].statements == ()
    assert pickle.loads(pickle.dumps(usages)) == usages


async def test_a_request_that_does_not_obey(crawl: Crawl, server: Server) -> None:
    """Its robots.txt is not read. What the page says is told, and nothing is dropped for it."""
    site = server.site()
    site.robots = RECORD + "Content-Usage: search=n\n"
    site.page("/page", Reply(body="x", headers={"Content-Usage": "train-ai=n"}))
    result = await crawl(
        Pages,
        urls=[site.url("/page")],
        meta={"dont_obey_robotstxt": True},
        settings={
            **FIGTREE, "KOSTER_USAGE_PURPOSES": ["train-ai"], "KOSTER_USAGE_ACTION": "refuse"
        },
    )  # fmt: skip
    assert [str(usage) for usage in spider_of(result).usages.values()] == ["train-ai=n"]
    assert len(result.items) == 1
    assert not site.asked("/robots.txt")


async def test_a_page_that_is_forbidden_has_no_preference(crawl: Crawl, server: Server) -> None:
    """Attach, 3: "paths that cannot be crawled have no associated usage preferences"."""
    site = server.site()
    site.robots = RECORD + "Content-Usage: train-ai=n\n"
    urls = [site.url("/private"), site.url("/page")]
    result = await crawl(Pages, urls=urls, settings={**FIELD, "KOSTER_DRY_RUN": True})
    says = {url: str(usage) for url, usage in spider_of(result).usages.items()}
    assert says == {urls[0]: "", urls[1]: "train-ai=n"}


async def test_an_override_says_nothing_about_use(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = RECORD + "Content-Usage: train-ai=n\nContent-Usage: /private/open train-ai=y\n"
    override = {
        "site": site.url(""), "reason": "agreed", "until": "2999-12-31", "allow": ["/private"]
    }  # fmt: skip
    urls = [site.url("/private/open"), site.url("/private/closed")]
    result = await crawl(
        Pages,
        urls=urls,
        settings={
            **FIGTREE,
            "KOSTER_OVERRIDES": [override],
            "KOSTER_USAGE_PURPOSES": ["train-ai"],
            "KOSTER_USAGE_ACTION": "refuse",
        },
    )
    assert result.fetched == (urls[0],)
    [verdict] = result.verdicts
    assert (verdict.ground, verdict.line, verdict.override) == (Ground.USAGE, 3, None)
    assert result.stats["koster/override/allowed"] == 1


class Chain(Pages):
    """Requests /third when it has /second."""

    def page(self, response: Response) -> Iterator[Any]:
        yield from super().page(response)
        if response.url.endswith("/second"):
            yield self.ask(response.url.replace("second", "third"))


async def test_the_copy_that_is_current_at_the_time_of_the_fetch_counts(
    crawl: Crawl, server: Server
) -> None:
    """Attach, 3.3: what comes later does "not retroactively apply"."""
    site = server.site()
    crawl.clock = clock = JumpingClock()
    site.robots = RECORD + "Content-Usage: train-ai=n\n"

    def slow(_asked: Asked) -> Reply:
        """While this page is under way, its site's copy becomes another."""
        clock.ahead += 700_000
        site.robots = RECORD + "Content-Usage: train-ai=y\n"
        return Reply(body="x", delay=5)

    site.page("/first", slow)
    site.page("/second", Reply(body="x", delay=1))
    urls = [site.url(path) for path in ("/first", "/second", "/third")]
    result = await crawl(Chain, urls=urls[:2], settings=FIELD)
    usages = spider_of(result).usages
    assert result.fetched == (*urls[1:], urls[0])
    assert site.asked("/robots.txt") == 2
    assert str(usages[urls[0]]) == "train-ai=n"
    assert str(usages[urls[2]]) == "train-ai=y"


async def test_a_page_that_is_no_html(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = RECORD
    headers = {"Content-Type": "application/pdf", "Content-Usage": "train-ai=n"}
    site.page("/a.pdf", Reply(body=b"%PDF", headers=headers))
    site.page("/b.pdf", Reply(body=b"%PDF", headers={"Content-Type": "application/pdf"}))
    urls = [site.url("/a.pdf"), site.url("/b.pdf")]
    result = await crawl(
        Pages, urls=urls, settings={**FIGTREE, "KOSTER_USAGE_PURPOSES": ["train-ai"]}
    )
    says = {url: str(usage) for url, usage in spider_of(result).usages.items()}
    assert says == {urls[0]: "train-ai=n", urls[1]: ""}


async def test_without_robots_txt_nothing_of_this_runs(crawl: Crawl, server: Server) -> None:
    site = server.site()
    settings = {
        **FIGTREE,
        "ROBOTSTXT_OBEY": False,
        "SPIDER_MIDDLEWARES": {"scrapy_koster.UsageMiddleware": 90},
    }
    result = await crawl(urls=[site.url("/")], robots=None, settings=settings)
    assert result.fetched == (site.url("/"),)
    assert counted(result) == {}


@pytest.mark.parametrize(
    ("settings", "secs"),
    [
        ({}, 604_800),
        ({"KOSTER_USAGE_PURPOSES": ["search"]}, 86_400),
        ({"KOSTER_USAGE_PURPOSES": ["search"], "KOSTER_EXPIRY_SECS": 60}, 60),
    ],
)
async def test_a_crawl_with_purposes_keeps_copies_for_a_day(
    crawl: Crawl, server: Server, settings: dict[str, Any], secs: int
) -> None:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /\n"
    result = await crawl(Pages, urls=[site.url("/")], settings={**FIGTREE, **settings})
    [verdict] = result.verdicts
    known = verdict.known
    assert known.expires - known.fetched == pytest.approx(secs)  # type: ignore[union-attr]
    said = [line for line in result.logged(logging.INFO) if "expire after 86400 s" in line]
    assert len(said) == len(settings.get("KOSTER_USAGE_PURPOSES", []))


async def test_a_copy_that_was_stored_by_a_crawl_without_purposes(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    site = server.site()
    site.robots = RECORD
    settings = {**FIGTREE, "KOSTER_SQLITE_PATH": str(tmp_path / "robots.sqlite3")}
    crawl.clock = clock = JumpingClock()
    await crawl(Pages, urls=[site.url("/")], settings=settings)
    purposes = {**settings, "KOSTER_USAGE_PURPOSES": ["search"]}
    for ahead, asked in ((86_000, 1), (87_000, 2)):
        clock.ahead = ahead
        await crawl(Pages, urls=[site.url("/")], settings=purposes)
        assert site.asked("/robots.txt") == asked


async def test_a_purpose_that_no_standard_defines(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = RECORD + "Content-Usage: poems=n\n"
    result = await crawl(
        Pages,
        urls=[site.url("/")],
        settings={
            **FIGTREE, "KOSTER_USAGE_PURPOSES": ["poems"], "KOSTER_USAGE_ACTION": "refuse"
        },
    )  # fmt: skip
    [warning] = [line for line in result.logged(logging.WARNING) if "PURPOSES" in line]
    assert (
        "defines poems. Known labels are ai-input, ai-use, noimageai, search, tdm, train-ai"
        in warning
    )
    assert result.verdicts[0].ground is Ground.USAGE


# Scrapy does not close the session of its handler without a reactor if a crawl cannot begin.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_without_the_middleware_a_crawl_with_purposes_does_not_begin(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    with pytest.raises(ValueError, match="have no effect without UsageMiddleware"):
        await crawl(
            urls=[site.url("/")],
            robots=None,
            settings={
                "ROBOTSTXT_OBEY": True,
                "DOWNLOADER_MIDDLEWARES": {"scrapy_koster.KosterMiddleware": 100},
                "KOSTER_USAGE_PURPOSES": ["train-ai"],
            },
        )


NAMES = ["figtree-images", "figtree"]
TWO_NAMES = """\
User-agent: *
Content-Usage: train-ai=y

User-agent: figtree
Content-Usage: ai-input=n

User-agent: figtree-images
Content-Usage: search=n
"""


@pytest.mark.parametrize(
    ("settings", "meta"),
    [({"ROBOTSTXT_USER_AGENT": NAMES}, {}), ({}, {"robotstxt_user_agent": NAMES})],
    ids=["setting", "meta"],
)
async def test_a_robot_with_two_names(
    crawl: Crawl, server: Server, settings: dict[str, Any], meta: dict[str, Any]
) -> None:
    """The record is that of the first name that has one. A page speaks to each of them."""
    site = server.site()
    site.robots = TWO_NAMES
    headers = {
        "Content-Usage": "train-ai=y",
        "tdm-reservation": "0",
        "X-Robots-Tag": "figtree-images: noimageai, figtree: noai, other: noai",
    }
    head = '<meta name="figtree" content="noai"><meta name=tdm-policy content=https://p.example/>'
    site.page("/page", Reply(body=META % head, headers={**HTML, **headers}))
    site.page("/a.pdf", Reply(body=b"%PDF", headers=headers))
    urls = [site.url("/page"), site.url("/a.pdf")]
    result = await crawl(
        Pages, urls=urls, meta=meta, settings={**FIGTREE, **settings, "KOSTER_USAGE_FIELD": "usage"}
    )
    says = {url: str(usage) for url, usage in spider_of(result).usages.items()}
    assert set(says.values()) == {"noimageai=n, search=n, tdm=y, train-ai=n"}
    for url, metas in zip(urls, (2, 0), strict=True):
        statements = spider_of(result).usages[url].statements
        assert [each.line for each in statements if each.line] == [8]
        assert len(statements) == len(set(statements)) == 5 + metas


async def test_the_digest_of_a_statement_is_that_of_the_record_in_the_archive(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    """Also if a copy that was fetched anew has the same text, and is compressed in another way."""
    site = server.site()
    crawl.clock = clock = JumpingClock()
    text = (RECORD + "Content-Usage: train-ai=n\n").encode()
    site.robots = [
        Reply(200, compress(text, level), headers={"Content-Encoding": "gzip"}) for level in (0, 9)
    ]

    def later(_asked: Asked) -> Reply:
        clock.ahead += 700_000
        return Reply(200)

    site.page("/second", later)
    urls = [site.url("/second"), site.url("/third")]
    settings = {**FIELD, "KOSTER_ARCHIVE": str(tmp_path)}
    result = await crawl(Chain, urls=urls[:1], settings=settings)
    assert result.fetched == tuple(urls)
    responses = [each for each in read_archive(tmp_path) if each.headers["WARC-Type"] == "response"]
    digests = [each.headers["WARC-Payload-Digest"] for each in responses]
    assert len(set(digests)) == 2
    usages = spider_of(result).usages
    assert [usages[url].statements[0].digest for url in urls] == digests
