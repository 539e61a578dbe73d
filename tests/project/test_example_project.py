"""The example project: its demo prints the draft's matrix, and each of its spiders runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import forks
from harness.draft import COLUMNS, MATRIX
from harness.redis_server import need_redis
from harness.replies import Reply
from harness.server import Server

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "example_project"


def run(*command: object) -> subprocess.CompletedProcess[str]:
    """Run a Python with the project as its working directory."""
    return forks.run([sys.executable, *command], cwd=PROJECT, text=True)


def crawl(tmp_path: Path, spider: str, *options: str) -> tuple[list[Any], str]:
    """Return the items and the log of a crawl from the command line."""
    items = tmp_path / "items.json"
    storage = f"KOSTER_SQLITE_PATH={tmp_path / 'robots.sqlite3'}"
    ran = run("-m", "scrapy", "crawl", spider, "-s", storage, "-O", items, *options)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr, ran.stderr
    return json.loads(items.read_text()), ran.stderr


# The demo.


@pytest.fixture(scope="module")
def demo() -> subprocess.CompletedProcess[str]:
    before = files()
    ran = run("demo.py")
    assert files() == before  # no storage that grows with each run
    return ran


def files() -> set[Path]:
    found = {path for path in PROJECT.rglob("*") if path.suffix != ".pyc" and path.is_file()}
    # Of each crawl there is one.
    return {path for path in found if path.parent.name not in ("reports", "evidence")}


def table(printed: str, first: str) -> dict[str, list[str]]:
    """The table whose head begins with *first*: row -> cells."""
    lines = printed.splitlines()
    start = next(n for n, line in enumerate(lines) if line.split()[:1] == [first])
    rows = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        rows.append(re.split(r"\s{2,}", line.strip()))
    return {name: cells for name, *cells in rows}


def test_the_demo_prints_the_matrix_of_the_draft(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert demo.stderr == ""
    head = next(line for line in demo.stdout.splitlines() if line.split()[:1] == ["unhipbot"])
    assert head.split() == list(COLUMNS)
    printed = {
        url: re.findall(r"\b(Yes|No)\b", " ".join(cells))
        for url, cells in table(demo.stdout, "unhipbot").items()
    }
    assert printed == {
        url: [words[column] for column in COLUMNS.values()] for url, words in MATRIX.items()
    }


def test_the_demo_leaves_an_archive_and_shows_what_is_in_it(
    demo: subprocess.CompletedProcess[str],
) -> None:
    shown = demo.stdout.partition("$ scrapy robots explain --at ")[2]
    assert "forbidden http://127.0.0.1" in shown
    assert "'Disallow: /org/plans.html'" in shown
    [digest] = re.findall(r"  digest    (sha256:[0-9a-f]{64})$", shown, re.MULTILINE)
    [index] = re.findall(r"  archive   (.*)\.warc\.gz$", shown, re.MULTILINE)
    assert digest in (PROJECT / f"{index}.cdxj").read_text()


def test_the_demo_shows_what_is_dropped(demo: subprocess.CompletedProcess[str]) -> None:
    used = demo.stdout.partition("What was kept, dropped and refused")[2]
    printed = {path: cells[1] for path, cells in table(used, "The").items()}
    assert sorted(printed.values()) == ["dropped"] * 3 + ["kept"] * 4 + ["refused"] * 2
    counts = ("meta/noindex", 4), ("meta/nofollow", 3), ("usage/dropped", 3), ("usage/refused", 1)
    for stat, count in counts:
        assert re.search(rf"koster/{stat} +{count}$", demo.stdout, re.MULTILINE)


# The spiders.


def test_the_log_of_the_site_is_audited(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    for spider in ("figtree", "rude"):
        crawl(tmp_path, spider, "-s", f"FICT_LOG={log}")
    ran = run("-m", "scrapy", "robots", "audit", "--robots", "robots.txt", "--json", log)
    assert ran.returncode == 1, ran.stderr
    found = {robot["name"]: robot for robot in json.loads(ran.stdout)["robots"]}
    assert {name: robot["violations"] for name, robot in found.items()} == {
        "figtree": 0,
        "rudebot": sum(words[COLUMNS["figtree"]] == "No" for words in MATRIX.values()),
    }


def test_the_audit_of_the_example_is_that_of_the_docs() -> None:
    shown = (ROOT / "docs" / "audit.md").read_text().partition("```console\n")[2]
    ran = run("-m", "scrapy", "robots", "audit", "--robots", "robots.txt", "access.log")
    command, _, rest = shown.partition("\n")
    assert command == "$ scrapy robots audit --robots robots.txt access.log"
    assert rest.startswith(f"{ran.stdout}$ echo $?\n{ran.returncode}\n```\n")


HTML = {"Content-Type": "text/html"}


def test_the_web_spider(tmp_path: Path, server: Server) -> None:
    site, elsewhere = server.site(), server.site()
    site.robots = "User-agent: *\nDisallow: /private\n"
    links = ["/a", "/missing", "/private/x", "/image.gif", elsewhere.url("/"), "mailto:a@b"]
    site.page("/", Reply(302, headers={"Location": "/start"}))
    body = "<title> Start </title>" + "".join(f'<a href="{link}">.</a>' for link in links)
    site.page("/start", Reply(200, body, headers=HTML))
    site.page("/missing", Reply(404, "<title>Not here</title>", headers=HTML))
    items, log = crawl(tmp_path, "web", "-a", f"url={site.url('/')}", "-s", "DOWNLOAD_DELAY=0")
    assert sorted((item["url"], item["status"], item["title"]) for item in items) == [
        (site.url("/a"), 200, "/a"),
        (site.url("/missing"), 404, "Not here"),
        (site.url("/start"), 200, "Start"),
    ]
    assert elsewhere.requests == ()
    assert re.search(
        rf"Refused by robots.txt: 1\n  {re.escape(site.url('/private/x'))}\n    forbidden by"
        rf" {re.escape(site.url('/robots.txt'))}: line 2 'Disallow: /private' ",
        log,
    )


@pytest.mark.long
def test_the_demo_of_a_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOSTER_REDIS_SERVER", need_redis())
    ran = run("demo_fleet.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    shown = dict(re.findall(r"^  (\S.*?)  +(\d+)$", ran.stdout, re.MULTILINE))
    assert int(shown.pop("requests that waited in Redis")) > 0
    assert shown == {
        "workers, of which one was killed": "4",
        "robots.txt fetches a site (of those that did not fail)": "1",
        "pages": "400",
        "pages lost": "0",
        "pages fetched twice": "0",
        "forbidden pages fetched": "0",
    }
