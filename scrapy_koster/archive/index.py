"""The CDXJ index of a WARC file: which record about which URL is where.

A line is the key of a URL (SURT), a time in 14 digits, and JSON. Lines are sorted, so a URL is
found by bisection. The first line has the size of the file that was indexed: an index of a file
that has grown since is made anew.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from ipaddress import ip_address
from mmap import ACCESS_READ, mmap
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO
from urllib.parse import urlsplit

from scrapy_koster.archive.record import Record, date_text, records_in

WARC_SUFFIX = ".warc.gz"

LINES_IN_MEMORY = 50_000
"""Beyond so many, an index is sorted in parts, which are in temporary files."""
_SPACE = re.compile(r"\s")
_NO_DIGIT = re.compile("[^0-9]")
_UNLISTED = ("warcinfo", "request")


class Index:
    """The lines of a file that grows, sorted when they are written. Memory is bounded."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._files = ExitStack()
        self._runs: list[IO[bytes]] = []

    def add(self, record: Record, *, offset: int, length: int, filename: str) -> None:
        """Add the line of *record*, if its kind is listed."""
        if record.kind in _UNLISTED or record.url is None:
            return
        digest = record.more.get("WARC-Payload-Digest") or record.more.get("Koster-Digest")
        told = {
            "url": record.url,
            "type": record.kind,
            "mime": record.content_type,
            "status": str(record.status or "-"),
            "digest": digest or "-",
            "record": record.id,
            "length": str(length),
            "offset": str(offset),
            "filename": filename,
        }
        when = _NO_DIGIT.sub("", date_text(record.date))[:14]
        self._lines.append(f"{key_of(record.url)} {when} {json.dumps(told)}\n".encode())
        if len(self._lines) >= LINES_IN_MEMORY:
            self._spill()

    def write(self, path: Path, size: int) -> None:
        """Write the index of a file of *size* bytes to *path*, whole or not at all."""
        part = path.with_name(f"{path.name}.{token_hex(4)}.part")
        try:
            with part.open("xb") as file:
                part.chmod(0o600)
                self.write_to(file, size)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def write_to(self, file: IO[bytes], size: int) -> None:
        """Write the index of a file of *size* bytes."""
        file.write(_first_line(size))
        file.writelines(heapq.merge(*self._runs, sorted(self._lines)))
        self.close()

    def close(self) -> None:
        """Give back what is held open."""
        self._lines, self._runs = [], []
        self._files.close()

    def _spill(self) -> None:
        run = self._files.enter_context(TemporaryFile())  # noqa: SIM115  # the stack closes it
        run.writelines(sorted(self._lines))
        run.seek(0)
        self._lines, self._runs = [], [*self._runs, run]


def index_path(warc: Path) -> Path:
    """Return where the index of *warc* is."""
    return warc.with_name(warc.name.removesuffix(WARC_SUFFIX) + ".cdxj")


@contextmanager
def index_of(warc: Path) -> Iterator[BinaryIO]:
    """Open the index of *warc*. One that is missing or old is made anew, and kept if possible.

    Raises OSError if *warc* cannot be read.
    """
    size, path = warc.stat().st_size, index_path(warc)
    with ExitStack() as stack:
        if _is_current(path, size):
            yield stack.enter_context(path.open("rb"))
            return
        index = indexed(warc)
        try:
            index.write(path, size)
            yield stack.enter_context(path.open("rb"))
        except OSError:  # it is in a place that may be read only
            file: Any = stack.enter_context(TemporaryFile())
            indexed(warc).write_to(file, size)
            yield file


def indexed(warc: Path) -> Index:
    """Return the index of the whole records of *warc*."""
    index = Index()
    with mapped(warc) as data:
        for offset, length, record in records_in(data):
            index.add(record, offset=offset, length=length, filename=warc.name)
    return index


@contextmanager
def mapped(warc: Path) -> Iterator[mmap | bytes]:
    """Open a file as a sequence of bytes."""
    with warc.open("rb") as file:
        if not warc.stat().st_size:
            yield b""
            return
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            yield data


def lines_about(file: BinaryIO, url: str) -> Iterator[dict[str, Any]]:
    """Yield what the lines of an index tell about *url*; a line that is not valid is left out."""
    key = f"{key_of(url)} ".encode()
    _to_first_line_from(file, key)
    for line in file:
        if not line.startswith(key):
            return
        try:
            told = json.loads(line.split(b" ", 2)[2])
            told = {**told, "offset": int(told["offset"])}
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            continue
        yield told


@lru_cache(maxsize=16)  # the records of an attempt have few
def key_of(url: str) -> str:
    """Return the key of *url*: its host from right to left, and its path (SURT).

    What is no URL is its own key: an archive may be anybody's.
    """
    try:
        parts = urlsplit(url)
        host, number = parts.hostname or "", parts.port
    except ValueError:
        return _SPACE.sub("%20", url)
    try:
        ip_address(host)
    except ValueError:
        host = ",".join(reversed(host.split(".")))
    default = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if number in (None, default) else f":{number}"
    query = f"?{parts.query}" if parts.query else ""
    return _SPACE.sub("%20", f"{host}{port}){parts.path or '/'}{query}")


def _to_first_line_from(file: BinaryIO, key: bytes) -> None:
    """Set *file* to the first line that is not less than *key*."""
    low, high = 0, file.seek(0, 2)
    while low < high:
        middle = (low + high) // 2
        file.seek(middle)
        if middle:
            file.readline()
        if (line := file.readline()) and line < key:
            low = middle + 1
        else:
            high = middle
    file.seek(low)
    if low:
        file.readline()


def _first_line(size: int) -> bytes:
    return b"!meta " + json.dumps({"format": "CDXJ", "size": size}).encode() + b"\n"


def _is_current(path: Path, size: int) -> bool:
    try:
        with path.open("rb") as file:
            return file.readline() == _first_line(size)
    except OSError:
        return False


def warc_files(folder: Path) -> Iterable[Path]:
    """Return the WARC files of *folder*, by name."""
    return sorted(folder.glob(f"*{WARC_SUFFIX}"))
