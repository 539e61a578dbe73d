"""Several names in order: the record of the first that has one is obeyed."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl
from harness.server import Server

NAMES = ["figtree-images", "figtree"]
HEADER = "FigTree-Images/0.1 (+http://fict.org)"
IMAGES = "User-agent: figtree-images\nDisallow: /images\n"
FIGTREE = "User-agent: figtree\nDisallow: /figtree\n"
OTHERS = "User-agent: *\nDisallow: /others\n"
PATHS = ("/images", "/figtree", "/others")
FILES = (
    (OTHERS + FIGTREE + IMAGES, "/images", "figtree-images"),
    (OTHERS + FIGTREE, "/figtree", "figtree"),
    (OTHERS + IMAGES, "/images", "figtree-images"),
    (OTHERS, "/others", "figtree-images"),
)
"""What the site has: records of both names, of the second, of the first, and of neither."""


@pytest.mark.promise("docs/recipes.md", "Several names in order")
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
