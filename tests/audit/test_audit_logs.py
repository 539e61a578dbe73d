"""Logs that are compressed, damaged, hostile, in many files, or out of order; published ranges."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from random import Random
from time import process_time
from typing import Any

import pytest
from harness.audit_logs import BEGAN, FIRST, Hit, log_of, sinners, written
from harness.audits import audited

from scrapy_koster.audit import auditor as audit_auditor
from scrapy_koster.audit.addresses import Ranges, masked, networks_in, whole
from scrapy_koster.audit.auditor import audit
from scrapy_koster.audit.judging import Files, Version, method_and_path
from scrapy_koster.audit.result import Result
from scrapy_koster.audit.textlines import nginx_format
from scrapy_koster.audit.times import seconds_of

ONE = (Version("robots.txt", float("-inf"), FIRST),)
RUDE = "rudebot/1.0"


def judged(*logs: bytes, **options: Any) -> dict[str, Any]:
    return audited(*logs, versions=ONE, **options)


def rude(count: int = 3, **more: Any) -> list[Hit]:
    return [Hit(BEGAN + n, RUDE, f"/private/{n}", **more) for n in range(count)]


# Compressed.


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_what_is_compressed_counts_up_to_its_damage(compress: Callable[[bytes], bytes]) -> None:
    log = written(rude(300))
    half = log.index(b"\n", len(log) // 2) + 1
    members = compress(log[:half]) + compress(log[half:])
    assert judged(members) == judged(log)
    found = judged(members[: len(members) * 3 // 4])
    assert "damaged" in found["damaged"][0]["why"]
    assert 150 <= found["lines"] < 300


# Lines.


def test_ten_megabytes_without_an_end_are_one_line() -> None:
    log = written(rude())
    found = judged(log + b"\xff" * 10_000_000 + b"\n" + b"a" * 66_000 + b"\n" + log)
    assert (found["lines"], found["unread"]) == (8, 2)
    assert found["robots"][0]["violations"] == 6


def test_escapes_of_a_text_log_are_read() -> None:
    target = "/private/\\xc3\\xa9\\x22\\\\\\n"
    log = written([Hit(BEGAN, RUDE + ' \\"x\\" \\\\', target)])
    [robot] = judged(log)["robots"]
    [each] = robot["violated_rules"]
    assert each["samples"] == ['/private/\xe9"\\\\n']
    hidden = written([Hit(BEGAN, RUDE, "/pri\\x76ate/1"), Hit(BEGAN, RUDE, "/pri%76ate/1")])
    assert judged(hidden)["robots"][0]["violations"] == 2
    # nginx without escape=json: \\xC3 is a byte.
    line = (
        rb'{"time_iso8601":"2026-11-21T21:00:00+00:00","remote_addr":"192.0.2.7","status":"200",'
        rb'"request":"GET /caf\xC3\xA9?a=\x22 HTTP/1.1","http_user_agent":"rudebot/1.0"}'
    )
    cafe = Version("robots.txt", float("-inf"), b"User-agent: *\nDisallow: /caf%C3%A9?a=%22")
    assert audited(line + b"\n", versions=[cafe])["robots"][0]["violations"] == 1


@pytest.mark.parametrize(
    ("request_line", "found"),
    [
        (b"GET /a b HTTP/1.1", (b"GET", b"/a b")),
        (b"HEAD http://a.example:80/x?y HTTP/1.1", (b"HEAD", b"/x?y")),
        (b"GET https://a.example HTTP/1.1", (b"GET", b"/")),
        (b"/only/a/path?x", (b"GET", b"/only/a/path?x")),
        (b"CONNECT a.example:443 HTTP/1.1", (b"CONNECT", b"")),
        (b"\\x16\\x03\\x01", (b"\x16\x03\x01", b"")),
        ("GET /\xe9 HTTP/2.0", (b"GET", b"/\xc3\xa9")),
    ],
)
def test_the_method_and_the_path_of_a_request_line(
    request_line: bytes | str, found: tuple[bytes, bytes]
) -> None:
    assert method_and_path(request_line) == found


@pytest.mark.parametrize(
    "time",
    [
        b"21/Nov/2026:21:30:00 +0130",
        "21/Nov/2026 20:00:00",
        "2026-11-21T15:00:00.999-05:00",
        b"1795291200.999",
        1795291200123,
    ],
)
def test_the_times_of_each_format_are_read(time: bytes | str | float) -> None:
    assert seconds_of(time) == 1795291200


@pytest.mark.parametrize(
    "time", ["", "yesterday", "31/Feb/2026:20:00:00 +0000", "21/Foo/2026:20:00:00 +0000",
             float("nan"), "9" * 30],
)  # fmt: skip
def test_what_is_no_time_is_none(time: str | float) -> None:
    assert seconds_of(time) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("$remote_addr", r"no \$time_local"),
        ("$time_local", r"no \$request in"),
        ('[$time_local] "$request" $remote_user$http_user_agent', "has to follow \\$remote_user"),
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
    Random(1).shuffle(parts)
    assert judged(*parts) == together


@pytest.mark.parametrize(
    ("method", "status", "in_grace"),
    [("GET", 404, 1), ("GET", 499, 0), ("POST", 405, 0), ("HEAD", 404, 0)],
)
def test_what_gives_a_robot_no_grace(method: str, status: int, in_grace: int) -> None:
    asked = Hit(BEGAN, RUDE, "/robots.txt", status, method=method)
    [robot] = judged(written([asked, Hit(BEGAN + 1, RUDE, "/private/1")]))["robots"]
    assert (robot["violations"], robot["in_grace"]) == (1 - in_grace, in_grace)


# Bounds of memory.


@pytest.mark.slow
def test_more_robots_than_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_auditor, "ROBOTS_MOST", 40)
    monkeypatch.setattr(audit_auditor, "MERGED_AT_ONCE", 20)
    hits = [
        Hit(BEGAN + n, f"x{n:x}bot/1.0", "/private/1", client=f"10.0.{n % 256}.1")
        for n in range(400)
    ]
    hits += rude(60)
    hits += [Hit(BEGAN + n, f"program{n:x}x/1", "/") for n in range(240)]
    long = Version("robots.txt", float("-inf"), FIRST + b"Disallow: /x\n" * 20_000)
    began = process_time()
    found = audited(written(sorted(hits, key=lambda hit: hit.secs)), versions=[long])
    assert process_time() - began < 5  # 168 s if the file is read for each name
    rest, robots = found["not_kept_apart"], found["robots"]
    assert robots[0]["violations"] == 60
    assert rest["names"] > 320
    assert rest["violations"] + sum(robot["violations"] for robot in robots) == 460
    requests = rest["requests"] + found["unknown"]["requests"] + sum(r["requests"] for r in robots)
    assert requests == found["lines"]


# Robots and other programs.


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
    # Section 3.2.1, A10: only the * record applies to a robot without a name.
    named = Version("robots.txt", float("-inf"), b"User-agent: client\nDisallow: /private")
    assert audited(written(hits), versions=[named])["robots"][0]["violations"] == 0


@pytest.mark.parametrize(
    ("client", "network"),
    [
        (b"192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2::3", "2001:db8:1::/48"),
        (b"host.isp.example", "*.isp.example"),
        (b"\x1b[2J", "*"),
        ("192.0.2.77:5000", "192.0.2.0/24"),
        ("::ffff:192.0.2.77", "192.0.2.0/24"),
    ],
)
def test_addresses_are_masked(client: bytes | str, network: str) -> None:
    assert masked(client) == network
    assert whole(client).isprintable()


# Published ranges.


PUBLISHED = """{"creationTime": "2026-11-18T00:00:00.000000", "prefixes": [
  {"ipv6Prefix": "2001:db8:1::/48"}, {"ipv4Prefix": "192.0.2.0/27"},
  {"ipv4Prefix": "192.0.2.64/27"},
  {"service": "x"}, 7, "198.51.100.1"]}"""


@pytest.mark.parametrize(
    "text", [PUBLISHED, "# ours\n192.0.2.0/27 # a\n192.0.2.64/27\n2001:db8:1::/48\n198.51.100.1\n"]
)
def test_what_is_not_from_the_published_ranges_is_another_robot(text: str) -> None:
    inside = ["192.0.2.1", "192.0.2.70", "2001:db8:1::5", "198.51.100.1", "::ffff:192.0.2.1"]
    outside = ["192.0.2.40", "203.0.113.9", "2001:db8:2::5", "a.example"]
    hits = [Hit(BEGAN + n, "Googlebot/2.1", "/a", client=c) for n, c in enumerate(inside)]
    hits += [Hit(BEGAN + n, "Googlebot/2.1", "/private/", client=c) for n, c in enumerate(outside)]
    hits += [Hit(BEGAN, "Googlebot-Image/1.0", "/a", client="203.0.113.9"), Hit(BEGAN, RUDE, "/a")]
    ranges = Ranges({"googlebot": networks_in(text)})
    log = written(sorted(hits, key=lambda hit: hit.secs))
    ended = audit(
        Files(ONE), [("log", lambda: io.BufferedReader(io.BytesIO(log)))], masked, ranges=ranges
    )
    found = Result(*ended, ranges=ranges).to_dict()
    by_name = {robot["name"]: robot for robot in found["robots"]}
    keys = ("requests", "violations", "verified")
    assert {name: tuple(map(robot.get, keys)) for name, robot in by_name.items()} == {
        "googlebot": (5, 0, True),
        "googlebot (unverified)": (4, 4, False),
        "googlebot-image (unverified)": (1, 0, False),
        "rudebot": (1, 0, None),
    }
    unverified = by_name["googlebot (unverified)"]
    assert (unverified["kind"], unverified["known_by"]) == ("search", "list")


@pytest.mark.parametrize("text", ["", "nonsense", '{"prefixes": 7}', "[" * 99_999])
def test_no_ranges(text: str) -> None:
    with pytest.raises(ValueError, match=r"address range|not appear to be"):
        networks_in(text)
