"""`scrapy robots history` and `explain --at`, on the archives of crawls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.archives import check
from harness.clocks import JumpingClock
from harness.commands import Robots
from harness.comparison import RULES
from harness.crawling import Crawl
from harness.replies import Raw, Reply, Reset, redirect
from harness.server import Server
from harness.sizes import so_many
from harness.virtual import time

from scrapy_koster.protocol.wording import utc

SITES = so_many(20, 300)
WEEK = 604_800
VERSIONS = [
    "User-agent: *\nDisallow: /a\n",
    "User-agent: *\nDisallow: /b\n",
    "User-agent: *\nDisallow: /a\nDisallow: /b\n",
    "User-agent: *\nDisallow:\n",
]
WILD = "User-agent: *\nDisallow: /*secret\n"
PAGE = "<!DOCTYPE html><html><title>Welcome</title></html>"
KINDS: list[Any] = [
    RULES,
    WILD,
    Reply(404, "<html>none"),
    Reply(403),
    Reply(503, "later"),
    Reset(),
    PAGE,
    "no record at all",
    redirect("/moved"),
    redirect("/round"),
    Raw(200, b"HTTP/1.1 200 OK\r\nContent-Encoding: what\r\nContent-Length: 1\r\n\r\nx"),
    "\ufeffUser-agent: *\nDisallow: /secret",
    Reply(200, RULES.encode("utf-16")),
]


@pytest.fixture
def folder(crawl: Crawl) -> Path:
    folder = crawl.folder / "evidence"
    crawl.always |= {"KOSTER_ARCHIVE": str(folder)}
    return folder


async def test_explain_gives_each_verdict_of_a_crawl_of_sites_of_every_kind(
    crawl: Crawl, server: Server, folder: Path, robots: Robots
) -> None:
    """The lines and the digests are equal for every URL, including the pages in the log."""
    sites = [server.site() for _ in range(SITES)]
    for number, site in enumerate(sites):
        site.robots = KINDS[number % len(KINDS)]
        site.page("/moved", Reply(200, RULES))
        site.page("/round", redirect("/robots.txt"))
    urls = [site.url(path) for site in sites for path in ("/page", "/secret")]
    settings = {
        "KOSTER_MAX_BYTES": 20_000,
        "KOSTER_TIMEOUT_SECS": 5,
        "KOSTER_DEFER_LIMIT_SECS": 1,
        "KOSTER_IDLE_LIMIT_SECS": 1,
        "KOSTER_PARSER": "scrapy_koster.StrictestRobotParser",
        "KOSTER_MISSING": "disallow",
        "ROBOTSTXT_USER_AGENT": "figtree",
        "KOSTER_OVERRIDES": [
            {"site": each.url(""), "unavailable": "allow", "reason": "so", "until": "2999-12-31"}
            for each in sites[SITES // 2 :]
        ],
    }
    result = await crawl(urls=urls, settings=settings)
    assert len(result.fetched) + len(result.refused) == len(urls)
    ran = robots("explain", "--at", _now(), "--archive", folder, "--json", *urls)
    then = {told["url"]: told for told in ran.objects}
    assert len(then) == len(urls)
    pages = {site.url(path) for site in sites for path in site.pages_asked} - {
        site.url(path) for site in sites for path in ("/moved", "/round")
    }
    assert {url for url, told in then.items() if told["allowed"]} == pages == {*result.fetched}
    compared = ("line", "digest", "record_id", "status", "ground", "because", "section", "robot")
    for verdict in result.verdicts:
        now, was = verdict.to_dict(), then[verdict.url]
        if now["ground"] == "unavailable":
            # A crawl appends the reason for the end of the wait.
            assert now["reason"].startswith(was["reason"])
            continue
        assert {name: was[name] for name in compared} == {name: now[name] for name in compared}
    assert {told["ground"] for told in then.values()} == {
        "rule", "restricted", "missing", "unavailable", "override",
    }  # fmt: skip
    check(folder)


def _now() -> str:
    return utc(time.time() + 5)


async def test_four_versions(crawl: Crawl, server: Server, folder: Path, robots: Robots) -> None:
    """Each is crawled two times, and the copy of the first crawl has expired in the second."""
    site, clock, days = server.site(), JumpingClock(), []
    crawl.clock = clock
    for version in VERSIONS:
        site.robots = Reply(200, version, headers={"ETag": f'"{len(version)}"'})
        days.append(clock.epoch())
        for _ in range(2):
            await crawl(urls=[site.url("/a"), site.url("/b")])
            clock.ahead += WEEK + 60
    ran = robots("history", site.url(""), "--archive", folder, "--json", "--diff")
    assert ran.status == 0, ran.err
    assert [told["seen"] for told in ran.objects] == [2] * 4
    assert [told["bytes"] for told in ran.objects] == [len(version) for version in VERSIONS]
    for day, told in zip(days, ran.objects, strict=True):
        assert utc(day) <= told["first_seen"] <= utc(day + 30)
        assert utc(day + WEEK + 60) <= told["last_seen"] <= utc(day + WEEK + 90)
    assert ran.objects[2]["changes"] == [{"added": 2, "text": "Disallow: /a"}]
    explain = ["explain", "--archive", folder, "--at"]
    for day, version in zip(days, VERSIONS, strict=True):
        for later in (30, 2 * WEEK):
            urls = [site.url("/a"), site.url("/b")]
            verdicts = robots(*explain, utc(day + later), "--json", *urls).objects
            assert [each["allowed"] for each in verdicts] == [
                f"Disallow: {path}\n" not in version for path in ("/a", "/b")
            ]
            assert [each["is_current"] for each in verdicts] == [True, True]
    lines = robots("history", site.url(""), "--archive", folder, "--diff").out.splitlines()
    assert lines[0] == site.url("").rstrip("/")
    assert lines[1].split() == ["FIRST", "SEEN", "LAST", "SEEN", "SEEN", "HTTP", "BYTES", "DIGEST"]
    assert [line for line in lines if line.startswith(("+ ", "- "))] == [
        "-     2  Disallow: /a", "+     2  Disallow: /b",
        "+     2  Disallow: /a",
        "-     2  Disallow: /a", "-     3  Disallow: /b", "+     2  Disallow:",
    ]  # fmt: skip
    ran = robots(*explain, utc(days[0] + 2), site.url("/a"))
    assert ran.status == 1
    assert all(said in ran.out for said in ("forbidden", "sha256:", "<urn:uuid:"))
    expired = robots(*explain, utc(days[3] + 9 * WEEK), site.url("/"))
    assert (expired.status, "expired by then" in expired.out) == (0, True)


async def test_a_site_that_fails_and_what_the_archive_does_not_have(
    crawl: Crawl, server: Server, folder: Path, robots: Robots
) -> None:
    site = server.site()
    site.robots = Reply(503)
    await crawl(urls=[site.url("/")], settings={"KOSTER_DEFER_LIMIT_SECS": 0})
    ran = robots("history", site.url(""), "--archive", folder)
    assert "failures: 1, the last at" in ran.out
    assert "HTTP 503" in ran.out
    ran = robots("explain", "--at", _now(), "--archive", folder, site.url("/"))
    assert (ran.status, "HTTP 503" in ran.out) == (3, True)
    assert "expired by then" not in ran.out
    ran = robots("history", "other.example", "--archive", folder)
    assert (ran.status, "nothing about other.example" in ran.err) == (1, True)
    early = ("explain", "--at", "1999-01-01T00:00:00+02:00", "--archive", folder)
    ran = robots(*early, site.url("/"))
    assert (ran.status, "nothing about its site by then" in ran.err) == (3, True)


def test_without_an_archive(robots: Robots, tmp_path: Path) -> None:
    for arguments in (("history", "h.example"), ("explain", "--at", "2026-11-01", "http://h/")):
        ran = robots(*arguments)
        assert ran.status == 2
        assert "set KOSTER_ARCHIVE" in ran.err
        ran = robots(*arguments, "--archive", tmp_path)
        assert ran.status == 3
        assert "A crawl writes one" in ran.err
