"""The files of an archive: records, indexes, and the rest after a writer was killed."""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
import signal
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from harness import forks
from harness.archives import BODY, NOW, attempt, check, evidence, ours, site_of, warcs
from harness.sizes import so_many
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.archive import writer
from scrapy_koster.archive.folder import Folder
from scrapy_koster.archive.history import changes
from scrapy_koster.archive.index import key_of
from scrapy_koster.archive.record import ArchiveError, Attempt, Record
from scrapy_koster.archive.warc import RECORD_MAX_BYTES, date_text, member_of, records_in
from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.protocol.exchange import digest_of
from scrapy_koster.protocol.site import Site

# Records


RECORD = Record(
    "response",
    NOW + 0.25,
    b"body",
    "application/http",
    "http://h/",
    head=b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n",
)


def read_back(data: bytes) -> list[tuple[int, int, Record]]:
    return list(records_in(BytesIO(data)))


def test_a_record_comes_back() -> None:
    data = member_of(RECORD)
    [(offset, length, record)] = read_back(data)
    assert (offset, length) == (0, len(data))
    assert replace(record, more={}) == RECORD
    assert record.more["WARC-Block-Digest"] == digest_of(RECORD.head + RECORD.body)


def test_a_field_is_one_line() -> None:
    more = {"X": "a\r\nWARC-Type: warcinfo"}
    [(_, _, record)] = read_back(member_of(Record("resource", NOW, b"a", "text/plain", more=more)))
    assert record.kind == "resource"
    assert record.more["X"] == "a  WARC-Type: warcinfo"


def packed(text: bytes) -> bytes:
    return gzip.compress(text, compresslevel=1, mtime=0)


