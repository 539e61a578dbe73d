"""One function decides: whoever asks gets its answer, and nothing else evaluates rules."""

from __future__ import annotations

from contextlib import nullcontext
from time import time
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from harness.crawling import Crawl
from scrapy import Request, Spider
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_koster import KosterMiddleware, RobotsForbidden
from scrapy_koster.commands.explain import explain
from scrapy_koster.commands.lookup import Basis
from scrapy_koster.crawl.context import CrawlContext, Parts, context_of
from scrapy_koster.crawl.states import Facts, SiteState
from scrapy_koster.protocol.access import Answer, CachedRobots, FetchFailure
from scrapy_koster.protocol.step import waits
from scrapy_koster.protocol.verdict import Verdict

SITE = "http://a.example"
BODY = b"""User-agent: *
Disallow: /private
Disallow: /b/c
Allow: /open
Content-Usage: train-ai=y
Content-Usage: /art train-ai=n
Crawl-delay: 100
"""
PATHS = (
    "", "/", "/open", "/private", "/private/x?y", "/privat", "/PRIVATE", "/b/c", "/b/./c",
    "/b/x/../c", "/b/%2e/c", "/b%2Fc", "/b/c;x", "/b;/c", "/a;", "/b//c", "//b/c", "/?/private",
    "/a?b=%2Fprivate", "/art", "/art/private", "/x/../art", "/robots.txt", "/robots.txt?a",
    "/closed", "/x/../closed", "/open/../private", "/%70rivate", "/a#/private", "/\u00f6",
    "/private%00",
)  # fmt: skip
OVERRIDE = {
    "site": SITE,
    "allow": ["/private/x"],
    "disallow": ["/closed"],
    "reason": "agreed",
    "until": "2199-01-01",
}
SETTINGS: dict[str, dict[str, Any]] = {
    "as they are": {},
    "overrides": {"KOSTER_OVERRIDES": [OVERRIDE]},
    "usage": {"KOSTER_USAGE_PURPOSES": ["train-ai"], "KOSTER_USAGE_ACTION": "refuse"},
    "delays": {"KOSTER_CRAWL_DELAY": "refuse"},
    "the strictest": {"KOSTER_PARSER": "scrapy_koster.StrictestRobotParser"},
    "restricted": {"status": 403},
    "missing": {"status": 404, "KOSTER_MISSING": "disallow"},
    "refused": {"status": 503, "KOSTER_UNAVAILABLE": "disallow"},
    "let through": {"status": 503, "KOSTER_UNAVAILABLE": "allow"},
}


class Fetch:
    """Every site has the same file."""

    def __init__(self, status: int) -> None:
        self._status = status

    async def fetch(self, state: SiteState, *_: object) -> Answer:
        return Answer(state.site.robots_url, self._status, {}, BODY if self._status == 200 else b"")


class Asked(NamedTuple):
    parts: CrawlContext
    middleware: KosterMiddleware


async def begun(name: str) -> Asked:
    """Return a crawl with these settings, whose site is known."""
    settings = dict(SETTINGS[name])
    fetch: Any = Fetch(settings.pop("status", 200))
    crawler = Crawler(
        Spider,
        {
            "ROBOTSTXT_OBEY": True,
            "ROBOTSTXT_USER_AGENT": "figtree",
            "KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage",
            "SPIDER_MIDDLEWARES": {"scrapy_koster.UsageMiddleware": 90},
            **settings,
        },
    )
    crawler.spider = Spider("asks")
    crawler.stats = MemoryStatsCollector(crawler)
    crawler.engine = cast("ExecutionEngine", SimpleNamespace(_slot=None))
    parts = context_of(crawler, Parts(fetcher=lambda *_, **__: fetch))
    middleware = KosterMiddleware.from_crawler(crawler)
    if parts.config.pace.obeys:
        parts.pacer.open()
    state = parts.sites.records.state_of(SITE)
    assert state is not None
    await parts.sites.wait(state, Request(SITE))
    return Asked(parts, middleware)


