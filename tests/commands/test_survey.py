"""`scrapy robots survey`: lists of URLs, the printed answer, and a second run."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from harness import forks
from harness.commands import Ran, Robots
from harness.replies import Asked, Reply
from harness.server import Server

from scrapy_koster.commands.seeds import LINE_MAX_BYTES, Seeds, url_of
from scrapy_koster.storage.sqlite import SQLiteStorage

RULES = "User-agent: *\nDisallow: /private\n"
USAGE = "Content-Usage: train-ai=n\nContent-Usage: /open train-ai=y\nContent-Signal: search=no\n"
PATHS = ("/", "/private")
Survey = Callable[..., Ran]


# Seeds


def buffered(octets: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(octets))


@pytest.mark.parametrize(
    ("line", "url"),
    [
        ("EXAMPLE.com:8080", "https://example.com:8080/"),
        ("example.com:443/a b", "https://example.com/a%20b"),
        ("[::1]:80/x", "https://[::1]:80/x"),
        ("http://a?b#c", "http://a/?b"),
        ("http://user:pw@a.example/x", "http://a.example/x"),
        ("https://bücher.example/ü?ü", "https://xn--bcher-kva.example/%C3%BC?%C3%BC"),
    ],
)
def test_what_a_line_stands_for(line: str, url: str) -> None:
    with closing(Seeds()) as seeds:
        assert list(seeds.read(buffered(line.encode()))) == []
        assert [found for _, found in seeds.firsts()] == [url]
    assert url_of(url) == (url[: url.index("/", 8)], url)


@pytest.mark.parametrize(
    ("why", "lines"),
    [
        (
            "neither an http or https URL nor a host",
            [b"ftp://a/", b"user:pw@host", b"http:///x", b"http://a:99999/", b"//a/b", b"a<b>"],
        ),
        ("contains unprintable characters", [b"http://a/\x1b[2J", b"a\rb"]),
        ("not UTF-8", [b"http://a/\xff"]),
        (f"longer than {LINE_MAX_BYTES} bytes", [b"http://a/" + b"x" * LINE_MAX_BYTES]),
    ],
)
def test_broken_lines_are_named_and_counted(why: str, lines: list[bytes]) -> None:
    for line in lines:
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


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_list_that_is_compressed(compress: Callable[[bytes], bytes]) -> None:
    packed = compress(b"http://a/\nhttp://b/\nftp://c/\nhttp://a/\n")
    with closing(Seeds()) as seeds:
        assert len(list(seeds.read(buffered(packed)))) == 1
        assert len(seeds) == 2
        assert seeds.counts == {"lines": 4, "skipped": 0, "repeated": 1, "broken": 1}
    with closing(Seeds()) as seeds, pytest.raises(ValueError, match="damaged"):
        list(seeds.read(buffered(packed[:-6])))


# The command


@pytest.fixture
def survey(in_a_process: Robots) -> Callable[..., Ran]:
    def run(*arguments: object, stdin: str = "", **settings: Any) -> Ran:
        environ = {"COLUMNS": "200"}
        given = stdin.encode()
        return in_a_process("survey", *arguments, stdin=given, env=environ, **settings)

    return run


def seeds_in(folder: Path, *lines: str) -> Path:
    path = folder / "seeds.txt"
    path.write_text("\n".join(lines))
    return path


def test_a_survey_tells_what_would_be_refused(
    survey: Survey, server: Server, tmp_path: Path
) -> None:
    ruled, closed, absent = (server.site() for _ in range(3))
    ruled.robots, closed.robots = f"{RULES}Allow: /private1\n{USAGE}", Reply(403)
    urls = [*ruled.urls(3), *ruled.urls(2, "/private{}"), closed.url(), *absent.urls(2)]
    file = seeds_in(tmp_path, *urls)
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
        "   1  of the refused, allowed by RFC 9309\n"
        "\n"
        "SITES  USAGE\n"
        "    1  search=n\n"
        "    1  train-ai=y\n"
        "    1  train-ai=n\n"
        "\n"
        "REFUSED  SITE" + " " * (len(str(ruled.url(""))) - 2) + "LINE\n"
        f"      2  {ruled.url('')}     2  Disallow: /private\n"
    )
    assert survey(file) == Ran(1, expected, "")
    page = tmp_path / "page.html"
    ran = survey("--json", "-", "-o", page, stdin=file.read_text())
    assert (ran.status, ran.err) == (1, "")
    for site in (ruled, closed, absent):
        assert [asked.path for asked in site.requests] == ["/robots.txt"]
    assert "Survey of 8 URLs" in page.read_text("utf-8")
    [found] = ran.objects
    assert found["given"] == {
        "lines": 8, "skipped": 0, "broken": 0, "repeated": 0, "urls": 8, "decided": 8,
    }  # fmt: skip
    assert (found["sites"], found["requests"]["allowed"]) == (3, 5)
    refused = found["requests"]["refused"]
    assert {ground: count for ground, count in refused.items() if count} == {
        "rule": 2, "restricted": 1,
    }  # fmt: skip
    rule = {"site": ruled.url(""), "line": 2, "text": "Disallow: /private", "refused": 2}
    assert found["rules"] == [rule]
    assert found["usage"] == {"search": {"y": 0, "n": 1}, "train-ai": {"y": 1, "n": 1}}


def test_the_verdict_on_each_url(survey: Survey, server: Server, tmp_path: Path) -> None:
    site, closed, down = server.site(), server.site(), server.down()
    site.robots, closed.robots = RULES, Reply(403)
    paths = ("/=a", "/private,x", "/answered", "/ignored")
    urls = [*map(site.url, paths), closed.url("/"), down.url("/")]
    (tmp_path / "the_middleware.py").write_text(MIDDLEWARE)
    ran = survey(
        *(seeds_in(tmp_path, *urls, "ftp://a/"), "--verdicts", "verdicts.csv"),
        KOSTER_ARCHIVE="evidence",
        DOWNLOADER_MIDDLEWARES={"the_middleware.Answering": 50},
    )
    assert ran.status == 3
    [index] = (tmp_path / "evidence").glob("*.cdxj")
    assert f":{site.port})/robots.txt " in index.read_text()
    with (tmp_path / "verdicts.csv").open(newline="") as lines:
        found = {row["url"]: row for row in csv.DictReader(lines)}
    told = [(found[url]["verdict"], found[url]["line"]) for url in urls]
    undecided = ("not decided", "")
    assert told == [
        ("allowed", ""), ("forbidden", "2"), undecided, undecided,
        ("forbidden", ""), ("unavailable", ""),
    ]  # fmt: skip
    because = ("Disallow: /private", "a downloader middleware answered it", "IgnoreRequest", "403")
    for url, said in zip(urls[1:], because, strict=False):
        assert said in found[url]["because"]


MIDDLEWARE = """\
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response


