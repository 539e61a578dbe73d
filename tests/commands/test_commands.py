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
from time import time
from typing import Any

import pytest
from harness import forks
from harness.challenge_pages import ANUBIS
from harness.commands import ROOT, Ran, Robots, Sites
from harness.comparison import HTML
from harness.conformance import CASES, Case
from harness.draft import SECTION_4
from harness.replies import Reply, redirect
from harness.sizes import so_many
from harness.storages import SHARED, Place, place_of

from scrapy_koster.commands.output import takes_colours
from scrapy_koster.protocol.access import Copy, Failure, Known
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.wording import utc
from scrapy_koster.storage.sqlite import SQLiteStorage

HOSTILE = (
    b"User-agent: *\x1b]0;owned\x07\nDisallow: /\x1b[2J\0" + b"x" * 100_000 + b"\n"
    b"User-agent: *\nAllow: /a\x1b[31m\n\x9b\x00 ?\nDisallow: /\xc2\x9b31m\n"
)


FORBIDDEN = "User-agent: *\nDisallow: /\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "robots.txt"
    path.write_text(SECTION_4)
    return path


# check


@pytest.mark.promise("docs/commands.md", "check --json: an object per file")
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


@pytest.mark.promise("docs/commands.md", "check: the first 20 findings of a code; --all")
def test_check_bounds_what_it_lists(robots: Robots) -> None:
    body = b"User-agent: a\n" + b"".join(b"Disallow: /%d*\n" % n for n in range(30))
    few, every = robots("check", "-", stdin=body), robots("check", "--all", "-", stdin=body)
    assert few.out.count("warning K042") == 20
    assert "    10 more K042 are not listed (--all lists them)\n" in few.out
    assert few.out.endswith("-: 30 findings: 30 warnings\n")
    assert every.out.count("warning K042") == 30


@pytest.mark.promise("docs/commands.md", "check --level; exit status 0 or 1")
@pytest.mark.parametrize(
    ("level", "codes"), [("note", ["K050", "K042", "K010"]), ("error", ["K010"])]
)
def test_check_leaves_out_what_is_less_grave(robots: Robots, level: str, codes: list[str]) -> None:
    body = b"User-agent: a\nAllow:\nDisallow: /*\nAllow\n"
    ran = robots("check", "--level", level, "-", stdin=body)
    assert (ran.status, re.findall(r"K\d+", ran.out)) == (1, codes)
    assert robots("check", "--level", level, "-", stdin=body[:20]).status == (level == "note")


# explain


DRAFT_COLUMN = r"(?m)^ {6}> {2}.{8} +(\d+)  "
RFC_9309_COLUMN = r"(?m)^ {2}.{5} {9}> +(\d+)  "
# A download handler may send these URLs in a second spelling, and a crawl decides by both.
AS_SENT: dict[str, tuple[bool, int | None]] = {
    "C4-004": (True, None),  # /s?, without the question mark in a Request
    "C7-006": (False, 2),  # /b/../a/
    "C7-009": (False, 2),  # /./a/
}


def explained(
    robots: Robots, body: bytes, *given: str, **settings: Any
) -> tuple[Ran, dict[str, Any]]:
    """Return the answer as text, and the object of the first URL in the answer as JSON."""
    run = ["explain", "--robots", "-", *given]
    ran = robots(*run, stdin=body, **settings)
    as_json = robots(*run, "--json", stdin=body, **settings)
    assert as_json.status == ran.status
    return ran, as_json.objects[0]


# A sample: tests/protocol has all cases, and the command decides with the same function.
SAMPLE = [case for n, case in enumerate(CASES) if case.id in AS_SENT or n % so_many(16, 1) == 0]


