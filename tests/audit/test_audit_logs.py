"""Logs that are compressed, damaged, hostile, in many files, or out of order; days and ranges."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from harness.audit_logs import BEGAN, DAY, FIRST, Hit, log_of, sinners, written
from harness.audits import audited, day_of

from scrapy_koster.audit import access_log as audit_log
from scrapy_koster.audit import audited_robot, judging, merged_logs
from scrapy_koster.audit import auditor as audit_auditor
from scrapy_koster.audit.addresses import Ranges, masked, networks_in, whole
from scrapy_koster.audit.auditor import audit
from scrapy_koster.audit.judging import Files, Version, method_and_path
from scrapy_koster.audit.naming import By, Namer
from scrapy_koster.audit.result import Result
from scrapy_koster.audit.textlines import nginx_format
from scrapy_koster.audit.times import seconds_of
from scrapy_koster.protocol.wording import utc

ONE = (Version("robots.txt", float("-inf"), FIRST),)
RUDE = "rudebot/1.0"


def judged(*logs: bytes, **options: Any) -> dict[str, Any]:
    return audited(*logs, versions=ONE, **options)


def rude(count: int = 3, **more: Any) -> list[Hit]:
    return [Hit(BEGAN + n, RUDE, f"/private/{n}", **more) for n in range(count)]


# Compressed.


@pytest.mark.promise("docs/audit.md", "gz, bz2 and xz")
@pytest.mark.promise("docs/audit.md", "an archive that is damaged")
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_what_is_compressed_counts_up_to_its_damage(compress: Callable[[bytes], bytes]) -> None:
    log = written(rude(1000))
    half = log.index(b"\n", len(log) // 2) + 1
    members = compress(log[:half]) + compress(log[half:])
    assert judged(members) == judged(log)
    found = judged(members[: len(members) * 3 // 4])
    assert "damaged" in found["damaged"][0]["why"]
    assert 500 <= found["lines"] < 1000


# Lines.


def test_a_server_may_write_other_lines_when_it_starts() -> None:
    before, log = b'{"msg": "started"}\n' * 9_000, written(log_of(sinners()), "caddy")
    assert judged(before + log)["robots"] == judged(log)["robots"]


@pytest.mark.parametrize(("reading", "secs"), [("draft", None), ("rfc9309", 10.0)])
def test_the_delay_is_that_of_the_reading(reading: str, secs: float | None) -> None:
    """RFC 9309 joins the records for a name, the draft takes the first."""
    file = b"User-agent: *\nDisallow: /a\n\nUser-agent: *\nCrawl-delay: 10\n"
    versions = (Version("robots.txt", float("-inf"), file),)
    [robot] = audited(written(rude()), versions=versions, reading=reading)["robots"]
    assert robot["speed"]["crawl_delay_secs"] == secs


@pytest.mark.parametrize("more", ["", ", 10.0.0.1", ", 10.0.0.1, unknown"])
def test_the_client_is_the_first_address_of_x_forwarded_for(more: str) -> None:
    given = nginx_format('"$http_x_forwarded_for" $proxy [$time_local] "$request"')
    line = f'"192.0.2.7{more}" 10.0.0.9 [21/Nov/2026:20:00:00 +0000] "GET / HTTP/1.1"\n'
    [(client, *_)] = given.rows(line.encode())
    assert client == b"192.0.2.7"


@pytest.mark.promise("docs/audit.md", "a log can have any size")
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
def test_request_lines(request_line: bytes | str, found: tuple[bytes, bytes]) -> None:
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
def test_times(time: bytes | str | float) -> None:
    assert seconds_of(time) == 1795291200
    assert seconds_of("31/Dec/2016:23:59:60 +0000") == 1483228799


@pytest.mark.parametrize(
    "time", ["", "yesterday", "31/Feb/2026:20:00:00 +0000", "21/Foo/2026:20:00:00 +0000",
             float("nan"), "9" * 30],
)  # fmt: skip
def test_no_times(time: str | float) -> None:
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


@pytest.mark.promise("docs/audit.md", "several logs in any order")
@pytest.mark.slow
def test_logs_of_one_server_in_any_order() -> None:
    hits = log_of(sinners())
    parts = [written(hits[start : start + 700]) for start in range(0, len(hits), 700)]
    together = judged(written(hits))
    Random(1).shuffle(parts)
    assert judged(*parts) == together


@pytest.mark.promise("docs/audit.md", "lines can be out of order by a minute")
def test_lines_out_of_order_within_a_minute_make_no_difference() -> None:
    chance = Random(1)
    hits = log_of(sinners())
    late = sorted(hits, key=lambda hit: hit.secs + chance.randrange(60))
    found, together = judged(written(late)), judged(written(hits))
    assert [r["out_of_order"] for r in found["robots"]] == [0] * 50
    assert {r["name"]: (r["violations"], r["speed"]) for r in found["robots"]} == {
        r["name"]: (r["violations"], r["speed"]) for r in together["robots"]
    }


@pytest.mark.promise("docs/audit.md", "later lines are judged (out_of_order)")
@pytest.mark.slow
def test_a_line_that_is_late_is_judged_all_the_same() -> None:
    hits = [Hit(BEGAN + n, RUDE, "/") for n in range(5_000)]
    late = [Hit(BEGAN + 5, RUDE, "/private/late"), Hit(BEGAN - 5, RUDE, "/robots.txt")]
    late += [Hit(BEGAN + 7, "latebot/1", "/")]
    log = written([*hits, Hit(BEGAN + 5_000, RUDE, "/robots.txt"), *late, *rude(1)])
    robot, other = judged(log)["robots"]
    assert (robot["violations"], robot["requests"]) == (2, 5_004)
    assert other["first"] == other["last"] == utc(BEGAN + 7)
    assert robot["asked"]["first"] == robot["first"] == utc(BEGAN - 5)
    assert robot["speed"]["gap_secs"] == {"p10": 1, "p50": 1, "p90": 1}
    # Not by a copy that was fetched later: the one before may have allowed it.
    hits[200] = Hit(BEGAN + 200, RUDE, "/robots.txt")
    log = written([*hits, Hit(BEGAN + 150, RUDE, "/private/late")])
    versions = Version("old", float("-inf"), b""), Version("new", BEGAN + 100, FIRST)
    [robot] = audited(log, versions=versions)["robots"]
    assert (robot["violations"], robot["in_grace"]) == (0, 1)


@pytest.mark.parametrize(
    ("method", "status", "in_grace"),
    [("GET", 404, 1), ("GET", 499, 0), ("POST", 405, 0), ("HEAD", 404, 0)],
)
def test_what_gives_a_robot_no_grace(method: str, status: int, in_grace: int) -> None:
    asked = Hit(BEGAN, RUDE, "/robots.txt", status, method=method)
    [robot] = judged(written([asked, Hit(BEGAN + 1, RUDE, "/private/1")]))["robots"]
    assert (robot["violations"], robot["in_grace"]) == (1 - in_grace, in_grace)


def test_a_long_crawl_delay_that_is_kept() -> None:
    pace = audited_robot.Pace()
    pace.gaps[86_000] += 1  # a gap of a day, with two digits
    assert pace.kept(86_400) == 1


# Bounds of memory.


@pytest.mark.promise("docs/audit.md", "the 1,000 most frequent names; not_kept_apart")
@pytest.mark.slow
def test_more_robots_than_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_auditor, "ROBOTS_MOST", 100)
    monkeypatch.setattr(audit_auditor, "MERGED_AT_ONCE", 50)
    hits = [
        Hit(BEGAN + n, f"x{n:x}bot/1.0", "/private/1", client=f"10.0.{n % 256}.1")
        for n in range(1000)
    ]
    hits += rude(100)
    hits += [Hit(BEGAN + n, f"program{n:x}x/1", "/") for n in range(600)]
    found = judged(written(sorted(hits, key=lambda hit: hit.secs)))
    rest, robots = found["not_kept_apart"], found["robots"]
    assert robots[0]["violations"] == 100
    assert rest["names"] > 800
    assert rest["violations"] + sum(robot["violations"] for robot in robots) == 1100
    requests = rest["requests"] + found["unknown"]["requests"] + sum(r["requests"] for r in robots)
    assert requests == found["lines"]


@pytest.mark.promise("docs/audit.md", "20,000 pairs of a robot and a line")
def test_more_lines_than_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_auditor, "VIOLATIONS_MOST", 10)
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%d/\n" % n for n in range(100))
    log = written([Hit(BEGAN + n, RUDE, f"/{n}/") for n in range(100)])
    found = audited(log, versions=[Version("robots.txt", float("-inf"), body)])
    [robot] = found["robots"]
    assert robot["violations"] == 100
    assert robot["violated_rules"][0]["rule"] == "(lines that were not kept apart)"


@pytest.mark.promise("docs/audit.md", "an audit uses about 100 MB")
@pytest.mark.long
def test_memory_does_not_grow_with_the_names_the_paths_and_the_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit_log, "HEADERS_KEPT", 500)
    monkeypatch.setattr(judging, "ANSWERS_KEPT", 500)
    monkeypatch.setattr(audit_auditor, "ROBOTS_MOST", 300)

    def most(count: int) -> int:
        log = written(
            Hit(BEGAN + n, f"b{n:x}x{n}bot/1", f"/{n:x}/{n}", client=f"10.{n % 250}.{n % 249}.1")
            for n in range(count)
        )
        tracemalloc.start()
        opened: list[tuple[str, Any]] = [("log", lambda: io.BufferedReader(io.BytesIO(log)))]
        audit(Files(ONE), opened, masked)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak - len(log)

    monkeypatch.setattr(merged_logs, "PIECE_BYTES", 1 << 16)
    most(100)
    most(1000)  # memory for imports and patterns does not count
    assert most(4000) < 1.2 * most(2000)


def test_more_clients_without_a_name_than_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_auditor, "ASKERS_MOST", 2)
    hits = [Hit(BEGAN + n, "-", "/robots.txt", client=f"10.0.{n}.1") for n in range(5)]
    found = judged(written(hits))
    assert len(found["robots"]) == 2
    assert (found["not_kept_apart"]["clients"], found["nameless"]) == (3, 3)


# Robots and other programs.


@pytest.mark.promise("docs/audit.md", "known_by: file, list, header")
@pytest.mark.parametrize(
    ("header", "name", "by"),
    [
        ("FigTree/0.1 Robot libwww-perl/5.04", "figtree", By.FILE),
        ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://google.example)", "googlebot", By.LIST),
        ("Mozilla/5.0 (compatible; NewThing/1.0; +http://x.example)", "newthing", By.NOTHING),
        ("Mozilla/5.0 (compatible; SomeBot)", "somebot", By.ITSELF),
    ],
)  # fmt: skip
def test_names(header: str, name: str, by: By) -> None:
    namer = Namer([b"User-agent: FigTree/9 beta\nDisallow: /"])
    assert namer.named(header) == name
    assert namer.by(name) is by


@pytest.mark.promise("docs/audit.md", "a client without a User-Agent")
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


@pytest.mark.promise("docs/audit.md", "addresses are shown as networks")
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


# Days, published ranges, and a log that is cut.


@pytest.mark.promise("docs/audit.md", "day is null beyond 400 days")
def test_days_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited_robot, "DAYS_MOST", 3)
    hits = [Hit(BEGAN + n * DAY, RUDE, "/private/" if n != 2 else "/") for n in range(5)]
    days = judged(written(hits))["days"]
    assert [each["day"] for each in days] == [None, *(day_of(hit.secs) for hit in hits[:4])]
    assert [each["requests"] for each in days] == [2, 1, 1, 1, 0]
    assert [each["violations"] for each in days] == [1, 1, 1, 0, 1]


def test_days_of_robots_that_are_not_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_auditor, "ROBOTS_MOST", 4)
    monkeypatch.setattr(audit_auditor, "MERGED_AT_ONCE", 2)
    hits = [Hit(BEGAN + n, f"bot{n}/1", "/private/") for n in range(20)]
    found = judged(written(hits))
    assert found["not_kept_apart"]["names"] > 10
    assert found["days"] == [{"day": day_of(BEGAN), "requests": 20, "violations": 20}]


PUBLISHED = """{"creationTime": "2026-11-18T00:00:00.000000", "prefixes": [
  {"ipv6Prefix": "2001:db8:1::/48"}, {"ipv4Prefix": "192.0.2.0/27"},
  {"ipv4Prefix": "192.0.2.64/27"},
  {"service": "x"}, 7, "198.51.100.1"]}"""


@pytest.mark.promise("docs/audit.md", "googlebot (unverified); googlebot-image")
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


@pytest.mark.promise("docs/audit.md", "a log that shrinks while it is read")
def test_a_log_that_is_cut_while_it_is_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_bytes(written([Hit(BEGAN + n, RUDE, "/private/") for n in range(15_000)]))

    class Cutting(io.BufferedReader):
        def read1(self, size: int = -1) -> bytes:
            if self.tell() > path.stat().st_size // 2:
                path.write_bytes(b"")
            return super().read1(size)

    ended = audit(Files(ONE), [(str(path), lambda: Cutting(path.open("rb", buffering=0)))], masked)
    found = Result(*ended).to_dict()
    assert found["damaged"][0]["why"] == "it was cut while it was read: lines are missing"
    assert 0 < found["robots"][0]["requests"] < 15_000