def said(verdict: Verdict) -> tuple[Any, ...]:
    return verdict.ground, verdict.line, verdict.section, verdict.spelling, str(verdict)


async def checked(asked: Asked, request: Request) -> None:
    """Check *request* as it is sent. It may have been changed since its decision."""
    if (waits_for := asked.middleware.enforcement.check_before_sending(request)) is not None:
        await waits_for


async def answers(asked: Asked, url: str) -> dict[str, Any]:
    """What each of those who ask is told about *url*: None if it is allowed."""
    parts, middleware = asked.parts, asked.middleware
    state = parts.sites.records.state_of(url)
    assert state is not None
    assert not waits(state.step)
    basis = Basis(
        state.step, state.facts.source, state.facts.parser, parts.config, "figtree", time()
    )
    explained = explain(url, "figtree", basis, failed=lambda error: pytest.fail(repr(error)))
    found: dict[str, Any] = {
        "explain": None if explained.verdict.allowed else said(explained.verdict)
    }

    request = Request(url)

    async def downloaded() -> None:
        await middleware.process_request(request)

    async def sent() -> None:  # even if a subclass has ignored the error of process_request
        await checked(asked, request)

    async def ended_there() -> None:
        await middleware.process_response(Request("http://b.example/"), Response(url))

    for name, ask in (("downloaded", downloaded), ("sent", sent), ("final URL", ended_there)):
        try:
            await ask()
        except IgnoreRequest as error:
            verdict: Any = getattr(error, "verdict", None)
            found[name] = said(verdict)
        else:
            found[name] = None
    if not isinstance(state.known, CachedRobots):
        assert middleware.is_allowed(url) in (None, found["explain"] is None)
        return found
    if url.endswith("/robots.txt"):
        del found["final URL"]  # it has no other site to wait for
    found["is_allowed"] = None if middleware.is_allowed(url) else found["explain"]
    dropped = middleware.enforcement.drop_link(Request(url))
    found["link filter"] = None if dropped is None else said(dropped.verdict)
    return found


@pytest.mark.parametrize("name", SETTINGS)
async def test_whoever_asks_is_told_the_same(crawl: Crawl, name: str) -> None:
    asked, differ, refused = await begun(name), {}, 0
    for path in PATHS:
        url = Request(f"{SITE}{path}").url
        told = await answers(asked, url)
        refused += told["explain"] is not None
        if len(set(told.values())) > 1:
            differ[path] = told
    await asked.parts.sites.close()
    assert differ == {}
    assert (refused > 0) is (name != "let through")


async def test_an_override_can_end_before_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = await begun("overrides")
    request = Request(f"{SITE}/private/x")
    await asked.middleware.process_request(request)
    await checked(asked, request)
    monkeypatch.setattr(asked.middleware.enforcement, "_epoch", lambda: 4e10)
    with pytest.raises(IgnoreRequest):
        await checked(asked, request)
    await asked.parts.sites.close()


@pytest.mark.parametrize(
    ("name", "life_secs", "is_open"),
    [("as they are", -1, False), ("let through", -1, True), ("let through", 60, False)],
)
async def test_the_last_copy_decides_before_sending_if_its_site_fails(
    name: str, *, life_secs: int, is_open: bool
) -> None:
    asked, now = await begun(name), time()
    request = Request(f"{SITE}/x")
    await asked.middleware.process_request(request)
    copy = CachedRobots(f"{SITE}/robots.txt", 403, b"", None, None, now - 60, now + life_secs)
    state = asked.parts.sites.records.state_of(SITE)
    assert state is not None
    state.learn(Facts(known=FetchFailure("HTTP 503", 1, now, now, now + 60, copy)))
    with nullcontext() if is_open else pytest.raises(RobotsForbidden):
        await checked(asked, request)
    await asked.parts.sites.close()