@pytest.mark.promise("docs/commands.md", "explain: the line that decides, by both standards")
@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.id)
def test_explain_agrees_with_the_case(robots: Robots, tmp_path: Path, case: Case) -> None:
    (tmp_path / "a.txt").write_bytes(case.body)
    given = ["--robots", "a.txt", f"--agent={case.agent}", "--", case.url]
    [verdict] = robots("explain", "--json", *given).objects
    allowed, number = AS_SENT.get(case.id, (case.allowed, case.line))
    assert (verdict["allowed"], verdict["line"]) == (allowed, number)
    assert (verdict["draft"]["allowed"], verdict["draft"]["line"]) == (allowed, number)
    rfc9309 = verdict["rfc9309"]
    text = robots("explain", *given)
    assert text.status == (0 if allowed else 1)
    words = {True: "allowed", False: "forbidden"}
    assert text.out.startswith(f"{words[allowed]} ")
    assert f"\n  draft     {words[allowed]}" in text.out
    assert f"\n  RFC 9309  {words[rfc9309['allowed']]}" in text.out
    for column, line in ((DRAFT_COLUMN, number), (RFC_9309_COLUMN, rfc9309["line"])):
        assert re.findall(column, text.out) == ([] if line is None else [str(line)])


GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"


@pytest.mark.promise("docs/commands.md", "--agent: a name, or a whole User-Agent header")
@pytest.mark.promise("docs/commands.md", "explain: the name in your settings")
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


@pytest.mark.promise("docs/commands.md", "explain: sent as")
def test_explain_goes_by_what_may_be_sent(robots: Robots) -> None:
    url, body = "http://h/x/../secret", b"User-agent: *\nDisallow: /secret\n"
    for enabled in ("True", "False"):
        ran, verdict = explained(robots, body, "-s", f"TWISTED_REACTOR_ENABLED={enabled}", url)
        assert (ran.status, ran.out.splitlines()[0]) == (1, f"forbidden {url}")
        assert "\n  sent as   http://h/secret by some download handlers\n" in ran.out
        assert (verdict["line"], verdict["sent_as"]) == (2, "http://h/secret")


@pytest.mark.promise("docs/commands.md", "explain: for several URLs, the highest exit status")
@pytest.mark.promise("docs/commands.md", "explain: a host without a scheme means https")
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


