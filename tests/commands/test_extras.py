"""The extras of the commands, and the messages if an extra is not installed."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from harness.commands import Ran, Robots
from harness.crawling import Crawl
from harness.server import Server

ROBOTS = b"User-agent: *\nDisallow: /private\n"
INSTALL = 'pip install "scrapy-koster[tools]"'
NEEDED = "needs packages that are not installed"


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> None:
    """A base install: packages of the extras cannot be imported."""
    for module in ("crawleruseragents", "jinja2", "redis", "warcio"):
        monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.parametrize(
    ("command", "feature", "extra"),
    [
        ("report", "report", "tools"),
        ("audit --robots - access.log", "audit", "tools"),
        ("survey urls.txt", "survey", "tools"),
        ("history --archive evidence example.com", "history", "archive"),
        ("explain --archive evidence --at 2100-01-01 http://h/", "explain --at", "archive"),
    ],
)
def test_a_command_names_the_extra_in_one_line(
    base: None, robots: Robots, command: str, feature: str, extra: str
) -> None:
    install = f'pip install "scrapy-koster[{extra}]"'
    said = f"scrapy robots: scrapy robots {feature} {NEEDED}: {install}\n"
    assert robots(*command.split(), stdin=ROBOTS) == Ran(4, "", said)


def test_commands_that_need_no_extra(base: None, robots: Robots) -> None:
    for status, *command in (
        (1, "check", "-"),
        (1, "explain", "--robots", "-", "http://h/private"),
        (0, "cache", "list"),
        (1, "cache", "forget", "h"),
    ):
        ran = robots(*command, stdin=ROBOTS)
        assert ran.status == status, ran
        assert NEEDED not in ran.err


def test_redis_py_is_missing(base: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "scrapy_koster.storage.redis", raising=False)
    with pytest.raises(ImportError, match=r"needs redis-py: pip install 'scrapy-koster\[redis\]'$"):
        import_module("scrapy_koster.storage.redis")


async def test_a_crawl_with_a_report_does_not_start(
    base: None, crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    site = server.site()
    with pytest.raises(ImportError, match=re.escape(f"KOSTER_REPORT {NEEDED}: {INSTALL}")):
        await crawl(urls=site.urls(1), settings={"KOSTER_REPORT": str(tmp_path / "page.html")})
    assert site.requests == ()
