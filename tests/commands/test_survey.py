"""`scrapy robots survey`: lists of URLs, the printed answer, and a second run."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness import forks
from harness.replies import Asked, Reply
from harness.server import Server, Site
from scrapy import cmdline
from scrapy.settings import Settings

from scrapy_koster.audit.logfile import LogError
from scrapy_koster.commands import output
from scrapy_koster.commands.seeds import LINE_MAX_BYTES, Seeds, url_of
from scrapy_koster.commands.style import shown, table

ROOT = Path(__file__).parents[2]
RULES = "User-agent: *\nDisallow: /private\n"


# Seeds


def buffered(octets: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(octets))


@pytest.mark.promise("docs/commands.md", "survey: a host means https; user:pw@ is removed")
@pytest.mark.parametrize(
    ("line", "url"),
    [
        ("example.com", "https://example.com/"),
        ("EXAMPLE.com:8080", "https://example.com:8080/"),
        ("example.com:443/a b", "https://example.com/a%20b"),
        ("localhost:80", "https://localhost:80/"),
        ("[::1]:80/x", "https://[::1]:80/x"),
        ("HTTP://A:80", "http://a/"),
        ("http://a?b#c", "http://a/?b"),
        ("http://a/b?c=/d#e", "http://a/b?c=/d"),
        ("http://user:pw@a.example/x", "http://a.example/x"),
        ("https://bücher.example/ü?ü", "https://xn--bcher-kva.example/%C3%BC?%C3%BC"),
        ("https://日本語.jp", "https://xn--wgv71a119e.jp/"),
        ("http://a/\u00a0", "http://a/"),
    ],
)
def test_what_a_line_stands_for(line: str, url: str) -> None:
    with closing(Seeds()) as seeds:
        assert list(seeds.read(buffered(line.encode()))) == []
        assert [found for _, found in seeds.firsts()] == [url]
    assert url_of(url) == (url[: url.index("/", 8)], url)


BROKEN = {
    "neither an http or https URL nor a host": [
        b"ftp://a/", b"mailto:a@b", b"javascript:alert(1)", b"user:pw@host", b"http://",
        b"http:///x", b"http://a:99999/", b"http://[::1", b"//a/b", b"hello world", b"*", b"/",
        b"?", b"http://a%41/", b"http://" + "\u00fc".encode() * 300, b"https:a", b"a<b>",
    ],
    "contains unprintable characters": [
        b"http://a/\x1b[2J", b"http://a/\0", "http://a/\u202e".encode(), b"a\rb", b"http://a\tb/",
    ],
    "not UTF-8": [b"http://a/\xff", b"\xff\xfeh\0t\0t\0p\0"],
    f"longer than {LINE_MAX_BYTES} bytes": [
        b"http://a/" + b"x" * LINE_MAX_BYTES, b"http://a/" + b"x" * 1_000_000,
    ],
}  # fmt: skip


@pytest.mark.promise("docs/commands.md", "survey: invalid lines are counted")
@pytest.mark.parametrize("why", BROKEN)
def test_broken_lines_are_named_and_counted(why: str) -> None:
    for line in BROKEN[why]:
        with closing(Seeds()) as seeds:
            file = buffered(b"http://before/\n" + line + b"\nhttp://behind/\n")
            assert list(seeds.read(file)) == [f"line 2: {why}"]
            assert (seeds.counts["lines"], seeds.counts["broken"], len(seeds)) == (3, 1, 2)


def test_lists_as_they_come() -> None:
    with closing(Seeds()) as seeds:
        file = (
            b"\xef\xbb\xbfhttp://a/1\r\n\r\n# http://c/\n  http://a/2 \nhttp://a/1\nHTTP://A/1#x\nb"
        )
        assert list(seeds.read(buffered(file))) == []
        assert seeds.counts == {"lines": 7, "skipped": 2, "repeated": 2, "broken": 0}
        firsts = dict(seeds.firsts())
        assert len(seeds) == 3
        assert sorted(firsts.values()) == ["http://a/1", "https://b/"]
        rest = {first: list(seeds.rest(site, first)) for site, first in firsts.items()}
        assert rest == {"http://a/1": ["http://a/2"], "https://b/": []}


@pytest.mark.promise("docs/commands.md", "survey: a list as gz, bz2 or xz")
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_list_that_is_compressed(compress: Callable[[bytes], bytes]) -> None:
    packed = compress(b"http://a/\nhttp://b/\nftp://c/\nhttp://a/\n")
    with closing(Seeds()) as seeds:
        assert len(list(seeds.read(buffered(packed)))) == 1
        assert len(seeds) == 2
        assert seeds.counts == {"lines": 4, "skipped": 0, "repeated": 1, "broken": 1}
    with closing(Seeds()) as seeds, pytest.raises(LogError, match="damaged"):
        list(seeds.read(buffered(packed[:-6])))


# Progress


def test_a_line_each_five_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr(output, "monotonic", lambda: now)
    show = output.progress_of("{done} done, {more}".format)
    for now, done in ((1004.9, 1), (1005.0, 2), (1009.9, 3), (1010.1, 4)):  # noqa: B007
        show(done=done, more=5)
        show(done=done, more=5)
    assert capsys.readouterr().err == "scrapy robots: 2 done, 5\nscrapy robots: 4 done, 5\n"


def test_tables() -> None:
    rows = [(1, "[b]a[/b]" * 10), (1000, "\x1b[2J\u202e :smile:")]
    for coloured in (False, True):
        lines = [shown(line, coloured=coloured) for line in table(("N", "TEXT"), rows)]
        assert re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(lines)) == (
            f"   N  TEXT\n   1  {'[b]a[/b]' * 10}\n1000  \\x1b[2J\\u202e :smile:"
        )


# The command


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


class Survey:
    """Runs surveys in a folder. A test can make the folder a project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = os.pathsep.join([str(ROOT), *sys.path])
        self.env = {**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}

    def command(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "scrapy", "robots", "survey", *map(str, arguments)]

    def write(self, *lines: str) -> Path:
        path = self.folder / "seeds.txt"
        path.write_text("\n".join(lines))
        return path

    def start(self, *arguments: object, **given: Any) -> subprocess.Popen[str]:
        return forks.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.env,
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **given},
        )

    def __call__(self, *arguments: object, stdin: str = "") -> Ran:
        with self.start(*arguments, stdin=subprocess.PIPE) as process:
            out, err = process.communicate(stdin, timeout=forks.ENDS_SECS)
            return Ran(process.returncode, out, err)


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Survey:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Survey(tmp_path)


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not so after {seconds} s"
        time.sleep(0.02)