@pytest.mark.promise("docs/commands.md", "explain: hazard")
@pytest.mark.parametrize(
    ("body", "cause", "words"),
    [
        ("User-agent: *\nDisallow: /*.gif", "wildcards", "the rule has a * or $"),
        ("User-agent: *\nAllow: /\nDisallow: /a", "order", "the draft uses the first rule"),
        (
            "User-agent: *\nAllow: /\n\nUser-agent: *\nDisallow: /a",
            "records",
            "the rule is in a later",
        ),
        ("User-agent: *\nSitemap: /s\nUser-agent: b\nDisallow: /a", "agents", "another field"),
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


@pytest.mark.promise("docs/commands.md", "explain: stricter")
@pytest.mark.parametrize("path", ["/a", "/b"])
@pytest.mark.parametrize("parser", ["Koster", "Strictest", "Rfc9309"])
def test_explain_names_a_refusal_that_rfc_9309_allows(
    robots: Robots, parser: str, path: str
) -> None:
    body, settings = b"User-agent: *\nDisallow: /\nAllow: /a\n", {}
    settings["KOSTER_PARSER"] = f"scrapy_koster.{parser}RobotParser"
    ran, row = explained(robots, body, f"http://h{path}", **settings)
    is_stricter = path == "/a" and parser != "Rfc9309"
    assert (row["stricter"], row["rfc9309"]["allowed"]) == (is_stricter, path == "/a")
    assert ('\n  stricter  KOSTER_PARSER = "scrapy_koster.Rfc9309' in ran.out) is is_stricter


@pytest.mark.promise("docs/commands.md", "explain: robot and names")
@pytest.mark.parametrize(("record", "name"), [("b", "b"), ("a", "a"), ("c", "a")])
def test_explain_names_the_name_that_matched(robots: Robots, record: str, name: str) -> None:
    body = f"User-agent: {record}\nDisallow: /x\n\nUser-agent: *\nDisallow: /x\n".encode()
    ran, row = explained(robots, body, "http://h/x", ROBOTSTXT_USER_AGENT="a,b")
    assert ran.status == 1
    assert f"\n  robot     {name}, of a, b\n" in ran.out
    assert (row["robot"], row["names"]) == (name, ["a", "b"])
    assert row["line"] == (5 if record == "c" else 2)


@pytest.mark.promise("docs/commands.md", "explain, survey: your crawl does not obey the rules")
@pytest.mark.parametrize("name", ["ROBOTSTXT_OBEY", "KOSTER_DRY_RUN"])
def test_that_a_crawl_does_not_obey_is_said(robots: Robots, name: str) -> None:
    for value in (True, False):
        ran, _ = explained(robots, FORBIDDEN.encode(), "http://h/x", **{name: value})
        assert (name in ran.err) is (value is (name == "KOSTER_DRY_RUN"))


@pytest.mark.promise("docs/commands.md", "explain: file is HTML, cut or UTF-16")
@pytest.mark.parametrize(
    ("body", "settings", "status", "ground", "file", "said"),
    [
        (HTML.encode(), {}, 0, "rule", "HTML", "an HTML page, and no robots.txt"),
        (HTML.encode(), {"KOSTER_HTML_ROBOTSTXT": "disallow"}, 1, "html", "HTML", ""),
        (ANUBIS.encode(), {}, 3, "unavailable", None, "a challenge page (Anubis)"),
        (ANUBIS.encode(), {"KOSTER_UNAVAILABLE": "allow"}, 0, "unavailable", None, ""),
        (FORBIDDEN.encode("utf-16"), {}, 1, "rule", "UTF-16", "many robots can read no"),
        (FORBIDDEN.encode(), {}, 1, "rule", None, ""),
        (b'10.0.0.1 - - [x] "GET / HTTP/1.1" 200 1', {}, 0, "rule", "text", "such as a log"),
        (FORBIDDEN.encode(), {"KOSTER_MAX_BYTES": 20}, 0, "rule", "cut", "than KOSTER_MAX_BYTES"),
    ],
)
def test_explain_of_a_page_in_place_of_the_file(
    robots: Robots,
    *,
    body: bytes,
    settings: dict[str, str],
    status: int,
    ground: str,
    file: str | None,
    said: str,
) -> None:
    """As a crawl would decide, if the page came in place of the robots.txt."""
    ran, row = explained(robots, body, "http://h/x", **settings)
    assert (ran.status, row["ground"], row["file"]) == (status, ground, file)
    assert row["allowed"] is (status == 0)
    assert said in ran.out
    assert ("\n  file  " in ran.out) is (file is not None)


@pytest.mark.promise("docs/commands.md", "explain: override")
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


@pytest.mark.promise("docs/settings.md", "an override opens a closed site: explain")
@pytest.mark.parametrize("status", [403, 503])
def test_explain_names_an_override_that_opens_a_site(sites: Sites, status: int) -> None:
    site = sites.server.site()
    site.robots = Reply(status)
    entry = {"site": site.url(""), "unavailable": "allow", "reason": "agreed"}
    for until, allowed in (("2999-12-31", True), ("2020-01-01", False)):
        overrides = json.dumps([{**entry, "until": until}])
        ran = sites.run("explain", "--json", site.url("/a"), KOSTER_OVERRIDES=overrides)
        [row] = ran.objects
        assert (row["allowed"], row["override"] is not None, ran.status == 0) == (allowed,) * 3
        assert "draft" not in row


@pytest.mark.promise("docs/commands.md", "explain: because uses your KOSTER_PARSER")
def test_explain_goes_by_the_parser_of_the_settings(robots: Robots) -> None:
    settings = {"KOSTER_PARSER": "scrapy.robotstxt.ProtegoRobotParser"}
    body = b"User-agent: *\nDisallow: /a*b\n"
    ran, verdict = explained(robots, body, "http://h/aXb", **settings)
    assert (verdict["allowed"], verdict["section"]) == (False, "ProtegoRobotParser")
    assert "ProtegoRobotParser" in verdict["because"]
    assert f"because   {verdict['because']}\n" in ran.out


DELAY = b"User-agent: *\nDisallow: /no\nCrawl-delay: 300\nRequest-rate: 1/10\n"
OBEY = {"KOSTER_CRAWL_DELAY": "obey"}
IGNORED = 'ignored; with KOSTER_CRAWL_DELAY = "obey"'


@pytest.mark.promise("docs/commands.md", "explain: delay, its line and its effect")
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


def test_explain_forbids_what_asks_for_too_long_a_delay(robots: Robots) -> None:
    settings = OBEY | {"KOSTER_CRAWL_DELAY": "refuse"}
    ran, slow = explained(robots, DELAY, "http://h/a", "http://h/robots.txt", **settings)
    assert re.findall(r"(?m)^(allowed|forbidden) ", ran.out) == ["forbidden", "allowed"]
    _, ruled = explained(robots, DELAY, "http://h/no", **settings)
    because = "line 3 'Crawl-delay: 300', which is longer than KOSTER_CRAWL_DELAY_MAX_SECS"
    assert (slow["line"], slow["because"]) == (3, because)
    assert (slow["draft"]["allowed"], slow["rfc9309"]["allowed"]) == (True, True)
    assert (ruled["line"], ruled["rule"]) == (2, "Disallow: /no")
    assert ": too long, the site is not visited\n" in ran.out


USAGE = b"User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /b search=y\nLicense: l\n"


@pytest.mark.promise("docs/commands.md", "explain: usage preferences")
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


def test_explain_forbids_what_a_crawl_with_purposes_refuses(robots: Robots) -> None:
    settings = {"KOSTER_USAGE_PURPOSES": ["train-ai"], "KOSTER_USAGE_ACTION": "refuse"}
    urls = ["http://h/a", "http://h/b", "http://h/robots.txt"]
    ran = robots("explain", "--json", "--robots", "-", *urls, stdin=USAGE, **settings)
    assert ran.status == 1
    assert [each["allowed"] for each in ran.objects] == [False, True, True]
    assert (ran.objects[0]["ground"], ran.objects[0]["line"]) == ("usage", 2)
    assert ran.objects[0]["draft"]["allowed"]
    because = "line 2 'Content-Usage: train-ai=n' of robots.txt, which disallows a use in"
    assert ran.objects[0]["because"] == f"{because} KOSTER_USAGE_PURPOSES"


# Sites


@pytest.mark.promise("docs/commands.md", "explain: a fresh copy, or one fetch, which is stored")
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


@pytest.mark.promise("docs/commands.md", "explain --refresh: a failure is not stored")
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


def test_explain_asks_a_site_that_failed_in_an_earlier_run(sites: Sites) -> None:
    site = sites.server.site()
    site.robots, named = "", site_of(site.url())
    assert named is not None
    failure = Failure("HTTP 503", 1, time() - 60, time() - 60, time() + 60, None)
    with closing(SQLiteStorage(str(sites.folder / "robots.sqlite3"), "scrapy")) as storage:
        storage.put(named, failure)
    assert sites.run("explain", site.url("/page")).status == 0
    assert site.asked("/robots.txt") == 1


@pytest.mark.promise("docs/commands.md", "explain: ground; exit status 3")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {},
            {
                404: (0, "unrestricted", "its robots.txt answered 404, which opens the site"),
                403: (1, "restricted", "its robots.txt answered 403, which closes the site"),
                503: (3, "unavailable", "could not be fetched in 1 attempt (HTTP 503)"),
            },
        ),
        (
            {"KOSTER_RESTRICTED": "allow", "KOSTER_UNAVAILABLE": "allow"},
            {
                403: (0, "unrestricted", "which opens the site (KOSTER_RESTRICTED)"),
                503: (0, "unavailable", "could not be fetched in 1 attempt"),
            },
        ),
        (
            {"KOSTER_PARSER": "scrapy_koster.Rfc9309RobotParser"},
            {401: (0, "unrestricted", "answered 401, which opens the site (KOSTER_RESTRICTED)")},
        ),
        (
            {"KOSTER_MISSING": "disallow"},
            {
                404: (1, "missing", "answered 404, which closes the site (KOSTER_MISSING)"),
                200: (1, "missing", "answered 200 without a record, which closes the site"),
            },
        ),
    ],
)
def test_explain_of_sites_without_rules(
    sites: Sites, settings: dict[str, Any], expected: dict[int, tuple[int, str, str]]
) -> None:
    urls = []
    for http in expected:
        site = sites.server.site()
        site.robots = Reply(http)
        urls.append(site.url("/"))
    ran = sites.run("explain", "--json", *urls, **settings)
    assert (ran.status, ran.err) == (max(status for status, _, _ in expected.values()), "")
    for verdict, (http, (status, ground, said)) in zip(ran.objects, expected.items(), strict=True):
        assert (verdict["ground"], verdict["allowed"]) == (ground, status == 0)
        assert verdict["status"] == (None if http == 503 else http)
        assert said in verdict["because"]


