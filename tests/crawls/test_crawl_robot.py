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


OTHERS = {"settings": {"USER_AGENT": OTHER}}
WHERE: dict[str, dict[str, Any]] = {
    "USER_AGENT, empty": {"settings": {"USER_AGENT": ""}},
    "default headers": {
        "settings": {"DEFAULT_REQUEST_HEADERS": {"user-agent": FIGTREE, b"USER-AGENT": OTHER}}
    },
    "default header over USER_AGENT": {
        "settings": {"DEFAULT_REQUEST_HEADERS": {"User-Agent": FIGTREE}, "USER_AGENT": OTHER}
    },
    "spider": {**OTHERS, "arguments": {"user_agent": FIGTREE}},
    "request, two": {**OTHERS, "headers": {"User-Agent": [OTHER, FIGTREE.encode()]}},
    "request, none": {**OTHERS, "headers": {"User-Agent": None}},
}
"""The arguments of a crawl, by the place of its header."""


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.filterwarnings("ignore:.*user_agent.*:scrapy.exceptions.ScrapyDeprecationWarning")
async def test_what_decides_is_what_is_sent(crawl: Crawl, server: Server, where: str) -> None:
    site = server.site()
    site.robots = Reply(body=BY_ROBOT)
    urls = [site.url(path) for path in ("/page", "/for/figtree", "/for/others")]
    result = await crawl(urls=urls, **WHERE[where])
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


@pytest.mark.parametrize(("meta", "warned"), [({}, True), ({"dont_obey_robotstxt": True}, False)])
async def test_warns_of_a_header_that_was_not_decided_by(
    crawl: Crawl, server: Server, meta: dict[str, Any], warned: bool
) -> None:
    settings = {"DOWNLOADER_MIDDLEWARES": {Late: 950}}
    result = await crawl(urls=server.site().urls(3), meta=meta, settings=settings)
    assert len(result.fetched) == 3
    warnings = [said for said in result.logged(logging.WARNING) if "cannot recognize" in said]
    assert len(warnings) == warned


async def test_warns_once_of_a_header_that_names_no_page(crawl: Crawl, server: Server) -> None:
    result = await crawl(urls=server.site().urls(3), settings={"USER_AGENT": "FigTree/0.1"})
    [warning] = result.warnings
    assert "Site owners need a way to reach you" in warning


COMPATIBLE = "Mozilla/5.0 (compatible; FigTree/1.0; +http://fict.org)"
CLOSED = "User-agent: *\nDisallow: /\n\nUser-agent: FigTree\nAllow: /\n"


@pytest.mark.parametrize(
    ("settings", "given", "words"),
    [
        ({"USER_AGENT": COMPATIBLE}, {}, f"for 'mozilla', but your requests say '{COMPATIBLE}'"),
        ({"USER_AGENT": FIGTREE}, {"headers": {"User-Agent": COMPATIBLE}}, "for 'mozilla', but"),
        ({"USER_AGENT": OTHER + " (+http://x)"}, {}, None),
    ],
)
async def test_warns_of_a_name_for_which_every_page_is_refused(
    crawl: Crawl, server: Server, settings: dict[str, Any], given: dict[str, Any], words: str | None
) -> None:
    """Nothing is sent, and the name may be why."""
    site = server.site()
    site.robots = CLOSED
    result = await crawl(urls=site.urls(2), settings=settings, **given)
    assert not result.fetched
    assert [words in line for line in result.warnings if words] == ([True] if words else [])
    assert words or not result.warnings


# Several names in order: the record of the first that has one is obeyed.


NAMES = ["figtree-images", "figtree"]
HEADER = "FigTree-Images/0.1 (+http://fict.org)"
FOR_IMAGES = "User-agent: figtree-images\nDisallow: /images\n"
FOR_FIGTREE = "User-agent: figtree\nDisallow: /figtree\n"
FOR_OTHERS = "User-agent: *\nDisallow: /others\n"
PATHS = ("/images", "/figtree", "/others")
FILES = (
    (FOR_OTHERS + FOR_FIGTREE + FOR_IMAGES, "/images", "figtree-images"),
    (FOR_OTHERS + FOR_FIGTREE, "/figtree", "figtree"),
    (FOR_OTHERS + FOR_IMAGES, "/images", "figtree-images"),
    (FOR_OTHERS, "/others", "figtree-images"),
)
"""What the site has: records of both names, of the second, of the first, and of neither."""


@pytest.mark.parametrize("parser", ["KosterRobotParser", "StrictestRobotParser"])
async def test_the_first_name_with_a_record(crawl: Crawl, server: Server, parser: str) -> None:
    sites = [server.site() for _ in FILES]
    for site, (robots, *_) in zip(sites, FILES, strict=True):
        site.robots = robots
    settings: dict[str, Any] = {
        "ROBOTSTXT_USER_AGENT": NAMES,
        "USER_AGENT": HEADER,
        "KOSTER_PARSER": f"scrapy_koster.{parser}",
    }
    urls = [site.url(path) for site in sites for path in PATHS]
    result = await crawl(urls=urls, settings=settings)
    verdicts = {verdict.url: verdict for verdict in result.verdicts}
    assert len(verdicts) == len(result.refused) == len(FILES)
    for site, (_, path, name) in zip(sites, FILES, strict=True):
        verdict = verdicts[site.url(path)]
        assert verdict.robot == name
        assert str(verdict).endswith(f", as {name} of figtree-images, figtree")
    assert result.warnings == []


PROTEGO = "scrapy.robotstxt.ProtegoRobotParser"


async def test_a_parser_that_knows_no_records_stops_the_crawl(crawl: Crawl, server: Server) -> None:
    site = server.site()
    settings = {"ROBOTSTXT_USER_AGENT": NAMES, "KOSTER_PARSER": PROTEGO}
    with pytest.raises(ValueError, match="ProtegoRobotParser cannot tell which of the names"):
        await crawl(urls=[site.url("/")], settings=settings)
    assert not site.requests