class Answering:
    def process_request(self, request):
        if request.url.endswith("/answered"):
            return Response(request.url)
        if request.url.endswith("/ignored"):
            raise IgnoreRequest
"""


def test_hostile_lines_are_harmless(survey: Survey, server: Server, tmp_path: Path) -> None:
    site = server.site()
    site.robots = b"User-agent: *\nDisallow: /\x1b[2J\xe2\x80\xae\nDisallow: /[bold]\nDisallow: /\n"
    good = [f"http://user:sesame@{site.authority}/[bold]:smile:", site.url("/%1b[2J")]
    broken = [
        "\x1b]0;owned\x07", "http://\x9b31m/", "ftp://sesame/", "user:sesame@host", "x" * 1_000_000,
        "\u2028", *["javascript:alert(1)"] * 20,
    ]  # fmt: skip
    ran = survey("-", "-o", tmp_path / "page.html", stdin="\n".join([*broken, *good]))
    assert (ran.status, len(ran.err.splitlines())) == (1, 11)
    assert ran.err.endswith(f"scrapy robots: -: {len(broken) - 1} invalid lines in total\n")
    for text in (ran.out, ran.err):
        assert text.replace("\n", "").isprintable()
        assert "sesame" not in text
    assert "2  would be refused: rule" in ran.out
    assert [asked.path for asked in site.requests] == ["/robots.txt"]
    assert b"sesame" not in b"".join(
        path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    )


# Arguments, standard input, and the message.
WRONG = [
    (["-"], b"\n# http://a/\nftp://b/\n", "'-' has no URL; write one URL or host a line"),
    (["nowhere\x1b"], b"", r"cannot read 'nowhere\x1b': No such file"),
    (["http://a/"], b"", "give a file, or - for standard input"),
    (["-", "--agent", "/"], b"http://127.0.0.1:1/", "does not begin with a name token"),
    (["-", "-o", "no/such/x.html"], b"http://127.0.0.1:1/", "cannot write"),
    (["-", "--verdicts", "no/such.csv"], b"http://127.0.0.1:1/", "cannot write 'no/such.csv'"),
    (["-", "-s", "KOSTER_TIMEOUT_SECS=x"], b"http://127.0.0.1:1/", "KOSTER_TIMEOUT_SECS"),
]


@pytest.mark.parametrize(("arguments", "stdin", "said"), WRONG)
def test_wrong_usage(robots: Robots, arguments: list[str], stdin: bytes, said: str) -> None:
    ran = robots("survey", *arguments, stdin=stdin)
    assert (ran.status, ran.out) == (2, "")
    assert said in re.sub(r"\s+", " ", ran.err)


def test_one_that_cannot_begin(survey: Survey, server: Server, tmp_path: Path) -> None:
    site = server.site()
    middlewares = {"no.such.Middleware": 1}
    settings = {"DOWNLOADER_MIDDLEWARES": middlewares, "LOG_LEVEL": "CRITICAL"}
    ran = survey("-", stdin=site.url(), **settings)
    assert (ran.status, ran.out) == (4, "")
    assert "scrapy robots: the survey could not start" in ran.err
    assert site.requests == ()


@pytest.mark.long
def test_interrupted_and_resumed(survey: Survey, server: Server, tmp_path: Path) -> None:
    """Of 40 sites at one port of 127/8, the first four hang at first."""
    site, gate = server.site(host="0.0.0.0"), server.gate()
    hosts = [f"127.0.1.{number}:{site.port}" for number in range(1, 41)]
    hanging = set(hosts[:4])

    def robots(asked: Asked) -> Reply:
        return Reply(200, RULES, gate=gate if asked.header("Host") in hanging else None)

    site.robots = robots
    file = seeds_in(tmp_path, *(f"http://{host}{path}" for host in hosts for path in PATHS))
    storage = tmp_path / "robots.sqlite3"
    setting = f"KOSTER_SQLITE_PATH={storage}"
    command = ("-m", "scrapy", "robots", "survey", file, "-s", setting)
    with forks.start(*command, cwd=tmp_path) as process:
        forks.until(lambda: len(site.requests) == 40)
        with closing(SQLiteStorage(str(storage), "scrapy")) as opened:
            forks.until(lambda: len(list(opened.sites())) == 36)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=forks.ENDS_SECS)
    assert process.returncode == 3
    [left] = re.findall(r"stopped before (\d+) of 80 URLs were decided; run it again", err)
    assert 8 <= int(left) <= 80
    assert f" {left}  not decided\n" in out
    gate.open()
    again = survey(file, "-s", setting)
    assert again.status == 1
    assert "40  obeyed" in again.out
    assert {asked.header("Host") for asked in site.requests[40:]} == hanging
    assert len(site.requests) == 44
    assert site.pages_asked == []
