"""`scrapy robots audit`: table, JSON, page and exit status; audits of the logs of crawls."""

from __future__ import annotations

import gzip
import json
import re
import signal
from pathlib import Path

import pytest
from harness import forks
from harness.audit_logs import BEGAN, FIRST, SECOND, Hit, written
from harness.commands import ROOT, Robots
from harness.reports import data_in

RUDE = "rudebot/1.0"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "robots.txt").write_bytes(FIRST)
    (tmp_path / "new.txt").write_bytes(SECOND)
    hits = [
        Hit(BEGAN + n, RUDE, f"/private/{n}?\x1b[2J<script>", client="192.0.2.77") for n in range(3)
    ]
    (tmp_path / "page.html").write_text("<!DOCTYPE html><title>Not found</title>\n")
    (tmp_path / "log.gz").write_bytes(gzip.compress(written(hits)))
    path = tmp_path / "access.log"
    path.write_bytes(written(hits) + b"\x1b]0;owned\x07\n</script><script>alert(1)</script>\n")
    return path


def test_the_table_names_robots_and_the_lines_they_disobeyed(robots: Robots, log: Path) -> None:
    ran = robots("audit", "--robots", "robots.txt", log)
    assert (ran.status, ran.err) == (1, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert ran.out.splitlines()[0] == "1 other robot came, 1 disobeyed"
    assert lines[3][:11] == ["rudebot", "other", "3", "0", "3", "0", "0", "1", "s", "3", "never"]
    assert "never fetched robots.txt, kept Crawl-delay 10 in 0% of gaps" in ran.out
    assert lines[6][:5] == ["3", "rudebot", "7", "Disallow:", "/private/"]
    assert "2 of them could not be read" in ran.out
    assert "\\x1b]0;owned\\x07" in ran.out
    assert "\x1b" not in ran.out
    assert "192.0.2.77" not in ran.out


def test_json_has_the_shape_that_is_promised(robots: Robots, log: Path) -> None:
    ran = robots("audit", "--robots", "robots.txt", "--json", log)
    [found] = ran.objects
    assert ran.status == 1
    assert (found["lines"], found["unread"]) == (5, 2)
    [robot] = found["robots"]
    assert {key: robot[key] for key in ("name", "requests", "robots_txt_requests")} == {
        "name": "rudebot", "requests": 3, "robots_txt_requests": 0,
    }  # fmt: skip
    [violation] = robot["violated_rules"]
    assert violation == {
        "line": 7,
        "rule": "Disallow: /private/",
        "record": 5,
        "versions": [{"file": "robots.txt", "since": None}],
        "count": 3,
        "by_both": 3,
        "only_by_this": 0,
        "bytes": 3 * 1234,
        "first": "2026-11-18T11:06:40Z",
        "last": "2026-11-18T11:06:42Z",
        "samples": [f"/private/{n}?\\x1b[2J<script>" for n in range(3)],
        "clients": ["192.0.2.0/24"],
    }
    whole = robots("audit", "--robots", "robots.txt", "--json", "--clients", log).objects[0]
    assert whole["robots"][0]["violated_rules"][0]["clients"] == ["192.0.2.77"]


def test_the_keys_are_documented(robots: Robots, log: Path) -> None:
    [found] = robots("audit", "--robots", "robots.txt", "--json", log).objects
    text = (ROOT / "docs" / "audit.md").read_text("utf-8")
    for head, shown in (("| key |", found), ("| key of a robot |", found["robots"][0])):
        rows = text.partition(head)[2].partition("\n\n")[0]
        documented = ", ".join(re.findall(r"(?m)^\| ([a-z_, ]+) \|", rows)).split(", ")
        assert sorted(shown) == sorted(documented)


def test_the_page_shows_hostile_text_harmlessly(robots: Robots, log: Path, tmp_path: Path) -> None:
    ran = robots("audit", "--robots", "robots.txt", "-o", "page.html", log)
    assert ran.status == 1
    page = (tmp_path / "page.html").read_text()
    assert "1 of 1 robot" in page
    assert "<script>alert" not in page
    assert page.count("<script") == 2
    shown = json.dumps(data_in(page)["tables"])
    assert "\\u001b" not in shown
    assert "<script>alert(1)" in shown
    assert "192.0.2.0/24" in shown
    assert "192.0.2.77" not in shown
    again = robots("audit", "--robots", "robots.txt", "--page", "nowhere\0", log)
    assert (again.status, "cannot write" in again.err) == (2, True)


def test_exit_statuses(robots: Robots, log: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.log"
    good.write_bytes(written([Hit(BEGAN, RUDE, "/")]))
    assert robots("audit", "--robots", "robots.txt", good).status == 0
    assert robots("audit", "--robots", "robots.txt", good, log).status == 1
    cut = robots("audit", "--robots", "robots.txt", good, KOSTER_MAX_BYTES=20)
    assert (cut.status, "robots.txt: longer than KOSTER_MAX_BYTES = 20" in cut.err) == (0, True)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(log.read_bytes())[:-9])
    cut = robots("audit", "--robots", "robots.txt", "cut.gz")
    assert (cut.status, "cut.gz: not read to its end" in cut.err) == (3, True)
    assert "\nROBOT " in cut.out
    (tmp_path / "other.log").write_text("something\nelse\n")
    other = robots("audit", "--robots", "robots.txt", "other.log")
    assert (other.status, "other.log: no line of it could be read" in other.err) == (3, True)
    (tmp_path / "empty.log").touch()
    empty = robots("audit", "--robots", "robots.txt", "empty.log")
    assert (empty.status, empty.out) == (3, "no line was read\n\nlines: 0\n")
    assert "empty.log: there is no line in it" in empty.err
    (tmp_path / "app.json").write_text('{"time": "2026-11-21T20:00:00Z", "msg": "started"}\n')
    app = robots("audit", "--robots", "robots.txt", "app.json")
    assert (app.status, app.out.partition("\n")[0]) == (3, "no line was read")
    good.write_bytes(written([Hit(BEGAN, "Mozilla/5.0 (X11) Firefox/132.0", "/private/")]))
    assert robots("audit", "--robots", "robots.txt", good).out.startswith("no robot came\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--robots", "robots.txt", "missing.log"], "cannot read 'missing.log'"),
        (["--robots", "robots.txt@soon", "access.log"], "Invalid time: 'soon'"),
        (["--robots", "-", "-"], "give - once"),
        (["--robots", "robots.txt", "--ranges", "-", "-"], "give - once"),
        (["--robots", "robots.txt", "--robots", "new.txt", "access.log"], "--robots FILE@DATE"),
        (["--robots", "access.log", "robots.txt"], "'access.log' is not a robots.txt"),
        (["--robots", "page.html", "access.log"], "'page.html' is not a robots.txt"),
        (["--robots", "log.gz", "access.log"], "'log.gz' is not a robots.txt"),
        (["--robots", "robots.txt", "--log-format", "$status", "access.log"], "no $time_local"),
        (["--robots", "robots.txt", "--site", "fict.org", "access.log"], "not an http"),
        (["--robots", "robots.txt", "--ranges", "robots.txt", "access.log"], "operator publishes"),
        (["--robots", "robots.txt", "--ranges", "x=gone", "access.log"], "cannot read 'gone'"),
    ],
)
def test_wrong_usage(robots: Robots, log: Path, arguments: list[str], why: str) -> None:
    ran = robots("audit", *arguments)
    assert (ran.status, why in ran.err) == (2, True), ran.err