@pytest.mark.promise("docs/commands.md", "survey: the tables, --json, -o; exit status 1")
def test_it_tells_what_would_be_refused(survey: Survey, server: Server) -> None:
    ruled, closed, absent = (server.site() for _ in range(3))
    ruled.robots, closed.robots = RULES, Reply(403)
    file = survey.write(
        *ruled.urls(3), *ruled.urls(2, "/private{}"), closed.url(), *absent.urls(2)
    )  # fmt: skip
    expected = (
        "8 lines: 8 URLs\n"
        "\n"
        "SITES\n"
        "    1  obeyed\n"
        "    1  without robots.txt\n"
        "    1  restricted\n"
        "\n"
        "URLS\n"
        "   5  would be fetched\n"
        "   2  would be refused: rule\n"
        "   1  would be refused: restricted\n"
        "\n"
        "REFUSED  SITE" + " " * (len(str(ruled.url(""))) - 2) + "LINE\n"
        f"      2  {ruled.url('')}     2  Disallow: /private\n"
    )
    assert survey(file) == Ran(1, expected, "")
    page = survey.folder / "page.html"
    as_json = survey("--json", "-", "-o", page, stdin=file.read_text())
    assert (as_json.status, as_json.err) == (1, "")
    for site in (ruled, closed, absent):
        assert [asked.path for asked in site.requests] == ["/robots.txt"]
    assert "Survey of 8 URLs" in page.read_text("utf-8")
    assert as_json.json["given"] == {
        "lines": 8, "skipped": 0, "broken": 0, "repeated": 0, "urls": 8, "decided": 8,
    }  # fmt: skip
    assert as_json.json["sites"] == 3
    assert as_json.json["requests"] == {
        "allowed": 5,
        "refused": {
            "rule": 2,
            "restricted": 1,
            "missing": 0,
            "html": 0,
            "unavailable": 0,
            "delay": 0,
            "override": 0,
            "usage": 0,
        },
    }
    rule = {"site": ruled.url(""), "line": 2, "text": "Disallow: /private", "refused": 2}
    assert as_json.json["rules"] == [rule]


