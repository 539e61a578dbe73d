"""Archives, written as a crawl does, and read by tools that are not ours: warcio and FastWARC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator
from warcio.cli import main as warcio

from scrapy_koster.archive.evidence import Evidence
from scrapy_koster.archive.record import Attempt, Record
from scrapy_koster.archive.warc import records_in
from scrapy_koster.archive.writer import Writer
from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.protocol.exchange import Exchange, digest_of
from scrapy_koster.protocol.site import Site

NOW = 1.8e9
BODY = b"User-agent: *\nDisallow: /a\n"


INFO = b"software: tests\r\nkoster-settings: {}\r\n"


def site_of(number: int) -> Site:
    return Site("http", f"h{number}.example", 80)


def attempt(site: Site, body: bytes = BODY, now: float = NOW) -> Attempt:
    url = site.robots_url
    header = ((b"Content-Type", b"text/plain"),)
    exchange = Exchange(
        url, now, ((b"User-Agent", b"x"),), 200, header, body, False, None, None, digest_of(body)
    )
    copy = CachedRobots(url, 200, body, None, None, now, now + 9)
    return Attempt(site, copy, "fetched", now, (exchange,))


def evidence(folder: Path) -> Evidence:
    return Evidence(Writer(str(folder), INFO, began=NOW), began=NOW)


def ours(path: Path) -> list[Record]:
    """The records of a file, as scrapy-koster reads them."""
    with path.open("rb") as file:
        return [record for _, _, record in records_in(file)]


@dataclass(frozen=True)
class Read:
    """A record, as FastWARC has it."""

    headers: Mapping[str, str]
    block: bytes


def warcs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.warc.gz"))


def read(folder: Path) -> list[Read]:
    """All records of an archive, in order."""
    return [record for path in warcs(folder) for record in records_of(path)]


def records_of(path: Path) -> Iterator[Read]:
    with path.open("rb") as file:
        for record in ArchiveIterator(file, parse_http=False):
            yield Read(dict(record.headers.items()), record.reader.read())


def check(folder: Path) -> None:
    """`warcio check` finds each digest right, and FastWARC each record with an id of its own."""
    paths = warcs(folder)
    assert paths
    said = StringIO()
    with redirect_stdout(said), pytest.raises(SystemExit) as ended:
        warcio(["check", "-v", *map(str, paths)])
    assert not ended.value.code, said.getvalue()
    assert "digest fail" not in said.getvalue(), said.getvalue()
    ids = [record.headers["WARC-Record-ID"] for record in read(folder)]
    assert len(ids) == len(set(ids))