def test_a_long_table_says_how_much_it_leaves_out(robots: Robots, log: Path) -> None:
    log.write_bytes(written([Hit(BEGAN + n, f"x{n:x}bot/1", "/private/1") for n in range(60)]))
    out = robots("audit", "--robots", "robots.txt", log).out
    assert "  10 more robots: --json has them" in out
    assert "  10 more lines disobeyed: --json has them" in out


def test_a_log_of_several_hosts_is_warned_of(robots: Robots, log: Path) -> None:
    hits = [Hit(BEGAN, RUDE, "/private/1", host=host) for host in ("www.fict.org", "b.example")]
    log.write_bytes(written(hits, "vhost"))
    ran = robots("audit", "--robots", "robots.txt", "--json", log)
    assert "several hosts (b.example:80, www.fict.org:80): --site leaves out others" in ran.err
    of_one = robots("audit", "--robots", "robots.txt", "--json", "--site", "http://b.example/", log)
    assert (of_one.err, of_one.objects[0]["elsewhere"]) == ("", 1)
    assert (of_one.objects[0]["site"], of_one.objects[0]["of_site"]) == ("http://b.example", 1)
    of_none = robots("audit", "--robots", "robots.txt", "--site", "https://c.example", log)
    assert (of_none.status, of_none.out[:32]) == (3, "no line is of https://c.example\n")
    assert "no line is of https://c.example. The log is of b.example:80, www.fict" in of_none.err


def test_published_ranges(robots: Robots, log: Path, tmp_path: Path) -> None:
    (tmp_path / "rudebot.json").write_text('{"prefixes": [{"ipv4Prefix": "198.51.100.0/24"}]}')
    (tmp_path / "ours").write_text("192.0.2.0/24\n")
    ran = robots("audit", "--robots", "robots.txt", "--ranges", "rudebot.json", log)
    assert "rudebot (unverified)" in ran.out
    assert "not from the published addresses" in ran.out
    ours = ["--ranges", "rudebot.json", "--ranges", "rudebot=ours"]
    [found] = robots("audit", "--robots", "robots.txt", "--json", *ours, log).objects
    assert [(robot["name"], robot["verified"]) for robot in found["robots"]] == [("rudebot", True)]


def test_ctrl_c_gives_what_was_read(log: Path, tmp_path: Path) -> None:
    """Ctrl-C also works while the audit waits for more data from a pipe."""
    code = (
        "import sys\nfrom scrapy_koster.commands import output\noutput._PROGRESS_SECS = 0\n"
        "from scrapy.cmdline import execute\nsys.exit(execute())\n"
    )
    (tmp_path / "run.py").write_text(code)
    command = ("run.py", "robots", "audit", "--robots", "robots.txt", "--json", "-")
    with forks.start(*command, cwd=tmp_path) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write(log.read_text())
        process.stdin.flush()
        assert "5 lines read" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=forks.ENDS_SECS)
    assert process.returncode == 3
    assert "ended by Ctrl-C" in err
    found = json.loads(out)
    assert (found["ended"], found["damaged"]) == (True, [])
    assert found["robots"][0]["violations"] == 3


def test_ctrl_c_ends_a_command_that_waits_for_input(log: Path, tmp_path: Path) -> None:
    with forks.start("-m", "scrapy", "robots", "check", "robots.txt", "-", cwd=tmp_path) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=forks.ENDS_SECS)
    assert (process.returncode, err) == (4, "scrapy robots: stopped by Ctrl-C\n")
