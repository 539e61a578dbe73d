"""The CDXJ index of a WARC file, which finds the offsets of records by URL.

A line is the key of a URL (SURT), a time in 14 digits, and JSON. The first line has the size of the
indexed file. If the file has another size, the index is outdated and made again.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy_koster.archive.record import Record
from scrapy_koster.archive.warc import date_text, records_in
from scrapy_koster.writing import whole

WARC_SUFFIX = ".warc.gz"

_STATUS = re.compile(rb"HTTP/\S+ (\d{3})\b")
_TYPE = re.compile(rb"^Content-Type:[ \t]*([\w.+-]+/[\w.+-]+)", re.IGNORECASE | re.MULTILINE)
_WWW = re.compile(r"www\d*\.")


def index_lines(record: Record, *, offset: int, length: int, filename: str) -> list[bytes]:
    """Return a list with the line of *record*.

    The list is empty for a warcinfo or request record, and for a record without a URL.
    """
    if record.kind in ("warcinfo", "request") or record.url is None:
        return []
    digest = record.more.get("Koster-Digest") or record.more.get("WARC-Payload-Digest")
    status, mime = _STATUS.match(record.head), _TYPE.search(record.head)
    payload = mime[1].decode() if mime else "unk" if record.head else record.content_type
    fields = {
        "url": record.url,
        "type": record.kind,
        "mime": "warc/revisit" if record.kind == "revisit" else payload,
        "status": status[1].decode() if status else "-",
        "digest": digest or "-",
        "record": record.id,
        "length": str(length),
        "offset": str(offset),
        "filename": filename,
    }
    when = re.sub(r"\D", "", date_text(record.date))[:14]
    return [f"{key_of(record.url)} {when} {json.dumps(fields)}\n".encode()]


def index_path(warc: Path) -> Path:
    """Return the path of the index of *warc*."""
    return warc.with_name(warc.name.removesuffix(WARC_SUFFIX) + ".cdxj")


def write_index(warc: Path, lines: Iterable[bytes], size: int) -> None:
    """Write the index of *warc*, whole or not at all. Raises OSError.

    *size* is the size of *warc* in bytes.
    """
    with whole(str(index_path(warc))) as part:
        part.touch(0o600)
        part.write_bytes(_first_line(size) + b"".join(sorted(lines)))


def index_of(warc: Path) -> list[bytes]:
    """Return the lines of the index of *warc*.

    A missing or outdated index is made again, and written if possible.
    Raises OSError if *warc* cannot be read.
    """
    size = warc.stat().st_size
    with suppress(OSError):
        first, *lines = index_path(warc).read_bytes().splitlines(keepends=True) or [b""]
        if first == _first_line(size):
            return lines
    with warc.open("rb") as file:
        lines = [
            line
            for offset, length, record in records_in(file)
            for line in index_lines(record, offset=offset, length=length, filename=warc.name)
        ]
    with suppress(OSError):  # a read-only folder
        write_index(warc, lines, size)
    return lines


def fields_about(url: str, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the fields of valid lines that have the key of *url*."""
    key = f"{key_of(url)} ".encode()
    for line in lines:
        if line.startswith(key):
            with suppress(ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
                fields = json.loads(line.split(b" ", 2)[2])
                yield {**fields, "offset": min(max(int(fields["offset"]), 0), 2**62)}


def key_of(url: str) -> str:
    """Return the key of *url* (SURT): the host from right to left, the port, the path, the query.

    As in the indexes of other programs, the key is in lower case, and has no ``www.`` at the start
    of the host. The key of a URL without a host, or of an invalid URL in the archive of another
    program, is the URL with %20 for white space.
    """
    key = url
    with suppress(ValueError):
        parts = urlsplit(url)
        host, number = parts.hostname or "", parts.port
        if ":" not in host:  # not an IPv6 address
            host = ",".join(reversed(_WWW.sub("", host, 1).rstrip(".").split(".")))
        is_default = number in (None, {"http": 80, "https": 443}.get(parts.scheme))
        port = "" if is_default else f":{number}"
        query = f"?{parts.query}" if parts.query else ""
        if host:
            key = f"{host}{port}){parts.path or '/'}{query}".lower()
    return re.sub(r"\s", "%20", key)


def _first_line(size: int) -> bytes:
    return b"!meta " + json.dumps({"format": "CDXJ", "size": size}).encode() + b"\n"
