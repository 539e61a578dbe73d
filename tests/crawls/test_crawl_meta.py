"""A crawl of a site whose pages have directives: exactly what they allow comes out."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import urlsplit

from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.server import Server
from scrapy.http import Response

ENABLED = {
    "SPIDER_MIDDLEWARES": {"scrapy_koster.RobotsMetaMiddleware": 100},
    "USER_AGENT": "FigTree/0.1",
}
META = '<html><head><meta name="%s" content="%s"></head><body>x</body></html>'
HTML = {"Content-Type": "text/html"}
ITEMS, LINKS = "items", "links"

PAGES = {
    "/plain": (Reply(body="<p>x", headers=HTML), {ITEMS, LINKS}),
    "/none": (Reply(body=META % ("robots", "none"), headers=HTML), set()),
    "/named": (Reply(body=META % ("figtree", "nofollow"), headers=HTML), {ITEMS}),
    "/another": (Reply(body=META % ("webcrawler", "none"), headers=HTML), {ITEMS, LINKS}),
    "/frames": (
        Reply(body=META.replace("body", "frameset") % ("robots", "nofollow"), headers=HTML),
        {ITEMS},
    ),
    "/header": (Reply(body="<p>x", headers={**HTML, "X-Robots-Tag": "noindex"}), {LINKS}),
    "/robots-tag": (
        Reply(body="<p>x", headers={**HTML, "Robots-Tag": "*;nosnippet, FigTree;nofollow"}),
        {ITEMS},
    ),
    "/file.pdf": (
        Reply(body=b"%PDF", headers={"Content-Type": "application/pdf", "X-Robots-Tag": "none"}),
        set(),
    ),
}
"""Each page of the site, and what may come of it."""


class Pages(RecordingSpider):
    """Of each page two items, with a link to a further page between them."""

    directives: Any = None

    def page(self, response: Response) -> Any:
        path = urlsplit(response.url).path
        if path == "/none":
            self.directives = response.meta["koster_page_directives"]
        if path.endswith("/next"):
            return
        yield {"item": 1, "page": path}
        yield self.ask(response.url + "/next")
        yield {"item": 2, "page": path}


def paths(result: Any) -> set[str]:
    return {urlsplit(url).path for url in result.fetched}


def links(kind: str) -> list[str]:
    return [path for path, (_, allowed) in PAGES.items() if kind in allowed]


def counted(result: Any) -> dict[str, int]:
    return {name: n for name, n in result.stats.items() if name.startswith("koster/meta/")}


async def test_exactly_what_is_allowed_comes_out(crawl: Crawl, server: Server) -> None:
    site = server.site()
    for path, (reply, _) in PAGES.items():
        site.page(path, reply)
    result = await crawl(Pages, urls=[site.url(path) for path in PAGES], settings=ENABLED)
    assert paths(result) == {*PAGES, *(f"{path}/next" for path in links(LINKS))}
    assert {request.path for request in site.requests} == {"/robots.txt", *paths(result)}
    assert vars(result.crawler.spider)["directives"] == ["noindex", "nofollow"]
    for path in PAGES:
        of_page = [item["item"] for item in result.items if item["page"] == path]
        assert of_page == ([1, 2] if path in links(ITEMS) else [])
    assert counted(result) == {
        "koster/meta/noindex": 2 * (len(PAGES) - len(links(ITEMS))),
        "koster/meta/nofollow": len(PAGES) - len(links(LINKS)),
    }
    told = result.logged(logging.INFO, "scrapy_koster.crawl.components.spidermiddleware")
    assert told[-1].startswith("Dropped because their pages say so: nofollow: 5, noindex: 6.")
