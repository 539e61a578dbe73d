"""`scrapy robots check | explain | cache`, by Scrapy's own way of running commands."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from harness.commands import Ran, Robots, Sites
from harness.documents import blocks, text
from harness.draft import SECTION_4
from harness.replies import Reply, redirect
from harness.storages import SHARED, Place, place_of

from scrapy_koster.commands.output import takes_colours
from scrapy_koster.protocol.access import CachedRobots, CacheEntry, FetchFailure
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.wording import utc

HOSTILE = (
    b"User-agent: *\x1b]0;owned\x07\nDisallow: /\x1b[2J\0" + b"x" * 100_000 + b"\n"
    b"User-agent: *\nAllow: /a\x1b[31m\n\x9b\x00 ?\nDisallow: /\xc2\x9b31m\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "robots.txt"
    path.write_text(SECTION_4)
    return path


# check


def test_check_in_json(robots: Robots, file: Path) -> None:
    ran = robots("check", "--json", file, "-", stdin=b"User-agent: a\nDisallow: /$\n")
    clean, found = ran.objects
    assert (ran.status, clean) == (1, {"name": str(file), "findings": []})
    assert found == {
        "name": "-",
        "findings": [
            {
                "line": 2,
                "column": 12,
                "severity": "warning",
                "code": "K043",
                "message": "'$' is not the end of the path: '/$'; RFC 9309 uses line 2 for '/'",
                "section": "3.2.2, 3.3",
                "points": ["C6"],
                "title": 'The "$" at the end is an ordinary character; for RFC 9309 it ends'
                " the path.",
                "fix": "Keep it for RFC 9309: no line of the draft ends a path.",
                "readings": ["draft"],
                "more": 0,
            }
        ],
    }


def test_check_bounds_what_it_lists(robots: Robots) -> None:
    body = b"User-agent: a\n" + b"".join(b"Disallow: /%d*\n" % n for n in range(30))
    few, every = robots("check", "-", stdin=body), robots("check", "--all", "-", stdin=body)
    assert few.out.count("warning K042") == 20
    assert "    10 more K042 are not listed (--all lists them)\n" in few.out
    assert few.out.endswith("-: 30 findings: 30 warnings\n")
    assert every.out.count("warning K042") == 30


@pytest.mark.parametrize(
    ("level", "codes"), [("note", ["K050", "K042", "K010"]), ("error", ["K010"])]
)
def test_check_leaves_out_what_is_less_grave(robots: Robots, level: str, codes: list[str]) -> None:
    body = b"User-agent: a\nAllow:\nDisallow: /*\nAllow\n"
    ran = robots("check", "--level", level, "-", stdin=body)
    assert (ran.status, re.findall(r"K\d+", ran.out)) == (1, codes)
    assert robots("check", "--level", level, "-", stdin=body[:20]).status == (level == "note")


# explain


def explained(
    robots: Robots, body: bytes, *given: str, **settings: Any
) -> tuple[Ran, dict[str, Any]]:
    """Return the answer as text, and the object of the first URL in the answer as JSON."""
    run = ["explain", "--robots", "-", *given]
    ran = robots(*run, stdin=body, **settings)
    as_json = robots(*run, "--json", stdin=body, **settings)
    assert as_json.status == ran.status
    return ran, as_json.objects[0]


GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"


@pytest.mark.parametrize(
    ("options", "settings", "robot"),
    [
        (["--agent", GPTBOT], {}, "gptbot, from the header"),
        (["--agent", "FigTree"], {}, "figtree"),
        ([], {"USER_AGENT": "FigTree/0.1 (+http://fict.org)"}, "figtree"),
        ([], {"USER_AGENT": "FigTree/0.1", "ROBOTSTXT_USER_AGENT": "Rover"}, "rover"),
        ([], {"DEFAULT_REQUEST_HEADERS": {"User-Agent": "Header/1"}}, "header"),
    ],
)
def test_explain_is_for_the_robot_of_the_option_or_the_settings(
    robots: Robots, options: list[str], settings: dict[str, Any], robot: str
) -> None:
    body = b"User-agent: gptbot\nDisallow: /a\n"
    ran = robots("explain", "--robots", "-", *options, "http://h/a", stdin=body, **settings)
    assert f"\n  robot     {robot}\n" in ran.out
    assert ran.status == (1 if GPTBOT in options else 0)


def test_explain_goes_by_what_may_be_sent(robots: Robots) -> None:
    body = b"User-agent: *\nDisallow: /secret\n"
    ran = robots("explain", "--robots", "-", "http://h/x/../secret", stdin=body)
    assert ran.status == 1
    assert "\n  sent as   http://h/secret by some download handlers\n" in ran.out


def test_explain_of_several_urls_and_of_hosts(robots: Robots, file: Path) -> None:
    given = ("http://www.fict.org/serv", "www.fict.org/orgo.gif", "WWW.fict.org:8080/org/")
    ran = robots("explain", "--json", "--robots", file, *given)
    urls = [given[0], "https://www.fict.org/orgo.gif", "https://www.fict.org:8080/org/"]
    assert [(row["url"], row["allowed"]) for row in ran.objects] == [
        (url, url != urls[1]) for url in urls
    ]
    assert ran.status == 1
    assert ran.err.count(": https is assumed\n") == 2
    assert "www.fict.org/orgo.gif: https is assumed\n" in ran.err
    text = robots("explain", "--robots", file, *given).out
    words = ("allowed", "forbidden", "allowed")
    assert re.findall(r"(?m)^(allowed|forbidden) (\S+)", text) == [*zip(words, urls, strict=True)]


@pytest.mark.parametrize(
    ("body", "cause", "words"),
    [
        ("User-agent: *\nAllow: /\nDisallow: /a", "order", "the draft uses the first rule"),
        ("User-agent: *\nDisallow: /b", None, ""),
    ],
)
def test_explain_names_a_hazard(robots: Robots, body: str, cause: str | None, words: str) -> None:
    """The draft allows the URL, and RFC 9309 forbids the URL."""
    url = "http://h/a/b.gif"
    ran, row = explained(robots, body.encode(), url)
    assert ran.status == 0
    assert (f"\n  hazard    {words}" in ran.out) is (cause is not None)
    assert (f"(cause: {cause})" in ran.out) is (cause is not None)
    assert (row["allowed"], row["hazard"]) == (True, cause)
    assert row["rfc9309"]["allowed"] is (cause is None)
    settings = {"KOSTER_PARSER": "scrapy_koster.StrictestRobotParser"}
    strict, _ = explained(robots, body.encode(), url, **settings)
    assert strict.status == (1 if cause else 0)
    assert "\n  hazard" not in strict.out


@pytest.mark.parametrize("parser", ["Koster", "Rfc9309"])
def test_explain_names_a_refusal_that_rfc_9309_allows(robots: Robots, parser: str) -> None:
    body = b"User-agent: *\nDisallow: /\nAllow: /a\n"
    settings = {"KOSTER_PARSER": f"scrapy_koster.{parser}RobotParser"}
    ran, row = explained(robots, body, "http://h/a", **settings)
    is_stricter = parser == "Koster"
    assert (row["stricter"], row["rfc9309"]["allowed"]) == (is_stricter, True)
    assert ('\n  stricter  KOSTER_PARSER = "scrapy_koster.Rfc9309' in ran.out) is is_stricter


def test_explain_goes_by_the_parser_of_the_settings(robots: Robots) -> None:
    settings = {"KOSTER_PARSER": "scrapy.robotstxt.ProtegoRobotParser"}
    body = b"User-agent: *\nDisallow: /a*b\n"
    ran, verdict = explained(robots, body, "http://h/aXb", **settings)
    assert (verdict["allowed"], verdict["section"]) == (False, "ProtegoRobotParser")
    assert f"because   {verdict['because']}\n" in ran.out


def test_explain_says_that_a_file_looks_like_no_robots_txt(robots: Robots) -> None:
    ran, row = explained(robots, b'10.0.0.1 - - [x] "GET / HTTP/1.1" 200 1', "http://h/x")
    assert (ran.status, row["file"]) == (0, "text")
    assert "such as a log" in ran.out


def test_explain_names_an_override(robots: Robots) -> None:
    body = b"User-agent: *\nDisallow: /a\n"
    entry = {"site": "http://h", "allow": ["/a"], "reason": "agreed", "until": "2999-12-31"}
    why = "your override: agreed, until 2999-12-31; the site's line 2 forbids it"

    url = "http://h/a"
    ran, row = explained(robots, body, url, KOSTER_OVERRIDES=json.dumps([entry]))
    assert ran.status == 0
    assert f"\n  because   {why}\n" in ran.out
    assert "\n  draft     forbidden by line 2 'Disallow: /a' in the group" in ran.out
    assert (row["allowed"], row["ground"], row["because"]) == (True, "override", why)
    assert row["override"] == {"site": "http://h", "reason": "agreed", "until": "2999-12-31"}
    assert row["draft"]["allowed"] is False
    assert row["hazard"] is None
    ran, _ = explained(robots, body, url, KOSTER_OVERRIDES=[entry | {"until": "2020-01-01"}])
    assert ran.status == 1


DELAY = b"User-agent: *\nDisallow: /no\nCrawl-delay: 300\nRequest-rate: 1/10\n"
OBEY = {"KOSTER_CRAWL_DELAY": "obey"}
IGNORED = 'ignored; with KOSTER_CRAWL_DELAY = "obey"'


@pytest.mark.parametrize(
    ("settings", "fate"),
    [
        ({}, f"{IGNORED} 60 s are kept, KOSTER_CRAWL_DELAY_MAX_SECS"),
        (OBEY, "60 s are kept, KOSTER_CRAWL_DELAY_MAX_SECS"),
        (OBEY | {"KOSTER_CRAWL_DELAY_MAX_SECS": 300.0}, "kept"),
    ],
)
def test_explain_names_the_delay(robots: Robots, settings: dict[str, Any], fate: str) -> None:
    ran, verdict = explained(robots, DELAY, "http://h/a", **settings)
    assert ran.status == 0
    assert f"\n  delay     300 s between two visits (line 3): {fate}\n" in ran.out
    assert verdict["crawl_delay"] == {"secs": 300.0, "line": 3, "rule": "Crawl-delay: 300"}
    assert verdict["line"] is None


USAGE = b"User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /b search=y\nLicense: l\n"


def test_explain_shows_what_a_page_may_be_used_for(robots: Robots) -> None:
    ran = robots("explain", "--robots", "-", "http://h/a", stdin=USAGE)
    assert ran.status == 0
    assert (
        "\n  usage     train-ai=n by line 2 'Content-Usage: train-ai=n' of robots.txt"
        "\n            nothing by line 4 'License: l' of robots.txt\n"
    ) in ran.out
    first, second = robots(
        "explain", "--json", "--robots", "-", "http://h/a", "http://h/b", stdin=USAGE
    ).objects
    assert first["usage"]["preferences"] == {"train-ai": "n"}
    assert second["usage"]["preferences"] == {"search": "y"}
    assert [each["line"] for each in second["usage"]["statements"]] == [3, 4]


# Sites


def test_explain_asks_the_site_as_a_crawl_does(sites: Sites) -> None:
    site, down = sites.server.site(), sites.server.down()
    site.robots = SECTION_4
    settings: dict[str, Any] = {"USER_AGENT": "FigTree/0.1", "LOG_STDOUT": True}
    settings["FEEDS"] = {"items.json": {"format": "json"}}
    ran = sites.run("explain", "--json", site.url("/serv"), site.url("/orgo.gif"), **settings)
    assert (ran.status, ran.err) == (1, "")
    assert [(row["allowed"], row["line"]) for row in ran.objects] == [(True, 14), (False, 16)]
    for row in ran.objects:
        assert (row["source"], row["status"]) == ("fetched", 200)
        assert row["robots_url"] == site.url("/robots.txt")
        assert row["fetched"] < row["expires"]
    assert not (sites.folder / "items.json").exists()
    text = sites.run("explain", site.url("/serv"), down.url("/"), **settings)
    assert text.status == 3
    assert "\n  fetched   20" in text.out
    assert ", fresh until 20" in text.out
    assert f"\nunavailable {down.url('/')}\n" in text.out
    assert "\n  retry     not asked again before 20" in text.out
    assert [asked.path for asked in site.requests] == ["/robots.txt"]
    assert site.requests[0].header("User-Agent") == "FigTree/0.1"


def test_explain_asks_again_when_it_is_told_to(sites: Sites) -> None:
    site = sites.server.site()
    site.robots = ["User-agent: *\nDisallow: /", Reply(503), "User-agent: *\nDisallow: /other"]
    url, refresh = site.url("/page"), ("explain", "--refresh", "--json", site.url("/page"))
    assert sites.run(*refresh).status == 1
    assert sites.run(*refresh).status == 3
    [verdict] = sites.run("explain", "--json", url).objects
    assert (verdict["allowed"], verdict["source"]) == (False, "storage")
    [verdict] = sites.run(*refresh).objects
    assert (verdict["allowed"], verdict["source"]) == (True, "fetched")
    assert site.asked("/robots.txt") == 3


@pytest.mark.parametrize(
    ("http", "settings", "status", "ground"),
    [
        (404, {}, 0, "unrestricted"),
        (403, {}, 1, "restricted"),
        (503, {}, 3, "unavailable"),
        (200, {"KOSTER_MISSING": "disallow"}, 1, "missing"),
    ],
)
def test_explain_of_sites_without_rules(
    sites: Sites, http: int, settings: dict[str, Any], status: int, ground: str
) -> None:
    site = sites.server.site()
    site.robots = Reply(http)
    ran = sites.run("explain", "--json", site.url("/"), **settings)
    assert (ran.status, ran.err) == (status, "")
    [verdict] = ran.objects
    assert (verdict["ground"], verdict["allowed"]) == (ground, status == 0)
    assert verdict["status"] == (None if http == 503 else http)


def test_check_tells_how_a_site_serves_its_file(sites: Sites) -> None:
    html, none, plain, moved = (sites.server.site() for _ in range(4))
    rules = "User-agent: *\nDisallow:\n"
    html.robots = Reply(200, rules, headers={"Content-Type": "text/html; charset=utf-8"})
    none.robots = Reply(200, rules)
    plain.robots = Reply(200, rules, headers={"Content-Type": "text/plain; charset=utf-8"})
    moved.robots = redirect(html.url("/robots.txt"))
    urls = [site.url("/") for site in (html, none, plain, moved)]
    for _ in range(2):  # a fresh copy has no Content-Type, so the site is asked again
        ran = sites.run("check", "--json", *urls)
        told = {row["name"]: [f["code"] for f in row["findings"]] for row in ran.objects}
        assert told == dict(zip(urls, (["K007"], ["K007"], [], ["K007"]), strict=True))
        assert (ran.status, ran.err) == (1, "")
    assert plain.asked("/robots.txt") == 2


def test_explain_and_cache_list_the_sitemaps(sites: Sites, robots: Robots) -> None:
    site = sites.server.site()
    site.robots = "sitemap : /first.xml # x\nSitemap:\nUser-agent: *\nSitemap: /2.xml\n"
    said = ["/first.xml", "/2.xml"]
    [verdict] = sites.run("explain", "--json", site.url("/")).objects
    assert verdict["sitemaps"] == said
    stored = {"KOSTER_SQLITE_PATH": str(sites.folder / "robots.sqlite3")}
    show = ["cache", "show", site.url("/")]
    assert robots(*show, "--json", **stored).objects[0]["sitemaps"] == said
    assert "\n  sitemap       /first.xml\n" in robots(*show, **stored).out


def test_check_asks_sites_too(sites: Sites) -> None:
    site, without, closed = (sites.server.site() for _ in range(3))
    down = sites.server.down()
    site.robots = "User-agent: *\nDisallow: /*\n"
    closed.robots = Reply(403)
    urls = [site.url("/page"), without.url("/"), down.url("/"), closed.url("/")]
    ran = sites.run("check", *urls)
    assert ran.status == 3
    assert f"{urls[0]}, line 2, column 12: warning K042 " in ran.out
    assert f"{urls[1]}: HTTP 404: there is no robots.txt" in ran.err
    assert f"{urls[2]}: it cannot be retrieved" in ran.err
    assert f"{urls[3]}: HTTP 403: no file. The draft closes the site, RFC 9309 opens it" in ran.err


def test_a_crawl_that_cannot_start_is_told(sites: Sites) -> None:
    settings = {"DOWNLOADER_MIDDLEWARES": {"no.such.Middleware": 1}, "LOG_LEVEL": "CRITICAL"}
    ran = sites.run("check", "http://127.0.0.1:1/", **settings)
    assert (ran.status, ran.out) == (3, "")
    assert "the crawl ended before robots.txt was fetched" in ran.err


# cache

NOW = 1_800_000_000.0
SITE = "https://www.fict.org"
KNOWN: dict[str, CacheEntry] = {
    SITE: CachedRobots(
        f"{SITE}/robots.txt", 200, SECTION_4.encode(), '"1"', "today", NOW, NOW + 9e8
    ),
    "http://a.example:8001": CachedRobots(
        "http://b/robots.txt", 404, b"", None, None, 1e9, 1e9 + 60
    ),
    "http://down.example": FetchFailure("HTTP 503", 2, 1e9, 1e9 + 5, 1e9 + 9, None),
    "http://stale.example": FetchFailure(
        "timeout", 1, 1e9, 1e9, 1e9 + 9,
        CachedRobots("http://stale.example/robots.txt", 200, HOSTILE, None, None, 1e9, 1e9 + 60),
    ),
}  # fmt: skip


@pytest.fixture(params=SHARED)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request.param, tmp_path)


@pytest.fixture
def stored(place: Place) -> dict[str, Any]:
    with closing(place.open("scrapy")) as storage:
        for url, known in KNOWN.items():
            site = site_of(url)
            assert site is not None
            storage.put(site, known)
    return place.settings()


def test_cache_lists_the_stored_copies(robots: Robots, stored: dict[str, Any]) -> None:
    ran = robots("cache", "list", **stored)
    assert (ran.status, ran.err) == (0, "")
    table = [re.split(r"  +", line) for line in ran.out.splitlines()]
    assert table[0] == ["SITE", "ANSWER", "SIZE", "FETCHED", "FRESH UNTIL", "ROBOT"]
    assert sorted(table[1:]) == [
        ["http://a.example:8001", "HTTP 404", "0", utc(1e9), f"{utc(1e9 + 60)} (stale)", "scrapy"],
        ["http://down.example", "HTTP 503", "-", utc(1e9 + 5), "-", "scrapy"],
        ["http://stale.example", "timeout", "-", utc(1e9), "-", "scrapy"],
        [SITE, "HTTP 200", str(len(SECTION_4)), utc(NOW), utc(NOW + 9e8), "scrapy"],
    ]
    rows = {row["site"]: row for row in robots("cache", "list", "--json", **stored).objects}
    assert set(rows) == set(KNOWN)
    assert rows[SITE] == {
        "site": SITE,
        "url": f"{SITE}/robots.txt",
        "status": 200,
        "size": len(SECTION_4),
        "etag": '"1"',
        "last_modified": "today",
        "fetched": utc(NOW),
        "expires": utc(NOW + 9e8),
        "robot": "scrapy",
    }
    assert rows["http://stale.example"]["stale"] is True
    assert rows["http://down.example"]["reason"] == "HTTP 503"


def test_cache_shows_a_stored_copy(robots: Robots, stored: dict[str, Any]) -> None:
    ran = robots("cache", "show", SITE, **stored)
    assert ran.status == 0
    assert ran.out.startswith(f"  site          {SITE}\n  url           {SITE}/robots.txt\n")
    for line in (
        f"  size          {len(SECTION_4)}",
        '  etag          "1"',
        "  last_modified today",
        f"  expires       {utc(NOW + 9e8)}",
        "  robot         scrapy",
        "        4  User-agent: unhipbot",
    ):
        assert f"\n{line}\n" in ran.out
    [row] = robots("cache", "show", "www.fict.org", "--json", **stored).objects
    assert row["body"] == SECTION_4
    down = robots("cache", "show", "http://down.example/page", **stored)
    assert (down.status, down.out.count("\n")) == (0, 8)
    assert "  attempts      2\n" in down.out
    assert robots("cache", "show", "--json", "down.example", **stored).objects[0]["body"] is None
    stale = robots("cache", "show", "stale.example", **stored)
    assert "  stale         True\n" in stale.out
    assert "Disallow: /\\x1b[2J\\x00xxx" in stale.out
    [elsewhere] = robots("cache", "show", "--json", "A.example", **stored).objects
    assert elsewhere["site"] == "http://a.example:8001"
    assert robots("cache", "show", "a.example:8002", **stored).status == 1
    assert robots("cache", "show", "http://a.example", **stored).status == 1
    empty = robots("cache", "show", "a.example:8001", **stored)
    assert f"  expires       {utc(1e9 + 60)}\n" in empty.out
    assert "etag" not in empty.out


def test_cache_forgets_sites(robots: Robots, stored: dict[str, Any], place: Place) -> None:
    ran = robots("cache", "forget", "www.fict.org", "http://a.example:8001/x", **stored)
    assert ran == Ran(0, f"forgotten: {SITE}\nforgotten: http://a.example:8001\n", "")
    ran = robots("cache", "forget", "www.fict.org", **stored)
    assert ran == Ran(1, "", "scrapy robots: nothing is stored of www.fict.org\n")
    assert robots("cache", "show", "www.fict.org", **stored).status == 1
    assert robots("cache", "forget", "", **stored).status == 2
    with closing(place.open("scrapy")) as storage:  # a crawl stores a host that cannot exist, too
        storage.put(Site("https", "*.example", 443), KNOWN[SITE])
    assert robots("cache", "forget", "--all", **stored).out.count("forgotten") == 3
    assert robots("cache", "list", **stored) == Ran(0, "nothing is stored\n", "")


def test_cache_makes_no_file_and_tells_of_one_that_fails(robots: Robots, tmp_path: Path) -> None:
    assert robots("cache", "list") == Ran(0, "nothing is stored\n", "")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "not.sqlite3").write_text("not a database " * 100)
    ran = robots("cache", "list", KOSTER_SQLITE_PATH=str(tmp_path / "not.sqlite3"))
    assert (ran.status, ran.out) == (3, "")
    assert "not.sqlite3' failed" in ran.err
    assert "KOSTER_SQLITE_PATH" in ran.err


# Usage


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "the following arguments are required: check|explain|history|survey|cache|report"),
        (
            "chekc",
            "argument check|explain|history|survey|cache|report|audit: invalid choice: 'chekc'",
        ),
        ("check nowhere.txt", "cannot read 'nowhere.txt': No such file or directory; give a file"),
        ("check - --what", "not understood: --what; see scrapy robots check -h"),
        ("check - -", "standard input can be read once: give - once"),
        ("check http://a/ http:///x", "no site in the URL 'http:///x'"),
        ("explain ftp://fict.org/", "not an http or https URL: 'ftp://fict.org/'; write https://"),
        ("explain http://{{host}}/", "no host can have the name in 'http://{{host}}/'"),
        ("explain --robots - http://a/ -s KOSTER_MAX_BYTES=0", "KOSTER_MAX_BYTES: '0' is not"),
        ("explain -s NONSENSE http://a/", "Invalid -s value, use -s NAME=VALUE"),
        ("explain http://a/ --robots - --refresh", "give one of --robots, --refresh and --at"),
        ("cache forget", "give --all, or the sites to forget"),
    ],
)
def test_wrong_usage(robots: Robots, arguments: str, said: str) -> None:
    ran = robots(*arguments.split())
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err.replace("\n", " ")


# Colours and escaped text


def test_colours() -> None:
    terminal, file = Mock(isatty=lambda: True), io.StringIO()
    assert takes_colours(terminal, {})
    assert not takes_colours(terminal, {"NO_COLOR": "1", "FORCE_COLOR": "1"})
    assert not takes_colours(file, {})
    assert takes_colours(file, {"FORCE_COLOR": "1"})


NASTY_HOST = "a\u2028b\u202e\x9b31m\x1bc.example"


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_hostile_text_is_harmless(robots: Robots, place: Place, stored: dict[str, Any]) -> None:
    with closing(place.open("scrapy")) as storage:
        site = site_of(f"http://{NASTY_HOST}/")
        assert site is not None
        storage.put(site, FetchFailure("\x1b[2J", 1, NOW, NOW, NOW, None))
    for arguments in (
        ["check", "-"],
        ["explain", "--robots", "-", "http://h/%1b%5b2J%00" + "x" * 100_000, "http://h/a"],
        ["cache", "show", "stale.example"],
        ["cache", "list"],
        ["cache", "show", NASTY_HOST],
        ["cache", "forget", "--all"],
        ["cache", "forget", f"{NASTY_HOST}2"],
        ["cache", "show", f"http://{NASTY_HOST}:x\x1b\u2028/"],
        ["explain", f"http://{NASTY_HOST}:x\u202e/\x1b" + "x" * 100_000],
        ["explain", "--agent", NASTY_HOST, "--robots", "-", f"http://{NASTY_HOST}/"],
        ["check", f"{NASTY_HOST}.txt"],
        ["check", f"--level={NASTY_HOST}", "-"],
        ["check", "-", f"--{NASTY_HOST}"],
        [NASTY_HOST],
    ):
        ran = robots(*arguments, stdin=HOSTILE, **stored)
        assert ran.out.replace("\n", "").isprintable()
        assert ran.err.replace("\n", "").isprintable()
        assert all(len(line) < 1300 for line in ran.out.splitlines())


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_standard_output_or_error_that_is_closed(tmp_path: Path, closed: str) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\n")
    command = "-m scrapy robots explain --json --robots robots.txt example.com/x"
    shell = ["sh", "-c", f"{shlex.quote(sys.executable)} {command} {closed}"]
    run = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=False)
    if closed == ">&-":
        assert run.returncode == 4
        assert "cannot write to standard output: it is closed" in run.stderr
        assert "Traceback" not in run.stderr
    else:
        assert run.returncode == 0
        assert json.loads(run.stdout)["url"] == "https://example.com/x"


# docs/commands.md


PAGE = text("docs/commands.md")


def test_the_examples_of_the_documentation(robots: Robots, tmp_path: Path) -> None:
    [file] = blocks(PAGE, "text")
    (tmp_path / "robots.txt").write_text(file)
    example = re.compile(r"(?ms)^\$ scrapy robots (.*?)\n(.*?)^\$ echo \$\?\n(\d)\n")
    shown = blocks(PAGE, "console")
    examples = [found for block in shown for found in example.findall(block)]
    assert len(examples) == "\n".join(shown).count("$ scrapy")
    for command, output, status in examples:
        assert robots(*shlex.split(command)) == Ran(int(status), output, "")


def test_every_option_is_documented(robots: Robots) -> None:
    documented = set(re.findall(r"`(--?[a-zA-Z]+)", PAGE))
    options: set[str] = set()
    verbs = ["check", "explain", "history", "survey", "report", "audit"]
    verbs += [f"cache {what}" for what in ("list", "show", "forget")]
    for verb in verbs:
        options.update(re.findall(r"(?<![\w-])--?[a-zA-Z]+", robots(*verb.split(), "-h").out))
    assert options - {"--help", "-h"} <= documented
    assert documented <= options | {"--help", "-h"}


def test_the_keys_of_explain_are_documented(robots: Robots) -> None:
    rows = PAGE.partition("| key in JSON |")[2].partition("\n\n")[0]
    documented = ", ".join(re.findall(r"(?m)^\| ([a-z0-9_, ]+) \|", rows)).split(", ")
    [verdict] = robots("explain", "--json", "--robots", "-", "http://h/", stdin=DELAY).objects
    assert sorted(verdict) == sorted(documented)
