"""The pages for those who begin, and the recipes: each block of code in them is run."""

from __future__ import annotations

import logging
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from harness.commands import Ran
from harness.commands import Sites as Commands
from harness.crawling import Crawl, CrawlResult, WithFiles
from harness.documents import blocks, section, settings_of, spider_of, text
from harness.redis_server import common_server
from harness.replies import Reply
from harness.server import Server, Site

PAGES = ("start", "coming-from-scrapy", "recipes")
RULES = "User-agent: *\nDisallow: /private\n"
EXAMPLE = "https://example.com"
GO_BACK = "ADDONS = {}\n"


def recipe(heading: str) -> str:
    return section(text("docs/recipes.md"), f"## {heading}")


PYTHON = [block for page in PAGES for block in blocks(text(f"docs/{page}.md"), "python")]
SETTINGS = [block for block in PYTHON if "class " not in block]
CONSOLE = [block for page in PAGES for block in blocks(text(f"docs/{page}.md"), "console")]
SPIDERS = {
    found[1]: block
    for block in PYTHON
    if (found := re.search(r'name = "(\w+)"', block)) is not None
}


def here(block: str, tmp_path: Path) -> dict[str, Any]:
    """The settings of a block, with a path and a server that are there."""
    settings = settings_of(block)
    if "KOSTER_SQLITE_PATH" in settings:
        settings["KOSTER_SQLITE_PATH"] = str(tmp_path / settings["KOSTER_SQLITE_PATH"].lstrip("/"))
    if "KOSTER_REDIS_URL" in settings:
        settings["KOSTER_REDIS_URL"] = common_server().url()
        settings["KOSTER_REDIS_PREFIX"] = tmp_path.name
    return settings


@pytest.mark.parametrize("block", SETTINGS, ids=range(len(SETTINGS)))
async def test_each_block_of_settings_makes_a_crawl_that_obeys(
    crawl: Crawl, server: Server, tmp_path: Path, block: str
) -> None:
    site = server.site()
    site.robots = RULES
    urls = [site.url("/"), site.url("/private")]
    settings = {"ROBOTSTXT_OBEY": True, **here(block, tmp_path)}
    result = await crawl(urls=urls, settings=settings)
    is_dry = bool(settings.get("KOSTER_DRY_RUN"))
    assert sorted(result.fetched) == (urls if is_dry else urls[:1])
    assert result.warnings == []
    assert any(name.startswith("koster/") for name in result.stats) is (block != GO_BACK)
    if "KOSTER_SQLITE_PATH" in settings:
        assert Path(settings["KOSTER_SQLITE_PATH"]).is_file()


async def crawled(
    crawl: Crawl, site: Site, name: str, tmp_path: Path, **arguments: Any
) -> CrawlResult:
    """A crawl of the spider of this name, on *site* in place of example.com."""
    return await crawl(spider_of(SPIDERS[name], tmp_path, site), **arguments)


# docs/start.md


