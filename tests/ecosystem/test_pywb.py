"""pywb, as archives of the web are shown: the archive of a crawl, with its index and with ours."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.request import urlopen

import pytest
from harness.archives import BODY, attempt, evidence
from harness.crawling import Crawl
from harness.server import Server

from ecosystem.obeying import RULES
from ecosystem.running import need, run, running
from scrapy_koster.protocol.site import Site

WWW = Site("http", "www.fict.org", 80)


@pytest.mark.parametrize("index", ["its own", "ours"])
async def test_pywb_replays_the_robots_txt(
    index: str, crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    install = "pip install pywb 'setuptools<81', in an environment of its own"
    manager, wayback = need("wb-manager", install), need("wayback", install)
    site, free = server.site(), server.down()
    site.robots = RULES
    await crawl(urls=[site.url("/")], settings={"KOSTER_ARCHIVE": str(tmp_path / "evidence")})
    other = evidence(tmp_path / "evidence")
    other.add(attempt(WWW))
    other.close()
    run(manager, "init", "robots", cwd=tmp_path)
    files = [*(tmp_path / "evidence").iterdir()]
    warcs = [file for file in files if file.name.endswith(".warc.gz")]
    assert (len(files), len(warcs)) == (4, 2)
    if index == "ours":
        for file in files:
            folder = "archive" if file in warcs else "indexes"
            shutil.copy(file, tmp_path / "collections/robots" / folder)
    else:
        run(manager, "add", "robots", *map(str, warcs), cwd=tmp_path)
    with running([wayback, "-b", "127.0.0.1", "-p", str(free.port)], tmp_path, free.port):
        for url, body in (
            (site.url("/robots.txt"), RULES.encode()),
            (WWW.robots_url, BODY),
            ("http://fict.org/robots.txt", BODY),  # for pywb, www.fict.org is the same
        ):
            with urlopen(free.url(f"/robots/mp_/{url}"), timeout=20) as answer:
                assert (answer.status, answer.read()) == (200, body)
                assert answer.headers.get_content_type() == "text/plain"
