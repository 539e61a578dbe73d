"""A crawl that scrapyd runs: deployed as an egg, scheduled, and run where no scrapy.cfg is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from harness.forks import until
from harness.server import Server

pytest.importorskip("scrapyd", reason="pip install 'scrapyd==1.6.*'")
pytestmark = pytest.mark.long

BOUND_SECS = 40.0
ROOT = Path(__file__).parents[2]
PROJECT = {
    "EGG-INFO/PKG-INFO": "Metadata-Version: 2.1\nName: fict\nVersion: 1\n",
    "EGG-INFO/entry_points.txt": "[scrapy]\nsettings = fict.settings\n",
    "fict/__init__.py": "",
    "fict/settings.py": """
BOT_NAME = "fict"
SPIDER_MODULES = ["fict.spiders"]
ADDONS = {"scrapy_koster.Addon": 500}
TELNETCONSOLE_ENABLED = False
""",
    "fict/spiders/__init__.py": """
from scrapy import Spider


class Web(Spider):
    name = "web"

    def parse(self, response):
        pass

    def __init__(self, urls, **arguments):
        super().__init__(**arguments)
        self.start_urls = urls.split()
""",
}

Api = Callable[..., Any]


@pytest.fixture
def scrapyd(tmp_path: Path, server: Server) -> Iterator[Api]:
    """Calls of the JSON API of a scrapyd that runs in a folder of its own."""
    port = server.down().url().rpartition(":")[2].strip("/")
    (tmp_path / "scrapyd.conf").write_text(
        f"[scrapyd]\nbind_address = 127.0.0.1\nhttp_port = {port}\npoll_interval = 0.2\n"
    )

    def call(name: str, **arguments: Any) -> Any:
        data = urlencode(arguments).encode() if arguments else None
        url = f"http://127.0.0.1:{port}/{name}.json"
        with urllib.request.urlopen(url, data, timeout=BOUND_SECS) as answer:
            return json.load(answer)

    def runs() -> Any:
        with suppress(OSError):
            return call("daemonstatus")

    with (tmp_path / "output").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapyd"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=output,
        )
        try:
            until(runs, BOUND_SECS)
            yield call
        finally:
            process.terminate()
            process.wait(BOUND_SECS)


@pytest.mark.beside("scrapyd")
def test_a_scheduled_crawl_obeys(scrapyd: Api, server: Server, tmp_path: Path) -> None:
    """A project that is deployed as an egg and scheduled obeys, and keeps its copies."""
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /private\n"
    with zipfile.ZipFile(tmp_path / "fict.egg", "w") as egg:
        for name, text in PROJECT.items():
            egg.writestr(name, text)
    deployed = scrapyd(
        "addversion", project="fict", version="1", egg=(tmp_path / "fict.egg").read_bytes()
    )
    assert deployed["spiders"] == 1, deployed
    urls = " ".join([*site.urls(20, "/private/{}"), site.url("/page")])
    scrapyd("schedule", project="fict", spider="web", urls=urls)
    until(lambda: scrapyd("listjobs")["finished"], BOUND_SECS)
    assert site.asked("/robots.txt") == 1
    assert site.pages_asked == ["/page"]
    assert (tmp_path / ".scrapy/koster/robots.sqlite3").exists()
