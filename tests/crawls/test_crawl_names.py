"""Several names in order: the record of the first that has one is obeyed."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl, CrawlResult
from harness.server import Server

NAMES = ["figtree-images", "figtree"]
HEADER = "FigTree-Images/0.1 (+http://fict.org)"
IMAGES = "User-agent: figtree-images\nDisallow: /images\n"
FIGTREE = "User-agent: figtree\nDisallow: /figtree\n"
OTHERS = "User-agent: *\nDisallow: /others\n"
PATHS = ("/images", "/figtree", "/others")
PARSERS = ("KosterRobotParser", "Rfc9309RobotParser", "StrictestRobotParser")


def refused_paths(result: CrawlResult) -> list[str]:
    return ["/" + url.rpartition("/")[2] for url, _ in result.refused]


@pytest.mark.promise("docs/recipes.md", "Several names in order")
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
    assert result.warnings == []


PROTEGO = "scrapy.robotstxt.ProtegoRobotParser"


async def test_a_parser_that_knows_no_records_stops_the_crawl(crawl: Crawl, server: Server) -> None:
    site = server.site()
    settings = {"ROBOTSTXT_USER_AGENT": NAMES, "KOSTER_PARSER": PROTEGO}
    with pytest.raises(ValueError, match="ProtegoRobotParser cannot tell which of the names"):
        await crawl(urls=[site.url("/")], settings=settings)
    assert not site.requests
