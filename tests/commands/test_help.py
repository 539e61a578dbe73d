"""The help of a command has an example that runs, and a link to an existing page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from harness.archives import attempt, evidence
from harness.audit_logs import BEGAN, FIRST, Hit, written
from harness.commands import ROOT, Robots
from harness.reports import every_kind
from harness.reports import written as report_written
from harness.server import Server

from scrapy_koster.commands.subcommand import DOCS
from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.sqlite import SQLiteStorage

COMMANDS = [
    [], ["check"], ["explain"], ["history"], ["survey"], ["report"], ["audit"],
    ["cache"], ["cache", "list"], ["cache", "show"], ["cache", "forget"],
]  # fmt: skip
STATUSES = {"check": 1, "explain": 1, "audit": 1, "survey": 3}
"""Exit statuses of examples, if not 0. The server of the survey does not answer."""


@pytest.fixture
def folder(tmp_path: Path, server: Server) -> Path:
    """A folder with the files of the examples."""
    robots = b"User-agent: GPTBot\nDisallow: /private\n"
    (tmp_path / "robots.txt").write_bytes(robots)
    (tmp_path / "access.log").write_bytes(written([Hit(BEGAN, "GPTBot/1.2", "/private")]))
    (tmp_path / "urls.txt").write_text(server.down().url("/"))
    stored = tmp_path / ".scrapy" / "koster"
    (stored / "reports").mkdir(parents=True)
    report_written(stored / "reports" / "web-20261121T170000-1.sqlite3", every_kind())
    storage = SQLiteStorage(str(stored / "robots.sqlite3"), "scrapy")
    site = Site("https", "example.com", 443)
    storage.put(
        site, CachedRobots("https://example.com/robots.txt", 200, FIRST, None, None, 0.0, 1e10)
    )
    storage.close()
    archive = evidence(tmp_path / "evidence")
    archive.add(attempt(site))
    archive.close()
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_example_runs_and_the_links_lead_somewhere(
    robots: Robots, in_a_process: Robots, folder: Path, command: list[str]
) -> None:
    shown = robots(*command, "--help").out
    [example] = re.findall(r"(?m)^example:\n  scrapy robots (.*)$", shown)
    words = shlex.split(example)
    assert words[: len(command)] == command
    ran = (in_a_process if command == ["survey"] else robots)(*words)
    assert ran.status == STATUSES.get(words[0], 0), ran.err
    assert ran.out
    assert all((folder / word).exists() for word in words if word.endswith((".html", ".csv")))
    shown = re.sub(r"\n\s*(?=[a-z-]+\.md)", "", shown)
    links = re.findall(re.escape(DOCS) + r"([a-z-]+\.md)(?:#([a-z-]+))?", shown)
    assert links
    for page, anchor in links:
        text = (ROOT / "docs" / page).read_text("utf-8")
        heads = re.findall(r"(?m)^#+ (.*)$", text)
        anchors = [re.sub(r"[^a-z -]", "", head.lower()).replace(" ", "-") for head in heads]
        assert not anchor or anchor in anchors
    assert not re.search(r"(?<!main/)docs/", shown)  # pip installs no docs/
