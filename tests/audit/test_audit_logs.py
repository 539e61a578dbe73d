"""What a log may be: compressed, broken, hostile, in many files, out of order."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import pytest
from harness.audit_logs import BEGAN, FIRST, SECOND, Hit, log_of, sinners, written
from harness.audits import STANDARDS, audited
from harness.doubling import MOST, Reader, growth

from scrapy_koster.audit import access_log as audit_log
from scrapy_koster.audit import auditor as audit_auditor
from scrapy_koster.audit import judging, merged_logs
from scrapy_koster.audit.auditor import audit
from scrapy_koster.audit.clients import masked, whole
from scrapy_koster.audit.jsonlines import JsonFormat
from scrapy_koster.audit.judging import Files, Version, method_and_path
from scrapy_koster.audit.logfile import LONGEST_LINE_BYTES, Lines
from scrapy_koster.audit.naming import By, Namer
from scrapy_koster.audit.result import Result
from scrapy_koster.audit.textlines import COMMON, nginx_format
from scrapy_koster.audit.times import seconds_of
from scrapy_koster.protocol.site import site_of

ONE = (Version("robots.txt", float("-inf"), FIRST),)
RUDE = "rudebot/1.0"


def judged(*logs: bytes, **options: Any) -> dict[str, Any]:
    return audited(*logs, versions=ONE, **options)


def rude(count: int = 3, **more: Any) -> list[Hit]:
    return [Hit(BEGAN + n, RUDE, f"/private/{n}", **more) for n in range(count)]


# Compressed.


@pytest.mark.slow
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_what_is_compressed(compress: Callable[[bytes], bytes]) -> None:
    log = written(log_of(sinners()))
    half = log.index(b"\n", len(log) // 2) + 1
    members = compress(log[:half]) + compress(log[half:])
    assert judged(members) == judged(log)


@pytest.mark.slow
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("harm", ["cut", "garbled", "followed"])
def test_what_is_damaged_counts_as_far_as_it_goes(
    compress: Callable[[bytes], bytes], harm: str
) -> None:
    packed = compress(written(rude(3000)))
    damaged = {
        "cut": packed[: len(packed) * 2 // 3],
        "garbled": packed[: len(packed) // 2] + bytes(200) + packed[len(packed) // 2 + 200 :],
        "followed": packed + b"something else",
    }[harm]
    found = judged(damaged)
    [each] = found["damaged"]
    assert "damaged" in each["why"]
    assert each["why"].isprintable()
    assert found["lines"] <= 3000
    assert (found["lines"] == 3000) is (harm == "followed")


@pytest.mark.slow
def test_a_bomb_takes_no_memory() -> None:
    bomb = gzip.compress(bytes(1000) * 100_000)
    tracemalloc.start()
    found = judged(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (found["lines"], found["unread"]) == (1, 1)
    assert most < 20_000_000


def test_the_memory_that_an_xz_file_wants_is_bounded() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 28}]
    packed = lzma.compress(b"x\n", format=lzma.FORMAT_XZ, filters=filters)
    [each] = judged(packed)["damaged"]
    assert "emory" in each["why"]


# Lines.


@pytest.mark.parametrize("size", [1000, 1 << 16, 1 << 20])
def test_long_lines_are_unread_whatever_the_pieces(size: int) -> None:
    short, long = b"a" * 1000 + b"\n", b"b" * (LONGEST_LINE_BYTES + 1) + b"\n"
    longest = b"c" * 3_000_000 + b"\n"
    lines = Lines(io.BytesIO(short + long + short + longest + short + b"end"), size)
    assert b"".join(lines.pieces()) == short * 3 + b"end\n"
    assert lines.too_long == 2


def test_ten_megabytes_without_an_end_are_one_line() -> None:
    log = written(rude())
    found = judged(log + b"\xff" * 10_000_000)
    assert (found["lines"], found["unread"]) == (4, 1)
    assert found["robots"][0]["violations"] == 3


ODD: tuple[Any, ...] = (None, [], {}, 1e400, -1, "\ud800")
PIECES = (
    '"', "\\", '\\"', "[", "]", " ", "a", "-", "\n", "1.2.3.4 - - [", '] "', '" 200 1 "', "\x00",
    '{"', '":', "{", "}", "\x1b[2J", "21/Nov/2026:20:00:00 +0000", "Spider", "spider.com", "GET /",
)  # fmt: skip
NGINX = nginx_format(
    '$remote_addr - $remote_user [$time_local] "$request" $status "$http_user_agent"'
)
READERS: dict[str, Callable[[str], object]] = {
    "text": lambda text: COMMON.rows(text.encode()),
    "json": lambda text: JsonFormat().rows(text.encode()),
    "header": Namer([]).named,
    "request": lambda text: method_and_path(text.encode()),
    "nginx": lambda text: nginx_format(text) if "$" in text else None,
    "format": lambda text: NGINX.rows(text.encode()),
    "log": lambda text: judged(text.encode()),
}


@pytest.mark.parametrize("name", READERS)
def test_hostile_text_takes_linear_time(name: str) -> None:
    chance = Random(name)
    for _ in range(12):
        pump = "".join(chance.choices(PIECES, k=chance.randint(1, 4)))
        start = "".join(chance.choices(PIECES, k=2))

        def text(chars: int, pump: str = pump, start: str = start) -> str:
            return start + pump * (chars // len(pump))

        reader = Reader(READERS[name], PIECES, chars=8000, most_chars=64_000)
        assert growth(reader, text) <= MOST, (start, pump)


def test_a_header_of_any_length_is_named_at_once() -> None:
    namer = Namer([])
    namer.named("warm")
    began = process_time()
    for n in range(100):
        namer.named("SpiderSpiderMozilla/5.0 " * 10_000 + str(n))
    assert process_time() - began < 1


def test_whatever_is_there_is_read() -> None:
    chance = Random(5)
    log = written(rude()) + b"".join(
        chance.choice([bytes([chance.randrange(256)]), chance.choice(PIECES).encode()])
        for _ in range(50_000)
    )
    found = judged(log)
    assert found["robots"][0]["violations"] == 3
    assert json.dumps(found).isprintable()
    for name in ("caddy", "nginx-json", "cloudflare"):
        line = json.loads(written(rude(1), name))
        odd: list[Any] = [{**line, key: value} for key in line for value in ODD]
        asked = line.get("request")
        if isinstance(asked, dict):
            odd += [{**line, "request": {**asked, key: {}}} for key in asked]
        more = b"".join(json.dumps(each).encode() + b"\n" for each in odd)
        found = judged(written(rude(), name) + more + b"[" * 60_000 + b"\n" + b"9" * 9000)
        assert found["robots"][0]["violations"] >= 3
        assert found["unread"] >= 2
        json.dumps(found)


def test_escapes_of_a_text_log_are_read() -> None:
    target = "/private/\\xc3\\xa9\\x22\\\\\\n"
    log = written([Hit(BEGAN, RUDE + ' \\"x\\" \\\\', target)])
    [robot] = judged(log)["robots"]
    [each] = robot["violated_rules"]
    assert each["samples"] == ['/private/\xe9"\\\\n']
    hidden = written([Hit(BEGAN, RUDE, "/pri\\x76ate/1"), Hit(BEGAN, RUDE, "/pri%76ate/1")])
    assert judged(hidden)["robots"][0]["violations"] == 2


@pytest.mark.parametrize(
    ("request_line", "found"),
    [
        (b"GET / HTTP/1.1", (b"GET", b"/")),
        (b"GET /a b HTTP/1.1", (b"GET", b"/a b")),
        (b"HEAD http://a.example:80/x?y HTTP/1.1", (b"HEAD", b"/x?y")),
        (b"GET https://a.example HTTP/1.1", (b"GET", b"/")),
        (b"/only/a/path?x", (b"GET", b"/only/a/path?x")),
        (b"OPTIONS * HTTP/1.0", (b"OPTIONS", b"")),
        (b"CONNECT a.example:443 HTTP/1.1", (b"CONNECT", b"")),
        (b"GET /x", (b"GET", b"/x")),
        (b"\\x16\\x03\\x01", (b"\x16\x03\x01", b"")),
        (b"-", (b"-", b"")),
        ("GET /\xe9 HTTP/2.0", (b"GET", b"/\xc3\xa9")),
    ],
)
def test_request_lines(request_line: bytes | str, found: tuple[bytes, bytes]) -> None:
    assert method_and_path(request_line) == found


@pytest.mark.parametrize(
    ("time", "secs"),
    [
        (b"21/Nov/2026:20:00:00 +0000", 1795291200),
        (b"21/Nov/2026:21:30:00 +0130", 1795291200),
        ("21/Nov/2026 20:00:00", 1795291200),
        ("2026-11-21T20:00:00Z", 1795291200),
        ("2026-11-21T15:00:00.999-05:00", 1795291200),
        ("2026-11-21 20:00:00", 1795291200),
        (b"1795291200.999", 1795291200),
        (1795291200123, 1795291200),
        (1795291200123456789, 1795291200),
        ("31/Dec/2016:23:59:60 +0000", 1483228799),
    ],
)
def test_times(time: bytes | str | float, secs: int) -> None:
    assert seconds_of(time) == secs


@pytest.mark.parametrize(
    "time", ["", "yesterday", "31/Feb/2026:20:00:00 +0000", "21/Foo/2026:20:00:00 +0000",
             float("nan"), float("inf"), -1, "9" * 30, "2026-13-01T00:00:00Z"],
)  # fmt: skip
def test_no_times(time: str | float) -> None:
    with pytest.raises(ValueError, match=r"no time|month|day"):
        seconds_of(time)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("$remote_addr", "no time"),
        ("$time_local", "no request"),
        ('[$time_local] "$request" $remote_user$http_user_agent', "where \\$remote_user ends"),
        ('[$time_local] [$time_local] "$request"', "twice"),
    ],
)
def test_a_log_format_that_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        nginx_format(text)


# Many logs, and lines out of order.


@pytest.mark.slow
def test_logs_of_one_server_in_any_order() -> None:
    hits = log_of(sinners())
    parts = [written(hits[start : start + 700]) for start in range(0, len(hits), 700)]
    together = judged(written(hits))
    for seed in range(3):
        Random(seed).shuffle(parts)
        assert judged(*parts) == together


@pytest.mark.slow
def test_logs_that_are_files_are_opened_when_their_time_has_come(tmp_path: Path) -> None:
    hits = log_of(sinners())
    opened: list[str] = []
    logs: list[tuple[str, Any]] = []
    for n, start in enumerate(range(0, len(hits), 700)):
        path = tmp_path / f"access.log.{9 - n}"
        path.write_bytes(written(hits[start : start + 700]))

        def open_(path: Path = path) -> Any:
            opened.append(path.name)
            return path.open("rb")

        logs.insert(0, (str(path), open_))
    result = Result(*audit(Files(ONE), logs, masked), STANDARDS["draft"], masked)
    assert result.to_dict() == judged(written(hits))
    assert opened[: len(logs)] == sorted(opened[: len(logs)])  # for a look
    assert opened[len(logs) :] == sorted(opened[len(logs) :], reverse=True)


@pytest.mark.slow
def test_logs_of_several_servers_at_once() -> None:
    hits = log_of(sinners())
    apart = [written(hits[n::3], name) for n, name in enumerate(("combined", "caddy", "vhost"))]
    found, together = judged(*apart), judged(written(hits))
    for robot in (*found["robots"], *together["robots"]):
        # In one second the order is that of the logs.
        for each in robot["violated_rules"]:
            del each["samples"], each["clients"]
        del robot["asked"]["pages_before"]
    assert found["robots"] == together["robots"]


def test_lines_out_of_order_within_a_minute_make_no_difference() -> None:
    chance = Random(1)
    hits = log_of(sinners())
    late = sorted(hits, key=lambda hit: hit.secs + chance.randrange(60))
    found, together = judged(written(late)), judged(written(hits))
    assert [r["out_of_order"] for r in found["robots"]] == [0] * 50
    assert {r["name"]: (r["violations"], r["speed"]) for r in found["robots"]} == {
        r["name"]: (r["violations"], r["speed"]) for r in together["robots"]
    }


@pytest.mark.slow
def test_a_line_that_is_late_is_judged_all_the_same() -> None:
    hits = [Hit(BEGAN + n, RUDE, "/") for n in range(50_000)]
    log = written([*hits, Hit(BEGAN + 5, RUDE, "/private/late"), *rude(1)])
    [robot] = judged(log)["robots"]
    assert (robot["violations"], robot["requests"]) == (2, 50_002)
    assert robot["speed"]["gap_secs"] == {"p10": 1, "p50": 1, "p90": 1}


@pytest.mark.slow
def test_one_wrong_time_does_no_harm() -> None:
    hits = [Hit(BEGAN + n, RUDE, "/") for n in range(20_000)]
    hits.insert(10_000, Hit(BEGAN + 10**9, RUDE, "/"))
    [robot] = judged(written(hits))["robots"]
    assert robot["out_of_order"] == 0
    assert robot["requests"] == 20_001


# What is kept is bounded.


@pytest.mark.slow
def test_more_robots_than_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_auditor, "ROBOTS_MOST", 500)
    hits = [
        Hit(BEGAN + n, f"x{n:x}bot/1.0", "/private/1", client=f"10.0.{n % 256}.1")
        for n in range(5000)
    ]
    hits += rude(100)
    hits += [Hit(BEGAN + n, f"program{n:x}x/1", "/") for n in range(3000)]
    found = judged(written(sorted(hits, key=lambda hit: hit.secs)))
    rest, robots = found["not_kept_apart"], found["robots"]
    assert robots[0]["violations"] == 100
    assert rest["names"] > 4000
    assert rest["violations"] + sum(robot["violations"] for robot in robots) == 5100
    requests = rest["requests"] + found["unknown"]["requests"] + sum(r["requests"] for r in robots)
    assert requests == found["lines"]


def test_more_lines_than_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_auditor, "VIOLATIONS_MOST", 10)
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%d/\n" % n for n in range(100))
    log = written([Hit(BEGAN + n, RUDE, f"/{n}/") for n in range(100)])
    found = audited(log, versions=[Version("robots.txt", float("-inf"), body)])
    [robot] = found["robots"]
    assert robot["violations"] == 100
    assert robot["violated_rules"][0]["rule"] == "(lines that were not kept apart)"


@pytest.mark.long
def test_memory_does_not_grow_with_the_names_the_paths_and_the_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit_log, "HEADERS_KEPT", 500)
    monkeypatch.setattr(judging, "DECISIONS_KEPT", 500)
    monkeypatch.setattr(audit_auditor, "ROBOTS_MOST", 300)

    def most(count: int) -> int:
        log = written(
            Hit(BEGAN + n, f"b{n:x}x{n}bot/1", f"/{n:x}/{n}", client=f"10.{n % 250}.{n % 249}.1")
            for n in range(count)
        )
        tracemalloc.start()
        opened: list[tuple[str, Any]] = [("log", lambda: io.BytesIO(log))]
        audit(Files(ONE), opened, masked)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak - len(log)

    monkeypatch.setattr(merged_logs, "PIECE_BYTES", 1 << 16)
    most(100)
    most(1000)  # what is imported and compiled once does not count
    assert most(4000) < 1.2 * most(2000)


@pytest.mark.slow
def test_a_fetch_that_comes_late_does_not_take_the_place_of_a_later_one() -> None:
    hits = [Hit(BEGAN + n, RUDE, "/") for n in range(50_000)]
    hits[1] = Hit(BEGAN + 40_000, RUDE, "/robots.txt")
    log = written([*hits, Hit(BEGAN + 5, RUDE, "/robots.txt"), Hit(BEGAN + 49_999, RUDE, "/old/1")])
    versions = (*ONE, Version("second.txt", BEGAN + 30_000, SECOND))
    [robot] = audited(log, versions=versions)["robots"]
    assert (robot["violations"], robot["robots_txt_requests"]) == (1, 2)


def test_more_clients_without_a_name_than_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_auditor, "ASKERS_MOST", 2)
    hits = [Hit(BEGAN + n, "-", "/robots.txt", client=f"10.0.{n}.1") for n in range(5)]
    found = judged(written(hits))
    assert len(found["robots"]) == 2
    assert (found["not_kept_apart"]["clients"], found["nameless"]) == (3, 3)


def test_a_status_that_is_none_fetches_nothing() -> None:
    line = json.loads(written([Hit(BEGAN, RUDE, "/robots.txt")], "nginx-json"))
    log = json.dumps({**line, "status": []}).encode() + b"\n"
    [robot] = judged(log)["robots"]
    assert robot["asked"]["statuses"] == {"0": 1}


# Who is a robot.


@pytest.mark.parametrize(
    ("header", "name", "by"),
    [
        ("FigTree/0.1 Robot libwww-perl/5.04", "figtree", By.FILE),
        ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://google.example)", "googlebot", By.LIST),
        ("Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)", "yandexbot", By.LIST),
        ("Scrapy/2.13 (+https://scrapy.org)", "scrapy", By.LIST),
        ("Mozilla/5.0 (compatible; NewThing/1.0; +http://x.example)", "newthing", By.NOTHING),
        ("Mozilla/5.0 (compatible; SomeBot)", "somebot", By.ITSELF),
        ("SomeCrawler/1", "somecrawler", By.ITSELF),
        ("MyApp/3.1 CFNetwork", "myapp", By.NOTHING),
    ],
)  # fmt: skip
def test_names(header: str, name: str, by: By) -> None:
    namer = Namer([b"User-agent: FigTree/9 beta\nDisallow: /"])
    assert namer.named(header) == name
    assert namer.by(name) is by


@pytest.mark.parametrize(
    "header",
    [
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/120.0 Edg/120.0",
        "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Version/17.0 Mobile/15E148",
        "Mozilla/5.0 (Linux; Android 9; CUBOT X19) AppleWebKit/537.36 Chrome/99 Mobile Safari/537",
        "Opera/9.80 (Windows NT 6.1) Presto/2.12.388 Version/12.18",
        "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0)",
        "()<>@,;",
    ],
)
def test_browsers_have_no_name(header: str) -> None:
    assert Namer([b"User-agent: mozilla\nUser-agent: Chrome\nDisallow: /"]).named(header) is None


def test_without_a_header_a_client_that_asks_is_a_robot() -> None:
    hits = [
        Hit(BEGAN + n, "-", target, client=client)
        for n, (target, client) in enumerate(
            [("/private/0", "192.0.2.7"), ("/robots.txt", "192.0.2.7"), ("/private/1", "192.0.2.7"),
             ("/private/2", "192.0.2.8")]
        )
    ]  # fmt: skip
    for name in ("combined", "common"):
        found = judged(written(hits, name))
        [robot] = found["robots"]
        assert (robot["name"], robot["violations"]) == ("client 192.0.2.0/24", 1)
        assert found["nameless"] == 2


@pytest.mark.parametrize(
    ("client", "network"),
    [
        (b"192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2::3", "2001:db8:1::/48"),
        (b"host.isp.example", "*.isp.example"),
        (b"localhost", "*"),
        (b"\x1b[2J", "*"),
        (b"", "*"),
    ],
)
def test_addresses_are_masked(client: bytes | str, network: str) -> None:
    assert masked(client) == network
    assert whole(client).isprintable()


def test_of_a_site_alone() -> None:
    log = written(rude(3), "vhost") + written(rude(4, host="other.example"), "vhost")
    found = judged(log, site=site_of("http://WWW.fict.org/"))
    assert (found["elsewhere"], found["robots"][0]["violations"]) == (4, 3)
    assert found["lines"] == 7
