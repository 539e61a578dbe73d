"""Counts by day, published address ranges, and logs that are cut during an audit."""

from __future__ import annotations

from datetime import datetime, timezone
from io import BufferedReader, BytesIO
from pathlib import Path

import pytest
from harness.audit_logs import BEGAN, DAY, FIRST, Hit, written
from harness.audits import audited

from scrapy_koster.audit import audited_robot, auditor
from scrapy_koster.audit.addresses import Ranges, masked, networks_in
from scrapy_koster.audit.auditor import audit
from scrapy_koster.audit.judging import Files, Version
from scrapy_koster.audit.result import Result

ONE = (Version("robots.txt", float("-inf"), FIRST),)
RUDE = "rudebot/1.0"


def day_of(secs: int) -> str:
    return datetime.fromtimestamp(secs, timezone.utc).strftime("%Y-%m-%d")


@pytest.mark.promise("docs/audit.md", "day is null beyond 400 days")
def test_days_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited_robot, "DAYS_MOST", 3)
    hits = [Hit(BEGAN + n * DAY, RUDE, "/private/") for n in range(5)]
    days = audited(written(hits), versions=ONE)["days"]
    assert [each["day"] for each in days] == [None, *(day_of(hit.secs) for hit in hits[:3])]
    assert [each["violations"] for each in days] == [2, 1, 1, 1]


def test_days_of_robots_that_are_not_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditor, "ROBOTS_MOST", 4)
    monkeypatch.setattr(auditor, "MERGED_AT_ONCE", 2)
    hits = [Hit(BEGAN + n, f"bot{n}/1", "/private/") for n in range(20)]
    found = audited(written(hits), versions=ONE)
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
        Files(ONE), [("log", lambda: BufferedReader(BytesIO(log)))], masked, ranges=ranges
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

    class Cutting(BufferedReader):
        def read1(self, size: int = -1) -> bytes:
            if self.tell() > path.stat().st_size // 2:
                path.write_bytes(b"")
            return super().read1(size)

    ended = audit(Files(ONE), [(str(path), lambda: Cutting(path.open("rb", buffering=0)))], masked)
    found = Result(*ended).to_dict()
    assert found["damaged"][0]["why"] == "it was cut while it was read: lines are missing"
    assert 0 < found["robots"][0]["requests"] < 15_000
