"""3.2.1: the name that decides is that of the header which is sent."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from harness.crawling import Crawl
from harness.replies import Reply
from harness.server import Server
from scrapy import Request

from scrapy_koster.protocol.nametoken import name_token

BY_ROBOT = """\
User-agent: figtree
Disallow: /for/figtree

User-agent: *
Disallow: /for/others
"""
FIGTREE = "FigTree/0.1 (+http://fict.org)"
OTHER = "Other/2"

HEADERS = {
    "text": FIGTREE,
    "octets": FIGTREE.encode(),
    "empty": "",
    "two": [OTHER, FIGTREE.encode()],
    "none": None,
}


def everywhere(header: Any) -> dict[str, dict[str, Any]]:
    """The arguments of a crawl with this header, by where it stands."""
    other = {"USER_AGENT": OTHER}
    return {
        "USER_AGENT": {"settings": {"USER_AGENT": header}},
        "default header": {"settings": {"DEFAULT_REQUEST_HEADERS": {"User-Agent": header}}},
        "default header, octets": {
            "settings": {"DEFAULT_REQUEST_HEADERS": {b"user-agent": header}}
        },
        "default headers": {
            "settings": {"DEFAULT_REQUEST_HEADERS": {"user-agent": header, b"USER-AGENT": OTHER}}
        },
        "default header over USER_AGENT": {
            "settings": {"DEFAULT_REQUEST_HEADERS": {"User-Agent": header}, **other}
        },
        "spider": {"settings": other, "arguments": {"user_agent": header}},
        "request": {"settings": other, "headers": {"User-Agent": header}},
    }


@pytest.mark.promise("README.md", "Sites address your robot by your User-Agent")
@pytest.mark.parametrize(
    ("where", "header"),
    [
        *((where, FIGTREE) for where in everywhere(FIGTREE)),
        *(("USER_AGENT", header) for header in HEADERS.values()),
        *(("request", header) for header in HEADERS.values()),
    ],
)
@pytest.mark.filterwarnings("ignore:.*user_agent.*:scrapy.exceptions.ScrapyDeprecationWarning")
async def test_what_decides_is_what_is_sent(
    crawl: Crawl, server: Server, where: str, header: Any
) -> None:
    site = server.site()
    site.robots = Reply(body=BY_ROBOT)
    urls = [site.url(path) for path in ("/page", "/for/figtree", "/for/others")]
    result = await crawl(urls=urls, **everywhere(header)[where])
    robots_txt, *pages = site.requests
    sent = robots_txt.header("User-Agent") or ""
    assert {page.header("User-Agent") or "" for page in pages} == {sent}
    forbidden = urls[1] if name_token(sent) == "figtree" else urls[2]
    assert [url for url, _ in result.refused] == [forbidden]
    assert [verdict.robot for verdict in result.verdicts] == [name_token(sent)]


class Late:
    """A downloader middleware that sets the header after ours has decided."""

    headers: Any = FIGTREE

    def process_request(self, request: Request) -> None:
        request.headers["User-Agent"] = self.headers


@pytest.mark.parametrize(
    ("late", "arguments", "warned"),
    [
        (Late, {}, True),
        (Late, {"settings": {"ROBOTSTXT_USER_AGENT": "figtree"}}, False),
        (Late, {"meta": {"dont_obey_robotstxt": True}}, False),
    ],
)
async def test_warns_of_a_header_that_was_not_decided_by(
    crawl: Crawl, server: Server, late: type[Late], arguments: dict[str, Any], warned: bool
) -> None:
    site = server.site()
    settings = {"DOWNLOADER_MIDDLEWARES": {late: 950}, **arguments.get("settings", {})}
    result = await crawl(urls=site.urls(3), **{**arguments, "settings": settings})
    assert len(result.fetched) == 3
    warnings = [said for said in result.logged(logging.WARNING) if "name token" in said]
    assert len(warnings) == warned


@pytest.mark.promise("docs/settings.md", "USER_AGENT names a page or an address")
@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("FigTree/0.1", ["page"]),
        (FIGTREE, []),
        ("FigTree/0.1 (robot@fict.org)", []),
        # Of these nobody could know that it is a robot: one warning says so.
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/143.0 Safari/537.36", ["name"]),
    ],
)
async def test_warns_once_of_a_header_that_names_no_page(
    crawl: Crawl, server: Server, header: str, said: list[str]
) -> None:
    settings = {"USER_AGENT": header}
    result = await crawl(urls=server.site().urls(3), settings=settings)
    assert len(result.fetched) == 3
    warnings = result.warnings
    told = {"page": "neither a URL nor a mail address", "name": "name token"}
    assert len(warnings) == len(said)
    assert all(told[what] in warning for what, warning in zip(said, warnings, strict=True))
