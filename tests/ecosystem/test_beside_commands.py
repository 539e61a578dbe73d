"""The commands of Scrapy that fetch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness.replies import Reply
from harness.server import Server

from ecosystem.obeying import RULES, check_fetched

PROJECT = """
from scrapy import Spider

ADDONS = {"scrapy_koster.Addon": 500}
SPIDER_MODULES = ["project"]
TELNETCONSOLE_ENABLED = False


class Web(Spider):
    name = "web"
    start_urls = %r

    def parse(self, response):
        '''
        @url %s
        @returns items 1 1
        '''
        return {"url": response.url}
"""


class Project:
    """A project of one spider, and a site of which a part is forbidden."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder
        self.site = server.site()
        self.site.robots = RULES
        self.site.pages(Reply(200, "a page", headers={"Content-Type": "text/html"}))

    def scrapy(self, *arguments: str, path: str = "/open") -> subprocess.CompletedProcess[str]:
        url = self.site.url(path)
        (self.folder / "project.py").write_text(PROJECT % ([url], url))
        environ = {"SCRAPY_SETTINGS_MODULE": "project", "PYTHONPATH": str(self.folder)}
        ran = subprocess.run(
            [sys.executable, "-m", "scrapy", *(each.format(url) for each in arguments)],
            cwd=self.folder,
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert not re.search(r"\[scrapy_koster\S*\] (WARNING|ERROR)", ran.stderr), ran.stderr
        return ran

    def obeys(self, *arguments: str, said: str) -> None:
        """It fetches and says what is allowed, and of what is forbidden neither."""
        ran = self.scrapy(*arguments)
        assert said in ran.stdout + ran.stderr
        refused = self.scrapy(*arguments, path="/private/page")
        assert said not in refused.stdout + refused.stderr
        assert "forbidden by " in refused.stderr
        check_fetched(self.site, "/open")


@pytest.fixture
def project(tmp_path: Path, server: Server) -> Project:
    return Project(tmp_path, server)


@pytest.mark.beside("Scrapy", "fetch, parse, shell")
def test_commands_for_one_page(project: Project) -> None:
    """A forbidden page is neither fetched nor printed; the log names the line."""
    project.obeys("fetch", "{}", said="a page")
    project.obeys("shell", "{}", "-c", "'got ' + response.text", said="got a page")
    project.obeys("parse", "--spider=web", "{}", said="'url': 'http")


@pytest.mark.beside("Scrapy", "check")
def test_check(project: Project) -> None:
    """A contract whose page is forbidden does not fetch it."""
    ran = project.scrapy("check")
    assert "Ran 1 contract" in ran.stderr
    assert "OK" in ran.stderr
    project.scrapy("check", path="/private/page")
    check_fetched(project.site, "/open")
