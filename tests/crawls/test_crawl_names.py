"""Several names in order: the record of the first that has one is obeyed."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Reply
from harness.server import Server

NAMES = ["figtree-images", "figtree"]
HEADER = "FigTree-Images/0.1 (+http://fict.org)"
IMAGES = "User-agent: figtree-images\nDisallow: /images\n"
FIGTREE = "User-agent: figtree\nDisallow: /figtree\n"
OTHERS = "User-agent: *\nDisallow: /others\n"
PATHS = ("/images", "/figtree", "/others")
PARSERS = ("KosterRobotParser", "Rfc9309RobotParser", "StrictestRobotParser")


class Named(RecordingSpider):
    robotstxt_user_agent = NAMES


class Custom(RecordingSpider):
    custom_settings = {"ROBOTSTXT_USER_AGENT": NAMES}


def warnings(result: CrawlResult) -> list[str]:
    return result.logged(logging.WARNING, "scrapy_koster")


def refused_paths(result: CrawlResult) -> list[str]:
    return ["/" + url.rpartition("/")[2] for url, _ in result.refused]


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(
    ("robots", "path", "name"),
    [
        (OTHERS + FIGTREE + IMAGES, "/images", "figtree-images"),
        (OTHERS + FIGTREE, "/figtree", "figtree"),
        (OTHERS + IMAGES, "/images", "figtree-images"),
        (OTHERS, "/others", "figtree-images"),
    ],
    ids=["both", "the second", "the first", "none"],
)
async def test_the_first_name_with_a_record(
    crawl: Crawl, server: Server, *, parser: str, robots: str, path: str, name: str
) -> None:
    site = server.site()
    site.robots = robots
    settings: dict[str, Any] = {
        "ROBOTSTXT_USER_AGENT": NAMES,
        "USER_AGENT": HEADER,
        "KOSTER_PARSER": f"scrapy_koster.{parser}",
    }
    result = await crawl(urls=[site.url(each) for each in PATHS], settings=settings)
    assert refused_paths(result) == [path]
    [verdict] = result.verdicts
    assert verdict.robot == name
    assert verdict.names == ("figtree-images", "figtree")
    assert verdict.to_dict()["names"] == NAMES
    assert str(verdict).endswith(f", as {name} of figtree-images, figtree")
    assert warnings(result) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"spider": Named},
        {"spider": Custom},
        {"settings": {"ROBOTSTXT_USER_AGENT": "figtree-images,figtree"}},
        {"settings": {"ROBOTSTXT_USER_AGENT": tuple(NAMES)}},
        {"meta": {"robotstxt_user_agent": NAMES}},
        {"meta": {"robotstxt_user_agent": "figtree-images, figtree"}},
    ],
    ids=["spider", "custom_settings", "commas", "tuple", "meta", "meta with commas"],
)
async def test_where_they_are_named(crawl: Crawl, server: Server, arguments: Any) -> None:
    site = server.site()
    site.robots = OTHERS + FIGTREE
    spider = arguments.pop("spider", RecordingSpider)
    arguments["settings"] = {"USER_AGENT": HEADER, **arguments.get("settings", {})}
    result = await crawl(spider, urls=[site.url(each) for each in PATHS], **arguments)
    assert refused_paths(result) == ["/figtree"]
    assert warnings(result) == []


@pytest.mark.parametrize(
    ("header", "warned"),
    [(HEADER, 0), ("FigTree/1 (+http://fict.org)", 0), ("Other/1 (+http://fict.org)", 1)],
)
async def test_the_header_has_one_of_them(
    crawl: Crawl, server: Server, header: str, warned: int
) -> None:
    site = server.site()
    settings = {"ROBOTSTXT_USER_AGENT": NAMES, "USER_AGENT": header}
    lines = warnings(await crawl(urls=[site.url("/")], settings=settings))
    assert len(lines) == warned
    assert all(
        "are selected by the name token 'figtree-images, figtree', and" in line for line in lines
    )


PROTEGO = "scrapy.robotstxt.ProtegoRobotParser"


async def test_a_parser_that_knows_no_records_stops_the_crawl(crawl: Crawl, server: Server) -> None:
    site = server.site()
    settings = {"ROBOTSTXT_USER_AGENT": NAMES, "KOSTER_PARSER": PROTEGO}
    with pytest.raises(ValueError, match="ProtegoRobotParser cannot tell which of the names"):
        await crawl(urls=[site.url("/")], settings=settings)
    assert not site.requests


async def test_a_request_with_names_that_its_parser_does_not_know_is_not_sent(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    meta = {"robotstxt_user_agent": NAMES}
    result = await crawl(urls=[site.url("/")], settings={"KOSTER_PARSER": PROTEGO}, meta=meta)
    assert site.pages_asked == []
    [(_, error)] = result.refused
    assert isinstance(error, ValueError)
    assert 'meta["robotstxt_user_agent"]' in str(error)


async def test_page_directives_for_each_name(crawl: Crawl, server: Server) -> None:
    site = server.site()
    for path, value in (
        ("/a", "figtree: noindex"),
        ("/b", "figtree-images: noindex"),
        ("/c", "x: none"),
    ):
        site.page(path, Reply(200, "<p>", headers={"X-Robots-Tag": value}))

    class Yielding(RecordingSpider):
        def page(self, response: Any) -> Any:
            yield {"url": response.url}

    settings = {"ROBOTSTXT_USER_AGENT": NAMES, "USER_AGENT": HEADER}
    result = await crawl(
        Yielding, urls=[site.url(p) for p in ("/a", "/b", "/c")], settings=settings
    )
    assert result.items == ({"url": site.url("/c")},)


async def test_in_a_dry_run(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = OTHERS + FIGTREE
    settings = {"ROBOTSTXT_USER_AGENT": NAMES, "USER_AGENT": HEADER, "KOSTER_DRY_RUN": True}
    result = await crawl(urls=[site.url("/figtree")], settings=settings)
    assert result.stats["koster/dry_run/forbidden"] == 1
    [line] = [line for line in result.logged() if "would be forbidden" in line]
    assert line.endswith("as figtree of figtree-images, figtree")