async def test_the_first_crawl_says_what_the_page_says(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    site = server.site()
    site.robots = RULES
    settings = settings_of(blocks(text("docs/start.md"), "python")[0])
    result = await crawled(crawl, site, "first", tmp_path, settings=settings)
    lines = "".join(blocks(text("docs/start.md"), "text")).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.replace(EXAMPLE, site.url("")) in result.logged()
    [refused] = [item["why"] for item in result.items if "why" in item]
    assert refused in lines[0].replace(EXAMPLE, site.url(""))
    assert site.pages_asked == ["/"]


def test_the_first_crawl_is_what_the_readme_enables() -> None:
    [enabled] = [block for block in blocks(text("README.md"), "python") if "ADDONS" in block]
    assert blocks(text("docs/start.md"), "python")[0] == enabled
    coming = blocks(text("docs/coming-from-scrapy.md"), "python")[0]
    assert coming == f"{enabled}KOSTER_DRY_RUN = True\n"


# docs/recipes.md


FIGTREE = "User-agent: figtree\nDisallow: /private\n"
WILDCARDS = "## Obey wildcards, repeated records and misspelt lines"


@pytest.mark.parametrize(
    ("page", "heading", "robots", "path", "quoted"),
    [
        ("recipes", WILDCARDS, "User-agent: *\nDisallow: /*.pdf$\n", "/a.pdf", 0),
        ("recipes", WILDCARDS, "User-agent: *\nDisalow: /private\n", "/private", 1),
        ("recipes", "## Several names in order", FIGTREE, "/private", 0),
        ("recipes", "## Identify your robot", FIGTREE.upper(), "/PRIVATE", None),
        ("settings", "### KOSTER_MISSING", Reply(404), "/", None),
    ],
)
async def test_a_block_of_settings_refuses(
    crawl: Crawl,
    server: Server,
    *,
    page: str,
    heading: str,
    robots: Any,
    path: str,
    quoted: int | None,
) -> None:
    """The path is refused because of the words that the page quotes, if any."""
    site = server.site()
    site.robots = robots
    told = section(text(f"docs/{page}.md"), heading)
    for block in blocks(told, "python"):
        if "class " in block:
            continue
        result = await crawl(urls=[site.url(path)], settings=settings_of(block))
        because = [verdict.because() for verdict in result.verdicts]
        assert len(because) == 1
        assert quoted is None or because[0] == re.findall(r"`(line 2 [^`]*)`", told)[quoted]
        assert result.warnings == []
    assert site.pages_asked == []


async def test_what_may_be_used_for_training_is_collected(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    site = server.site()
    site.robots = RULES + "Content-Usage: train-ai=y\nContent-Usage: /no train-ai=n\n"
    result = await crawled(crawl, site, "training", tmp_path)
    [item] = result.items
    assert item["usage"]["preferences"] == {"train-ai": "y"}
    another = server.site()
    another.robots = RULES + "Content-Usage: train-ai=n\n"
    result = await crawled(crawl, another, "training", tmp_path)
    assert result.items == ()
    assert result.stats["koster/forbidden/usage"] == 1
    assert another.pages_asked == []


async def test_only_files_that_may_be_kept_are_stored(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    [block] = blocks(recipe("Keep only the files and images that you may keep"), "python")
    names: dict[str, Any] = {}
    exec(compile(block, "recipes.md", "exec"), names)
    site = server.site()
    site.robots = f"{RULES}Content-Usage: /by-robots-txt train-ai=n\n"
    stated = {
        "/kept": {},
        "/noindex": {"X-Robots-Tag": "noindex"},
        "/robots-tag": {"Robots-Tag": "*;noindex"},
        "/noai": {"X-Robots-Tag": "noai"},
        "/signal": {"Content-Signal": "ai-train=no"},
        "/by-robots-txt": {},
    }
    for path, headers in stated.items():
        site.page(path, Reply(body=b"file", headers=headers))
    settings = {
        "ITEM_PIPELINES": {names["PermittedFilesPipeline"]: 1},
        "FILES_STORE": str(tmp_path / "files"),
        "KOSTER_USAGE_PURPOSES": ["train-ai"],
    }
    media = [site.url(path) for path in stated]
    arguments = {"media": media}
    result = await crawl(WithFiles, urls=[site.url("/")], settings=settings, arguments=arguments)
    [item] = result.items
    assert [file["url"] for file in item["files"]] == media[:1]
    assert sorted(site.pages_asked) == sorted(["/", *stated])
    assert len(list((tmp_path / "files" / "full").iterdir())) == 1


async def test_only_pages_that_may_be_kept_are_kept(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    site = server.site()
    site.robots = RULES
    pages = {
        "/": "<a href=/private>x</a><a href=/no>x</a><a href=/open>x</a>",
        "/private": "<a href=/linked>x</a>",
        "/no": "<meta name=robots content=none><a href=/further>x</a>",
    }
    for path, body in pages.items():
        site.page(path, Reply(body=body, headers={"Content-Type": "text/html"}))
    result = await crawled(crawl, site, "keeping", tmp_path)
    kept = sorted(item["url"] for item in result.items)
    assert kept == [site.url(path) for path in ("/", "/further", "/linked", "/open")]
    assert sorted(site.pages_asked) == ["/", "/further", "/linked", "/no", "/open", "/private"]


async def test_a_spider_and_a_request_with_a_name(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    site = server.site()
    site.robots = (
        "User-agent: figtree\nDisallow: /private\n\n"
        "User-agent: figtree-images\nDisallow: /images\n\n"
        "User-agent: *\nDisallow: /\n"
    )
    result = await crawled(crawl, site, "figtree", tmp_path)
    assert site.pages_asked == ["/"]
    assert result.stats["robotstxt/forbidden"] == 1
    assert result.warnings == []
    [asked] = [asked for asked in site.requests if asked.path == "/"]
    assert "FigTree/0.1" in (asked.header("User-Agent") or "")


async def test_a_site_that_answered_403(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    site = server.site()
    site.robots = Reply(403)
    closed = await crawl(urls=[site.url("/")])
    [quoted] = re.findall(r"`(https://\S+ is restricted: .*?)`", recipe("A site answered 403"))
    said = quoted.replace(EXAMPLE, site.url(""))
    assert [line for line in closed.logged(logging.INFO) if line.startswith(said)]
    assert closed.fetched == ()
    opened = await crawled(crawl, site, "permitted", tmp_path)
    assert list(opened.items) == [{"url": site.url("/")}]


async def test_a_site_that_is_deferred(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    site = server.site()
    site.robots = Reply(503)
    result = await crawled(crawl, site, "patient", tmp_path)
    [quoted] = re.findall(r"`(Holding requests .*?)`", recipe("A site is deferred"))
    said = quoted.replace(EXAMPLE, site.url(""))
    assert [line for line in result.logged(logging.INFO) if line.startswith(said)]
    [item] = result.items
    assert item["later"] == site.url("/page")
    assert "HTTP 503" in item["why"]
    assert site.pages_asked == []


async def test_what_is_allowed(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    site = server.site()
    site.robots = RULES
    result = await crawled(crawl, site, "asking", tmp_path)
    assert [item["allowed"] for item in result.items] == [True, False]
    assert site.pages_asked == ["/"]


async def test_sitemaps(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    site = server.site()
    site.robots = f"{RULES}Sitemap: /map.xml\n"
    body = f"<urlset><url><loc>{site.url('/page')}</loc></url></urlset>"
    site.page("/map.xml", Reply(200, body, headers={"Content-Type": "text/xml"}))
    result = await crawled(crawl, site, "mapped", tmp_path)
    assert list(result.items) == [{"url": site.url("/page")}]
    assert site.asked("/robots.txt") == 1


async def test_a_proxy(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    site, proxy = server.site(), server.site()
    for path in ("/robots.txt", "/page"):
        proxy.page(site.url(path), Reply(200, RULES if path == "/robots.txt" else "page"))
    arguments = {"proxy": proxy.url("")}
    result = await crawled(crawl, site, "proxied", tmp_path, arguments=arguments)
    assert list(result.items) == [{"url": site.url("/page")}]
    assert [asked.target for asked in proxy.requests] == [
        site.url("/robots.txt"),
        site.url("/page"),
    ]
    assert site.requests == ()


# What is shown to be typed. The tests of these pages have no file of the first.

TYPED = {
    f"scrapy robots explain {EXAMPLE}/private/": 1,
    f"scrapy robots explain --refresh {EXAMPLE}/": 0,
    f"scrapy robots cache forget {EXAMPLE}/": 1,  # nothing is stored
    "scrapy robots survey urls.txt": 1,
}


@pytest.mark.parametrize("command", CONSOLE)
def test_each_command_is_one(sites: Commands, tmp_path: Path, command: str) -> None:
    site = sites.server.site()
    site.robots = RULES
    (tmp_path / "urls.txt").write_text(f"{site.url('/')}\n{site.url('/private')}\n")
    _, _, *words = shlex.split(command.replace(EXAMPLE, site.url("")))
    ran: Ran = sites.run(*words)
    assert ran.status == TYPED[command.strip()]


async def test_a_webhook_gets_each_refusal(crawl: Crawl, server: Server) -> None:
    [block] = blocks(recipe("Send refusals to a webhook"), "python")
    names: dict[str, Any] = {}
    exec(compile(block, "recipes.md", "exec"), names)
    site, hook = server.site(), server.site(host="127.0.0.2")
    site.robots = RULES
    settings = {
        "EXTENSIONS": {names["RefusalWebhook"]: 500},
        "REFUSAL_WEBHOOK": hook.url("/refusals"),
    }
    paths = ("/a", "/private/1", "/private/2")
    result = await crawl(urls=[site.url(path) for path in paths], settings=settings)
    assert len(result.refused) == 2
    assert hook.pages_asked == ["/refusals"] * 2
    assert hook.asked("/robots.txt") == 0