@pytest.mark.promise("docs/commands.md", "survey: duplicate, blank and comment lines")
def test_lines_that_are_repeated_or_broken_are_told(survey: Survey, server: Server) -> None:
    site = server.site()
    urls = [*site.urls(2), site.url("/0"), site.url("/0"), "ftp://a/", "", "# x"]
    (survey.folder / "seeds.gz").write_bytes(gzip.compress("\n".join(urls).encode()))
    ran = survey("seeds.gz")
    given = site.urls(2)
    repeated = 4 - len({*given, site.url("/0")})
    first = f"7 lines: {4 - repeated} URLs, {repeated} duplicate, 1 invalid, 2 blank or comment"
    assert ran.out.splitlines()[0] == first
    hosts = survey("-", stdin=f"a.invalid\nb.invalid:8080/c\n{site.url('/0')}\n")
    assert "-: 2 lines without a scheme; https is assumed\n" in hosts.err
    assert "without a scheme" not in ran.err
    (survey.folder / "cut.gz").write_bytes((survey.folder / "seeds.gz").read_bytes()[:-6])
    cut = survey("cut.gz")
    assert (cut.status, "cannot read 'cut.gz': damaged" in cut.err) == (2, True)


@pytest.mark.promise("docs/commands.md", "survey --verdicts; exit status 3")
@pytest.mark.promise(
    "docs/evidence.md", "a survey with KOSTER_ARCHIVE archives the sites of a list"
)
def test_the_verdict_on_each_url(survey: Survey, server: Server) -> None:
    site, closed, down = server.site(), server.site(), server.down()
    site.robots, closed.robots = RULES, Reply(403)
    file = survey.write(
        site.url("/=a"), site.url("/private,x"), closed.url("/"), down.url("/"), "ftp://a/"
    )
    ran = survey(file, "--verdicts", "verdicts.csv", "-s", "KOSTER_ARCHIVE=evidence")
    assert ran.status == 3
    [index] = (survey.folder / "evidence").glob("*.cdxj")
    assert f":{site.port})/robots.txt " in index.read_text()
    with (survey.folder / "verdicts.csv").open(newline="") as lines:
        found = {row["url"]: row for row in csv.DictReader(lines)}
    assert {url: (row["verdict"], row["line"]) for url, row in found.items()} == {
        site.url("/=a"): ("allowed", ""),
        site.url("/private,x"): ("forbidden", "2"),
        closed.url("/"): ("forbidden", ""),
        down.url("/"): ("unavailable", ""),
    }
    assert "Disallow: /private" in found[site.url("/private,x")]["because"]
    assert "403" in found[closed.url("/")]["because"]


@pytest.mark.promise("docs/commands.md", "survey: a URL that another middleware ends")
def test_a_url_that_is_not_decided_on_has_no_verdict(survey: Survey, server: Server) -> None:
    site = server.site()
    middlewares = {"the_middleware.Answering": 50}
    code = """\
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response


class Answering:
    def process_request(self, request):
        if request.url.endswith("/answered"):
            return Response(request.url)
        if request.url.endswith("/ignored"):
            raise IgnoreRequest
"""
    (survey.folder / "the_middleware.py").write_text(code)
    survey.env["PYTHONPATH"] += f"{os.pathsep}{survey.folder}"
    setting = f"DOWNLOADER_MIDDLEWARES={json.dumps(middlewares)}"
    file = survey.write(site.url("/answered"), site.url("/ignored"), site.url("/"))
    ran = survey(file, "--verdicts", "verdicts.csv", "-s", setting)
    assert ran.status == 3
    lines = (survey.folder / "verdicts.csv").read_text().splitlines()
    assert sorted(line.rpartition("/")[2] for line in lines[1:]) == [
        ",allowed,,",
        "answered,not decided,,a downloader middleware answered it",
        "ignored,not decided,,IgnoreRequest",
    ]


PROJECT = {
    "USER_AGENT": "FigTree/0.1",
    "ADDONS": {"scrapy_koster.Addon": 500},
    "KOSTER_REPORT": "crawl.html",
    "JOBDIR": "job",
    "FEEDS": {"items.json": {"format": "json"}},
    "ITEM_PIPELINES": {"no.such.Pipeline": 1},
    "SPIDER_MIDDLEWARES": {"no.such.Middleware": 1},
    "SCHEDULER": "no.such.Scheduler",
    "DUPEFILTER_CLASS": "no.such.DupeFilter",
    "KOSTER_SQLITE_PATH": "robots.sqlite3",
}