@pytest.mark.promise("docs/commands.md", "check URL: the Content-Type")
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


@pytest.mark.promise("docs/commands.md", "the first 100 Sitemap lines")
def test_sitemaps(sites: Sites, robots: Robots) -> None:
    site, hostile, failing = (sites.server.site() for _ in range(3))
    many = "".join(f"Sitemap: /{n}.xml\n" for n in range(200))
    site.robots = f"sitemap : /first.xml # x\nSitemap:\nUser-agent: *\nDisallow:\n{many}"
    hostile.robots = f"Sitemap: http://a/\x1b[2J\u2028{'x' * 5000}\n"
    failing.robots = Reply(503)
    urls = [each.url("/") for each in (site, hostile, failing)]
    said = ["/first.xml", *(f"/{n}.xml" for n in range(99))]
    first, [shown], nothing = (
        verdict["sitemaps"] for verdict in sites.run("explain", "--json", *urls).objects
    )
    assert (first, nothing) == (said, [])
    assert shown.isprintable()
    assert len(shown) == 1000
    stored = {"KOSTER_SQLITE_PATH": str(sites.folder / "robots.sqlite3")}
    assert robots("cache", "show", "--json", urls[0], **stored).objects[0]["sitemaps"] == said
    assert "\n  sitemap       /first.xml\n" in robots("cache", "show", urls[0], **stored).out


