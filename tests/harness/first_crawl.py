"""A crawl of nine sites, one for each outcome, and the log that docs/first-crawl.md shows of it.

    PYTHONPATH=tests python -m harness.first_crawl

makes the crawl and writes its log into the page. test_first_crawl.py asserts that the page has what
a crawl says. Times are left out, and sites are called by what they answer, not by their ports.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from harness.comparison import HTML, RULES
from harness.crawling import Crawl, CrawlResult
from harness.documents import crawled, marked, write_marked
from harness.replies import Handler, Hang, Reply
from harness.server import Server

PAGE = "docs/first-crawl.md"
LOG = ("<!-- log -->\n\n```text\n", "```\n\n<!-- /log -->")

ANSWERS: Mapping[str, Handler] = {
    "obeyed": RULES,
    "no-file": Reply(404),
    "html": Reply(200, HTML, headers={"Content-Type": "text/html"}),
    "closed-403": Reply(403),
    "failing-503": Reply(503, delay=0.2),  # both of its requests wait by then
    "hanging": Hang(),
    "long": RULES + "# 600 kB\n" * 67_000,
    "two-records": "User-agent: *\nAllow: /\n\nUser-agent: *\nDisallow: /secret\n",
}
NO_HOST = "no-such-host"
SITES = (*ANSWERS, NO_HOST)
QUICK: Mapping[str, Any] = {
    "KOSTER_TIMEOUT_SECS": 1.5,
    "KOSTER_IDLE_LIMIT_SECS": 3,
}
"""So that the crawl takes seconds: all other settings have their defaults."""

LATER = "2026-01-01T13:00:00Z"
FORMAT = "%(levelname)s: %(message)s"
"""LOG_FORMAT of the crawl."""


async def first_crawl(crawl: Crawl, server: Server) -> CrawlResult:
    """Ask for two pages of each site, of which RULES allows one. URLs have the names of sites."""
    origins = {f"http://{NO_HOST}.invalid": NO_HOST}
    for name, answer in ANSWERS.items():
        site = server.site()
        site.robots = answer
        origins[site.url("")] = name
    urls = [f"{origin}{path}" for origin in origins for path in ("/page", "/secret")]
    result = await crawl(urls=urls, settings={**QUICK, "LOG_LEVEL": "INFO"})
    for record in result.log:
        record.msg, record.args = _named(record.getMessage(), origins), ()
    return result


def _named(line: str, origins: Mapping[str, str]) -> str:
    for origin, name in origins.items():
        line = re.sub(rf"{re.escape(origin)}\b", f"http://{name}.example", line)
    return re.sub(r"(?<=\()http[^()]+(?=\))", _sorted, line)  # they were sorted by port


def _sorted(names: re.Match[str]) -> str:
    return ", ".join(sorted(names[0].split(", ")))


def log_of(result: CrawlResult) -> list[str]:
    """The lines of ours at INFO and above, without what differs from crawl to crawl.

    The sites of the page have public names: what is said of a staging site is left out.
    """
    form = logging.Formatter(FORMAT)
    return [
        _timeless(form.format(record))
        for record in result.log
        if record.levelno >= logging.INFO and record.name.startswith("scrapy_koster")
        if not record.getMessage().startswith("Pages of ")
    ]


def _timeless(line: str) -> str:
    line = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", LATER, line)
    line = re.sub(r"(?<=copies in )\S+(?=,)", ".scrapy/koster/robots.sqlite3", line)
    line = re.sub(r"(?<=Next attempt in )\d+ s", "10 s", line)  # chance lengthens it by a quarter
    # Each handler, and each system, has words of its own.
    return re.sub(r"(?<=CannotResolveHostError: ).*?(?=\)(?:\.|,))", "no such host", line)


def shown(page: str) -> list[str]:
    """The log that *page*, of Markdown, has between the marks."""
    return marked(page, LOG).splitlines()


if __name__ == "__main__":
    write_marked(PAGE, LOG, "".join(f"{line}\n" for line in log_of(crawled(first_crawl))))