@pytest.mark.promise("docs/commands.md", "survey: sites by usage preference")
def test_it_counts_sites_by_what_they_state(survey: Survey, server: Server) -> None:
    sites = [server.site() for _ in range(4)]
    for site, line in zip(
        sites,
        (
            "Content-Usage: train-ai=n\nContent-Usage: /open train-ai=y",
            "Content-Signal: search=yes, ai-train=no",
            "License: https://l.example",
            "Crawl-delay: 1",
        ),
        strict=True,
    ):
        site.robots = f"{RULES}{line}\n"
    file = survey.write(*(site.url("/") for site in sites))
    told = survey(file)
    assert told.status == 0
    assert "\nSITES  USAGE\n    1  search=y\n    1  train-ai=y\n    2  train-ai=n\n" in told.out
    as_json = survey("--json", file)
    assert as_json.json["usage"] == {"search": {"y": 1, "n": 0}, "train-ai": {"y": 1, "n": 2}}


@pytest.mark.promise("docs/commands.md", "survey: your settings, but no pipelines or feeds")
def test_in_a_project(survey: Survey, server: Server) -> None:
    (survey.folder / "scrapy.cfg").write_text("[settings]\ndefault = the_settings\n")
    lines = [f"{name} = {value!r}" for name, value in PROJECT.items()]
    (survey.folder / "the_settings.py").write_text("\n".join(lines))
    site = server.site()
    site.robots = "User-agent: figtree\nDisallow: /private\n\nUser-agent: figleaf\nDisallow: /\n"
    file = survey.write(site.url("/"), site.url("/private"))
    for agent, refused in (([], 1), (["--agent", "FigLeaf/2"], 2)):
        ran = survey("--json", *agent, file)
        assert (ran.status, ran.err) == (1, "")
        assert ran.json["requests"]["refused"]["rule"] == refused
    assert [asked.header("User-Agent") for asked in site.requests] == ["FigTree/0.1"]
    left = {path.name for path in survey.folder.iterdir()}
    assert left.isdisjoint({"crawl.html", "job", "items.json"})


@pytest.mark.promise("docs/commands.md", "survey: KOSTER_CRAWL_DELAY is ignored")
def test_no_page_waits_for_its_turn(survey: Survey, server: Server) -> None:
    site = server.site()
    site.robots = "User-agent: *\nCrawl-delay: 50\nDisallow: /private\n"
    began = time.monotonic()
    ran = survey("--json", "-s", "KOSTER_CRAWL_DELAY=obey", survey.write(*site.urls(3)))
    assert (ran.status, ran.json["requests"]["allowed"]) == (0, 3)
    assert time.monotonic() - began < 50


def test_a_site_that_cannot_be_asked(survey: Survey, server: Server) -> None:
    down = server.down()
    ran = survey("-", stdin=down.url("/a"))
    assert (ran.status, ran.err) == (3, "")
    assert "1  would be refused: unavailable" in ran.out


@pytest.mark.promise("docs/commands.md", "survey: the first ten invalid lines are reported")
def test_hostile_lines_are_harmless(survey: Survey, server: Server) -> None:
    site = server.site()
    site.robots = b"User-agent: *\nDisallow: /\x1b[2J\xe2\x80\xae\nDisallow: /[bold]\nDisallow: /\n"
    good = [f"http://user:sesame@{site.authority}/[bold]:smile:", site.url("/%1b[2J")]
    broken = [
        "\x1b]0;owned\x07", "http://\x9b31m/", "ftp://sesame/", "user:sesame@host", "x" * 1_000_000,
        "\u2028", *["javascript:alert(1)"] * 20,
    ]  # fmt: skip
    page = survey.folder / "page.html"
    ran = survey("-", "-o", page, stdin="\n".join([*broken, *good]))
    assert (ran.status, len(ran.err.splitlines())) == (1, 11)
    assert ran.err.endswith(f"scrapy robots: -: {len(broken) - 1} invalid lines in total\n")
    for text in (ran.out, ran.err):
        assert text.replace("\n", "").isprintable()
        assert "sesame" not in text
    assert "2  would be refused: rule" in ran.out
    assert [asked.path for asked in site.requests] == ["/robots.txt"]
    assert b"sesame" not in b"".join(
        path.read_bytes() for path in survey.folder.rglob("*") if path.is_file()
    )