@pytest.mark.promise("docs/commands.md", "check URL: the robots.txt of its site; exit status 3")
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
KNOWN: dict[str, Known] = {
    SITE: Copy(f"{SITE}/robots.txt", 200, SECTION_4.encode(), '"1"', "today", NOW, NOW + 9e8),
    "http://a.example:8001": Copy("http://b/robots.txt", 404, b"", None, None, 1e9, 1e9 + 60),
    "http://down.example": Failure("HTTP 503", 2, 1e9, 1e9 + 5, 1e9 + 9, None),
    "http://stale.example": Failure(
        "timeout", 1, 1e9, 1e9, 1e9 + 9,
        Copy("http://stale.example/robots.txt", 200, HOSTILE, None, None, 1e9, 1e9 + 60),
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


@pytest.mark.promise("docs/commands.md", "cache list")
@pytest.mark.promise("docs/commands.md", "cache list --json")
def test_cache_list(robots: Robots, stored: dict[str, Any]) -> None:
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


@pytest.mark.promise("docs/commands.md", "cache show, with the file")
@pytest.mark.promise("docs/commands.md", "cache: a host with a port, and without; exit status 1")
def test_cache_show(robots: Robots, stored: dict[str, Any]) -> None:
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


@pytest.mark.promise("docs/commands.md", "cache forget SITE, --all")
def test_cache_forget(robots: Robots, stored: dict[str, Any], place: Place) -> None:
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


@pytest.mark.promise("docs/commands.md", "cache: exit status 3, the storage failed")
def test_cache_makes_no_file_and_tells_of_one_that_fails(robots: Robots, tmp_path: Path) -> None:
    assert robots("cache", "list") == Ran(0, "nothing is stored\n", "")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "not.sqlite3").write_text("not a database " * 100)
    ran = robots("cache", "list", KOSTER_SQLITE_PATH=str(tmp_path / "not.sqlite3"))
    assert (ran.status, ran.out) == (3, "")
    assert "not.sqlite3' failed" in ran.err
    assert "KOSTER_SQLITE_PATH" in ran.err


# Usage


@pytest.mark.promise("docs/commands.md", "exit status 2 means wrong usage")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "the following arguments are required: check|explain|history|survey|cache|report"),
        (
            "chekc",
            "argument check|explain|history|survey|cache|report|audit: invalid choice: 'chekc'",
        ),
        ("check", "the following arguments are required: FILE|URL|-"),
        ("check nowhere.txt", "cannot read 'nowhere.txt': No such file or directory; give a file"),
        ("check - --what", "not understood: --what; see scrapy robots check -h"),
        ("check - -", "standard input can be read once: give - once"),
        ("check http://a/ http:///x", "no site in the URL 'http:///x'"),
        ("explain", "the following arguments are required: URL"),
        ("explain ftp://fict.org/", "not an http or https URL: 'ftp://fict.org/'; write https://"),
        ("explain www.fict.org:b", "not an http or https URL: 'www.fict.org:b'; write https://"),
        ("explain http://{{host}}/", "no host can have the name in 'http://{{host}}/'"),
        ("explain --robots nowhere.txt http://a/", "cannot read 'nowhere.txt'"),
        ("explain --robots - http://a/ -s KOSTER_MAX_BYTES=0", "KOSTER_MAX_BYTES: '0' is not"),
        ("explain -s NONSENSE http://a/", "Invalid -s value, use -s NAME=VALUE"),
        ("explain http://a/ --robots - --refresh", "give one of --robots, --refresh and --at"),
        ("cache", "the following arguments are required: list|show|forget"),
        ("cache show ftp://a/", "not an http or https URL: 'ftp://a/'"),
        ("cache forget", "give --all, or the sites to forget"),
        ("cache list -s KOSTER_MEMORY_BYTES=x", "Invalid KOSTER_MEMORY_BYTES: 'x' is not a whole"),
    ],
)
def test_wrong_usage(robots: Robots, arguments: str, said: str) -> None:
    ran = robots(*arguments.split())
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err.replace("\n", " ")


