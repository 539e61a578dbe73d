"""SECURITY.md lists the ways past the rules: each is one, and no other setting is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl
from harness.documents import code, rows, section
from harness.replies import Reply
from harness.server import Server, Site
from scrapy import Request

from scrapy_koster import Rfc9309RobotParser
from scrapy_koster.crawl.config import DEFAULTS

SECURITY = Path("SECURITY.md").read_text(encoding="utf-8")
LISTED = {
    code(row[0]).partition(" = ")[0]: code(row[0])
    for row in rows(section(SECURITY, "## Ways past the rules"))
}
RULES = "User-agent: *\nDisallow: /no\nAllow: /no/but\n"
BASE: dict[str, Any] = {
    "KOSTER_EXPIRY_SECS": 0,
    "KOSTER_EXPIRY_MIN_SECS": 0,
    "KOSTER_IDLE_LIMIT_SECS": 0,
}
OTHERS: dict[str, Any] = {
    "KOSTER_MEMORY_BYTES": 1,
    "KOSTER_CONCURRENT_FETCHES": 1,
    "KOSTER_SQLITE_PATH": None,  # as it is in the tests
    "KOSTER_REDIS_URL": "redis://nosuch-host.invalid:1/1",
    "KOSTER_REDIS_PREFIX": "other",
    "KOSTER_REDIS_TTL_SECS": 1,
    "KOSTER_EXPIRY_MAX_SECS": 10 * 365 * 86400,
    "KOSTER_RESTRICTED_EXPIRY_SECS": 0,
    "KOSTER_TIMEOUT_SECS": 5,
    "KOSTER_REDIRECT_MAX": 0,
    "KOSTER_PAGE_META": (),
    "KOSTER_DEFER_FIRST_SECS": 0.1,
    "KOSTER_DEFER_MAX_SECS": 0.2,
    "KOSTER_DEFER_LIMIT_SECS": 0.3,
    "KOSTER_IDLE_LIMIT_SECS": 1,
    "KOSTER_CRAWL_DELAY": "obey",
    "KOSTER_CRAWL_DELAY_MAX_SECS": 1,
    "KOSTER_MISSING": "disallow",
    "KOSTER_HTML_ROBOTSTXT": "disallow",
    "KOSTER_FILTER_LINKS": True,
    "KOSTER_PAGE_DIRECTIVES": (),
    "KOSTER_USAGE_PURPOSES": ("search",),
    "KOSTER_USAGE_ACTION": "refuse",
    "KOSTER_USAGE_UNKNOWN": "drop",
    "KOSTER_USAGE_FIELD": "usage",
    "KOSTER_REPORT": "report.html",
    "KOSTER_ARCHIVE": "archive",
    "KOSTER_FALLBACK_SCHEDULER": None,
    "KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage",
}


def ways(site: Site) -> dict[str, Any]:
    """The value with which each of the listed settings is a way past the rules."""
    agreed = {"site": site.url(""), "allow": ["/no"], "reason": "mail", "until": "2999-12-31"}
    return {
        "ROBOTSTXT_OBEY": False,
        "KOSTER_DRY_RUN": True,
        "KOSTER_OVERRIDES": [agreed],
        "KOSTER_PARSER": Rfc9309RobotParser,
        "KOSTER_RESTRICTED": "allow",
        "KOSTER_UNAVAILABLE": "allow",
        "KOSTER_STALE_IF_ERROR_SECS": 86400,
        "KOSTER_EXPIRY_SECS": 86400,
        "KOSTER_EXPIRY_MIN_SECS": 300,
        "KOSTER_MAX_BYTES": 1,
    }


async def sent(crawl: Crawl, server: Server, settings: dict[str, Any], **meta: Any) -> list[str]:
    """The pages that were fetched of sites that forbid or withhold them."""
    ruled, closed, failing, changed, short, failed = (server.site() for _ in range(6))
    ruled.robots, closed.robots, failing.robots = RULES, Reply(403), Reply(503)
    changed.robots, failed.robots = ["", RULES], ["", Reply(503)]
    short.robots = [Reply(200, "", headers={"Cache-Control": "max-age=0"}), RULES]
    lives = {key: value for key, value in settings.items() if "_EXPIRY_" in key}  # by the fetch
    sites = (ruled, closed, failing, changed, short, failed)
    old = await crawl(urls=[site.url("/old") for site in sites[3:]], settings=BASE | lives)
    assert len(old.fetched) == 3
    urls = [site.url(path) for site in sites for path in ("/no", "/no/but")]
    given = {key: value for key, value in settings.items() if value is not None}
    if "KOSTER_OVERRIDES" in given:
        given["KOSTER_OVERRIDES"] = ways(ruled)["KOSTER_OVERRIDES"]
    requests = [Request(url, meta=meta) for url in urls]
    await crawl(urls=requests, settings=BASE | given)
    return [page for site in sites for page in site.pages_asked if page != "/old"]


def test_the_list_is_complete(server: Server) -> None:
    listed = ways(server.site())
    assert {*LISTED} == {*listed, "dont_obey_robotstxt"}
    assert {*listed, *OTHERS} == {*DEFAULTS, "ROBOTSTXT_OBEY"}
    for name, text in LISTED.items():
        if " = " in text:
            assert eval(text.partition(" = ")[2]) == listed[name]


@pytest.mark.parametrize("name", LISTED)
async def test_each_of_them_is_one(crawl: Crawl, server: Server, name: str) -> None:
    if name == "dont_obey_robotstxt":
        assert await sent(crawl, server, {}, dont_obey_robotstxt=True)
    else:
        assert await sent(crawl, server, {name: ways(server.site())[name]})


@pytest.mark.parametrize("without", ["", "KOSTER_STORAGE"])
async def test_no_other_setting_is_one(
    crawl: Crawl, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    monkeypatch.chdir(tmp_path)
    others = {name: value for name, value in OTHERS.items() if name != without}
    assert await sent(crawl, server, others) == []
    assert await sent(crawl, server, {}) == []