WHOLE = gzip.decompress(member_of(RECORD))
DAMAGED = {
    "no gzip": b"WARC/1.1\r\n",
    "cut": member_of(RECORD)[:-20],
    "an octet changed": member_of(RECORD)[:-20] + b"\0" + member_of(RECORD)[-19:],
    "no record": packed(b"hello"),
    "no date": packed(WHOLE.replace(b"WARC-Date", b"X")),
    "a length that is none": packed(WHOLE.replace(b"Content-Length: ", b"Content-Length: x")),
    "another block": packed(WHOLE.replace(b"\r\nbody", b"\r\nBODY")),
    "a header without end": packed(b"WARC/1.1\r\n" + b"a: b\r\n" * 20_000),
    "too long": packed(b"WARC/1.1\r\n" + bytes(RECORD_MAX_BYTES)),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_file_is_read_up_to_its_first_damaged_record(data: bytes) -> None:
    found = [record.id for _, _, record in read_back(member_of(RECORD) + data)]
    assert found == [RECORD.id]
    assert read_back(data + member_of(RECORD)) == []


def test_times_of_clocks_that_went_wrong() -> None:
    assert [date_text(epoch)[:4] for epoch in (-1.0, 1e300)] == ["1970", "9999"]


# Files


def archived(folder: Path, *sites: Site) -> None:
    archive = evidence(folder)
    for site in sites:
        archive.add(attempt(site))
    archive.close()


def test_a_file_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FILE_MAX_BYTES", 3000)
    archived(tmp_path, *map(site_of, range(10)))
    assert len(warcs(tmp_path)) > 2
    check(tmp_path)
    folder = Folder(str(tmp_path))
    for number in range(10):
        [outcome] = folder.outcomes(site_of(number))
        known = folder.whole(outcome)
        assert isinstance(known, CachedRobots)
        assert known.body == BODY
        assert folder.info(outcome.warc)["software"] == "tests"


FULL = OSError(errno.ENOSPC, "full")


@pytest.mark.parametrize("fails", ["ftruncate", "nothing else"])
@pytest.mark.parametrize("first", [True, False])
def test_a_write_that_fails_leaves_whole_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, first: bool
) -> None:
    archive = evidence(tmp_path)
    if not first:
        archive.add(attempt(site_of(1)))
    write = os.write

    def fail(*_arguments: Any) -> None:
        raise FULL

    def write_half(file: int, octets: bytes) -> int:
        write(file, octets[: len(octets) // 2])
        raise FULL

    with monkeypatch.context() as patched:
        patched.setattr("os.write", write_half)
        if fails == "ftruncate":
            patched.setattr("os.ftruncate", fail)
        with pytest.raises(OSError, match="full"):
            archive.add(attempt(site_of(2)))
    archive.add(attempt(site_of(3)))
    archive.close()
    folder = Folder(str(tmp_path))
    seen = [len(folder.outcomes(site_of(number))) for number in (1, 2, 3)]
    assert seen == [0 if first else 1, 0, 1]


def test_a_site_forges_no_record_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member stores an incompressible body unchanged. So a body can contain gzip members, and a
    reader could take these for records, after the writer was killed inside of the body.
    """
    bodies = random.Random(1)
    # Some of the ids that chance gives are compressed with what surrounds them: 7 of 1,500.
    monkeypatch.setattr(
        "scrapy_koster.archive.record.uuid4",
        lambda: UUID(bytes=bodies.randbytes(16), version=4),
    )
    other = tmp_path / "forged"
    archived(other, site_of(2))
    forged = b"".join(member_of(record) for record in ours(warcs(other)[0]))
    archive = evidence(tmp_path)
    archive.add(attempt(site_of(1)))
    around = 100_000
    # Several times, because a single copy may be split by two blocks of the member.
    parts = [bodies.randbytes(around) + forged for _ in range(5)]
    archive.add(attempt(site_of(3), b"".join(parts) + bodies.randbytes(around)))
    [warc] = warcs(tmp_path)
    data = warc.read_bytes()
    assert forged in data
    warc.write_bytes(data[: data.index(forged) + len(forged) + around // 2])
    folder = Folder(str(tmp_path))
    assert [len(folder.outcomes(site_of(number))) for number in (1, 2, 3)] == [1, 0, 0]


# Indexes


@pytest.mark.parametrize(
    ("received", "mime"),
    [
        ([(b"content-type", b"text/plain; charset=utf-8")], "text/plain"),
        ([(b"X", b"Content-Type: a/b"), (b"Content-Type", b"Text/HTML")], "Text/HTML"),
        ([(b"Content-Type", b"\xe9t\xe9/x")], "unk"),
        ([], "unk"),
    ],
)
def test_an_index_has_what_the_site_sent(
    tmp_path: Path, received: list[tuple[bytes, bytes]], mime: str
) -> None:
    """As indexes that pywb makes. Our results have a URI of their own, so pywb replays no JSON."""
    first, archive = attempt(site_of(1)), evidence(tmp_path)
    [exchange] = first.exchanges
    known, _ = archive.add(replace(first, exchanges=(replace(exchange, received=tuple(received)),)))
    assert isinstance(known, CachedRobots)
    later = replace(known, fetched=NOW + 1)
    again = (replace(exchange, began=NOW + 1, status=304, body=b""),)
    archive.add(Attempt(site_of(1), later, "fetched", NOW + 1, again, known))
    archive.add(Attempt(site_of(2), copy_of(site_of(2), BODY, NOW - 5), "storage", NOW))
    archive.close()
    [path] = tmp_path.glob("*.cdxj")
    written = path.read_bytes()
    found = [json.loads(line.split(b" ", 2)[2]) for line in written.splitlines()[1:]]
    assert [(each["url"], each["mime"], each["status"]) for each in found] == [
        ("http://h1.example/robots.txt", mime, "200"),
        ("http://h1.example/robots.txt", "warc/revisit", "304"),
        ("http://h2.example/robots.txt", "text/plain", "-"),
        ("urn:koster:http://h1.example/robots.txt", "application/json", "-"),
        ("urn:koster:http://h1.example/robots.txt", "application/json", "-"),
        ("urn:koster:http://h2.example/robots.txt", "application/json", "-"),
    ]
    path.unlink()
    assert len(Folder(str(tmp_path)).outcomes(site_of(1))) == 2
    assert path.read_bytes() == written


WRONG_LINES = (b"", b"x", b"{}", b'{"offset": "x"}', b"[" * 100_000, b'{"offset": "-5"}')


@pytest.mark.parametrize("wrong", WRONG_LINES, ids=range(len(WRONG_LINES)))
def test_a_line_of_an_index_that_is_not_valid(tmp_path: Path, wrong: bytes) -> None:
    archived(tmp_path, site_of(1))
    [path] = tmp_path.glob("*.cdxj")
    first, *lines = path.read_bytes().splitlines(keepends=True)
    key = key_of(site_of(1).robots_url).encode()
    path.write_bytes(first + key + b" 1 " + wrong + b"\n" + b"".join(lines))
    assert len(Folder(str(tmp_path)).outcomes(site_of(1))) == 1


def test_an_archive_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").mkdir()
    with pytest.raises(ArchiveError, match=r"a\.warc\.gz.* cannot be read"):
        Folder(str(tmp_path)).outcomes(site_of(1))


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.clear(),
        lambda told: told.update(site="http://other.example"),
        lambda told: told["copy"].update(status="200"),
        lambda told: told["copy"].pop("bytes"),
        lambda told: told["copy"].update(bytes=float("inf")),
        lambda told: told.update(failure={"reason": 1}),
    ],
)
def test_an_outcome_that_is_not_valid(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    archived(tmp_path, site_of(1))
    [path] = warcs(tmp_path)
    data = path.read_bytes()
    offset, _, last = read_back(data)[-1]
    told = json.loads(last.body)
    change(told)
    wrong = Record("metadata", NOW, json.dumps(told).encode(), "application/json", last.url)
    path.write_bytes(data[:offset] + member_of(wrong))
    assert Folder(str(tmp_path)).outcomes(site_of(1)) == []


# A killed writer

KILLED = """
import sys
from pathlib import Path
from harness.archives import attempt, evidence, site_of
archive = evidence(Path(sys.argv[1]))
n = 0
while True:
    rules = b"Disallow: /x%d\\n" % n * (n * 7919 % 500)
    archive.add(attempt(site_of(n), b"User-agent: *\\n" + rules))
    n += 1
    print(n, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="it is killed by a signal of POSIX")
@pytest.mark.real_time
def test_a_writer_that_is_killed_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(33)
    for kill in range(so_many(2, 20)):
        folder = tmp_path / str(kill)
        process = forks.start("-c", KILLED, folder)
        assert process.stdout is not None
        wanted = chance.randrange(1, 100)
        for _ in range(wanted):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=forks.ENDS_SECS)
        [warc] = warcs(folder)
        assert not list(folder.glob("*.cdxj"))
        found = ours(warc)
        ids = [record.id for record in found]
        assert len(ids) == len(set(ids))
        outcomes = [record for record in found if record.kind == "metadata"]
        assert len(outcomes) >= wanted
        for number, record in enumerate(outcomes):
            assert json.loads(record.body)["site"] == str(site_of(number))
        archive = Folder(str(folder))
        for number in chance.sample(range(len(outcomes)), min(5, len(outcomes))):
            [outcome] = archive.outcomes(site_of(number))
            archive.whole(outcome)
        assert list(folder.glob("*.cdxj"))


# Versions and changes


def copy_of(site: Site, body: bytes, fetched: float) -> CachedRobots:
    return CachedRobots(site.robots_url, 200, body, None, None, fetched, fetched + 9)


LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b""]), max_size=12)


@given(LINES, LINES)
def test_changes_lead_from_one_file_to_the_other(old: list[bytes], new: list[bytes]) -> None:
    found = list(changes(old, new))
    gone, come = {was for was, _, _ in found if was}, {now for _, now, _ in found if now}
    assert [line for n, line in enumerate(old, 1) if n not in gone] == [
        line for n, line in enumerate(new, 1) if n not in come
    ]
    for was, now, line in found:
        assert line == (old[was - 1] if was else new[now - 1])