@pytest.mark.promise("docs/commands.md", "the exit statuses")
def test_help_tells_the_exit_status(robots: Robots) -> None:
    for verb, statuses in (
        ("check", "0 clean, 1 findings, 2 wrong usage, 3"),
        ("explain", "0 allowed, 1 forbidden, 2 wrong usage, 3"),
        ("cache", "0 done, 1 a site is not stored, 2 wrong usage, 3"),
        ("report", "0 done, 2 wrong usage, 3"),
    ):
        shown = robots(verb, "--help").out.replace("\n", " ")
        assert f"exit status: {statuses}" in shown


@pytest.mark.promise("docs/commands.md", "-s NAME=VALUE and the options of all commands")
def test_settings_are_taken_before_and_behind_the_command(robots: Robots, file: Path) -> None:
    explain = ["explain", "--json", "--robots", file, "http://h/"]
    robot = ["-s", "ROBOTSTXT_USER_AGENT=unhipbot"]
    for command in ([*robot, *explain, "-s", "KOSTER_MAX_BYTES=500", "--nolog"], explain + robot):
        [verdict] = robots(*command).objects
        assert (verdict["robot"], verdict["line"]) == ("unhipbot", 5)


# Colours and escaped text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.promise("docs/commands.md", "NO_COLOR and FORCE_COLOR")
def test_colours() -> None:
    terminal, file = Terminal(), io.StringIO()
    assert takes_colours(terminal, {})
    assert not takes_colours(terminal, {"NO_COLOR": "1", "FORCE_COLOR": "1"})
    assert not takes_colours(file, {})
    assert takes_colours(file, {"FORCE_COLOR": "1"})


COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_colours_change_no_text(
    robots: Robots, stored: dict[str, Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (
        ["check", "-"],
        ["explain", "--robots", file, "http://h/", "http://h/org/"],
        ["cache", "list"],
        ["cache", "show", SITE],
    ):
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        plain = robots(*arguments, stdin=b"Disallow /\nUser-agent:\nAllow:", **stored).out
        monkeypatch.setenv("FORCE_COLOR", "1")
        coloured = robots(*arguments, stdin=b"Disallow /\nUser-agent:\nAllow:", **stored).out
        assert "\x1b" not in plain
        assert "\x1b[" in coloured
        assert COLOUR.sub("", coloured) == plain


NASTY_HOST = "a\u2028b\u202e\x9b31m\x1bc.example"


@pytest.mark.promise("docs/commands.md", "text from the network is escaped and shortened")
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_hostile_text_is_harmless(robots: Robots, place: Place, stored: dict[str, Any]) -> None:
    with closing(place.open("scrapy")) as storage:
        site = site_of(f"http://{NASTY_HOST}/")
        assert site is not None
        storage.put(site, Failure("\x1b[2J", 1, NOW, NOW, NOW, None))
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


@pytest.fixture
def many_stored(tmp_path: Path) -> list[str]:
    """Return a command that writes more than a pipe takes."""
    path = str(tmp_path / "robots.sqlite3")
    with closing(SQLiteStorage(path, "scrapy")) as storage:
        for number in range(3000):
            site = Site("http", f"{number}.example", 80)
            storage.put(site, Failure("HTTP 503", 1, 1e9, 1e9, 1e9, None))
    command = ["-m", "scrapy", "robots", "cache", "forget", "--all"]
    return [*command, "-s", f"KOSTER_SQLITE_PATH={path}"]


@pytest.mark.promise("docs/commands.md", "exit status 4: standard output is full")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_standard_output_that_is_full(tmp_path: Path, many_stored: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        process = forks.start(*many_stored, cwd=tmp_path, stdout=full)
    _, err = process.communicate(timeout=forks.ENDS_SECS)
    assert (process.returncode, "No space left on device" in err) == (4, True)


@pytest.mark.promise("docs/commands.md", "exit status 4: standard output is closed")
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


def test_what_nobody_reads_is_done_all_the_same(tmp_path: Path, many_stored: list[str]) -> None:
    with forks.start(*many_stored, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("forgotten: http://")
        process.stdout.close()
        process.wait(forks.ENDS_SECS)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    with closing(SQLiteStorage(str(tmp_path / "robots.sqlite3"), "scrapy")) as storage:
        assert list(storage.sites()) == []


# docs/commands.md


def blocks(language: str) -> list[str]:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", text)


@pytest.mark.promise("docs/commands.md", "the examples of check, explain and cache")
@pytest.mark.promise("docs/commands.md", "check: a finding has its place, code, section and fix")
def test_the_examples_of_the_documentation(robots: Robots, tmp_path: Path) -> None:
    [file] = blocks("text")
    (tmp_path / "robots.txt").write_text(file)
    example = re.compile(r"(?ms)^\$ scrapy robots (.*?)\n(.*?)^\$ echo \$\?\n(\d)\n")
    examples = [found for block in blocks("console") for found in example.findall(block)]
    assert len(examples) == "\n".join(blocks("console")).count("$ scrapy")
    for command, output, status in examples:
        assert robots(*shlex.split(command)) == Ran(int(status), output, "")


@pytest.mark.promise("docs/commands.md", "the tables of options")
def test_every_option_is_documented(robots: Robots) -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`(--?[a-zA-Z]+)", text))
    options: set[str] = set()
    verbs = ["check", "explain", "history", "survey", "report", "audit"]
    verbs += [f"cache {what}" for what in ("list", "show", "forget")]
    for verb in verbs:
        options.update(re.findall(r"(?<![\w-])--?[a-zA-Z]+", robots(*verb.split(), "-h").out))
    assert options - {"--help", "-h"} <= documented
    assert documented <= options | {"--help", "-h"}


@pytest.mark.promise("docs/commands.md", "explain --json: the keys")
def test_the_keys_of_explain_are_documented(robots: Robots) -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    rows = text.partition("| key in JSON |")[2].partition("\n\n")[0]
    documented = ", ".join(re.findall(r"(?m)^\| ([a-z0-9_, ]+) \|", rows)).split(", ")
    [verdict] = robots("explain", "--json", "--robots", "-", "http://h/", stdin=DELAY).objects
    assert sorted(verdict) == sorted(documented)
