"""docs/first-crawl.md: the log that it shows is that of a crawl of nine sites, and is enough.

Times are left out, and sites are called by what they answer, not by their ports.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

import pytest
import scrapy
from harness.comparison import HTML, RULES
from harness.crawling import Crawl, CrawlResult
from harness.documents import marked, text
from harness.replies import Handler, Hang, Reply
from harness.server import Server

from scrapy_koster.crawl.config import DEFAULTS

SHOWN = marked(
    text("docs/first-crawl.md"), ("<!-- log -->\n\n```text\n", "```\n\n<!-- /log -->")
).splitlines()
UNREMARKABLE = ("obeyed",)
NOTHING_TO_BE_DONE = ("no-file", "html", "no-such-host")

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


@pytest.mark.skipif(scrapy.version_info < (2, 15), reason="Scrapy 2.14 has other names of errors")
async def test_the_page_has_the_log_of_a_crawl(crawl: Crawl, server: Server) -> None:
    """Two pages of each site are asked for, of which RULES allows one.

    Sites are asked at the same time: in which order they are named is theirs to say.
    """
    origins = {f"http://{NO_HOST}.invalid": NO_HOST}
    for name, answer in ANSWERS.items():
        site = server.site()
        site.robots = answer
        origins[site.url("")] = name
    urls = [f"{origin}{path}" for origin in origins for path in ("/page", "/secret")]
    result = await crawl(urls=urls, settings={**QUICK, "LOG_LEVEL": "INFO"})
    for record in result.log:
        record.msg, record.args = _named(record.getMessage(), origins), ()
    assert sorted(log_of(result)) == sorted(SHOWN)


def test_each_site_that_was_not_simply_obeyed_is_named() -> None:
    for name in SITES:
        lines = [line for line in SHOWN if f"http://{name}.example" in line]
        assert bool(lines) is (name not in UNREMARKABLE), name
        if lines and name not in NOTHING_TO_BE_DONE:
            settings = re.findall(r"KOSTER_\w+", " ".join(lines))
            assert settings, name
            assert set(settings) <= set(DEFAULTS)