# Arguments, standard input, and the message.
WRONG = [
    (["-"], "", "'-' has no URL; write one URL or host a line"),
    (["-"], "\n# http://a/\nftp://b/\n", "'-' has no URL; write one URL or host a line"),
    (["nowhere\x1b"], "", r"cannot read 'nowhere\x1b': No such file"),
    (["http://a/"], "", "give a file, or - for standard input"),
    (["-", "--agent", "/"], "http://127.0.0.1:1/", "does not begin with a name token"),
    (["-", "-o", "."], "http://127.0.0.1:1/", "cannot write"),
    (["-", "-o", "no/such/x.html"], "http://127.0.0.1:1/", "cannot write"),
    (["-", "--verdicts", "no/such.csv"], "http://127.0.0.1:1/", "cannot write 'no/such.csv'"),
    (["-", "-s", "KOSTER_TIMEOUT_SECS=x"], "http://127.0.0.1:1/", "KOSTER_TIMEOUT_SECS"),
]


@pytest.mark.parametrize(("arguments", "stdin", "said"), WRONG)
def test_wrong_usage(
    arguments: list[str],
    stdin: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(buffered(stdin.encode())))
    settings = Settings({"COMMANDS_MODULE": "scrapy_koster.commands"})
    with pytest.raises(SystemExit) as ended:
        cmdline.execute(["scrapy", "robots", "survey", *arguments], settings)
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert said in re.sub(r"\s+", " ", err)


def test_one_that_cannot_begin(survey: Survey) -> None:
    setting = 'DOWNLOADER_MIDDLEWARES={"no.such.Middleware": 1}'
    ran = survey("-", "-s", setting, "-L", "CRITICAL", stdin="http://127.0.0.1:1/")
    assert (ran.status, ran.out) == (4, "")
    assert "scrapy robots: the survey could not start" in ran.err


def test_one_whose_numbers_cannot_be_written_asks_nobody(survey: Survey, server: Server) -> None:
    (survey.folder / ".scrapy").mkdir()
    (survey.folder / ".scrapy" / "koster").write_text("")
    site = server.site()
    ran = survey("-", "-L", "CRITICAL", stdin=site.url())
    assert (ran.status, ran.out) == (4, "")
    assert site.requests == ()


# Many sites


class Many:
    """Sites at the same port of 127/8. Some of the sites hang."""

    def __init__(self, server: Server, count: int, hang: int) -> None:
        self.site: Site = server.site(host="0.0.0.0")
        self.gate = server.gate()
        self.count = count
        self._hanging = {self.host(number) for number in range(hang)}
        self.site.robots = self._robots

    def host(self, number: int) -> str:
        return f"127.0.{number // 250 + 1}.{number % 250 + 1}:{self.site.port}"

    def urls(self) -> list[str]:
        hosts = map(self.host, range(self.count))
        return [f"http://{host}{path}" for host in hosts for path in ("/", "/private")]

    def _robots(self, asked: Asked) -> Reply | str:
        return Reply(200, RULES, gate=self.gate) if asked.header("Host") in self._hanging else RULES

    def asked(self) -> list[str | None]:
        return [asked.header("Host") for asked in self.site.requests]


@pytest.mark.promise("docs/commands.md", "survey: continue with the same command")
def test_interrupted_and_resumed(survey: Survey, server: Server) -> None:
    many = Many(server, 40, 4)
    file = survey.write(*many.urls())
    with survey.start(file) as process:
        until(lambda: len(many.asked()) == 40)
        until(lambda: stored(survey) == 36)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=forks.ENDS_SECS)
    assert process.returncode == 3
    [left] = re.findall(r"stopped before (\d+) of 80 URLs were decided; run it again", err)
    assert 8 <= int(left) <= 80
    assert f" {left}  not decided\n" in out
    many.gate.open()
    again = survey(file)
    assert again.status == 1
    assert "40  obeyed" in again.out
    assert sorted(many.asked()[40:], key=str) == sorted(map(many.host, range(4)))
    assert many.site.pages_asked == []


def stored(survey: Survey) -> int:
    """How many sites are in the storage."""
    import sqlite3

    path = survey.folder / ".scrapy" / "koster" / "robots.sqlite3"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as connection:
        try:
            [count] = connection.execute("SELECT COUNT(*) FROM known").fetchone()
        except sqlite3.Error:  # the file is not complete yet
            return 0
    return int(count)
