"""A WARC record as bytes, and back (WARC 1.1, ISO 28500:2017): one gzip member each.

Written by hand, as the packages that do this cost ten times as much CPU as a record is worth:
an archive must not slow a crawl down.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from mmap import mmap
from uuid import uuid4

from scrapy_koster.protocol.exchange import digest_of

RECORD_MAX_BYTES = 2**25
"""Longer records are not read."""

_HEADER_MAX_BYTES = 2**17
_FIRST_BYTES, _NEXT_BYTES = 2**12, 2**16
_YEAR_9999 = 253402300799.0
_MEMBER = b"\x1f\x8b\x08"
_GZIP = 31
# Level, wbits and memLevel of zlib, by the length of a record. A short one is a member that is not
# packed: to pack the three records of a site took 38 us, this takes 4, and 3.2 kB of disk in place
# of 2.3. To set up the usual window takes longer than to pack a page.
_PACKING = ((2**11, (0, 16 + 12, 5)), (2**13, (3, 16 + 13, 6)))
_PACKING_LONG = (3, _GZIP, 8)
_VERSION = re.compile(rb"WARC/1\.[01]\r\n")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def new_id() -> str:
    """Return the ID of a new record."""
    return f"<{uuid4().urn}>"


@dataclass(frozen=True, slots=True)
class Record:
    """A record of an archive."""

    kind: str
    """Such as "response" (WARC-Type)."""
    date: float
    """In seconds since the epoch (WARC-Date)."""
    block: bytes
    content_type: str
    url: str | None = None
    """WARC-Target-URI."""
    id: str = field(default_factory=new_id)
    """WARC-Record-ID, with its angle brackets."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Other named fields, such as WARC-Refers-To."""

    @property
    def payload(self) -> bytes:
        """The block, without the header of HTTP if it has one."""
        if not self.content_type.startswith("application/http"):
            return self.block
        return self.block.partition(b"\r\n\r\n")[2]

    @property
    def status(self) -> int | None:
        """The status of the response in it, None if there is none."""
        if self.kind not in ("response", "revisit"):
            return None
        code = self.block.partition(b" ")[2][:3]
        return int(code) if code.isdigit() else None


def member_of(record: Record) -> bytes:
    """Return *record* as a gzip member of a WARC file."""
    named = [
        ("WARC-Type", record.kind),
        ("WARC-Record-ID", record.id),
        ("WARC-Date", date_text(record.date)),
        *(() if record.url is None else (("WARC-Target-URI", record.url),)),
        *record.more.items(),
        ("WARC-Block-Digest", digest_of(record.block)),
        ("Content-Type", record.content_type),
        ("Content-Length", str(len(record.block))),
    ]
    lines = [f"{name}: {value}" for name, value in named]
    if not "".join(lines).isprintable():
        lines = [_CONTROL.sub(" ", line) for line in lines]
    head = "\r\n".join(("WARC/1.1", *lines, "\r\n")).encode("utf-8", "replace")
    text = b"".join((head, record.block, b"\r\n\r\n"))
    packing = (how for most, how in _PACKING if len(text) <= most)
    level, wbits, memory = next(packing, _PACKING_LONG)
    packer = zlib.compressobj(level, wbits=wbits, memLevel=memory)
    return packer.compress(text) + packer.flush()


def record_at(data: mmap | bytes, offset: int) -> tuple[Record, int]:
    """Return the record whose member begins at *offset* of *data*, and where the member ends.

    Raises ValueError if there is no whole record, or one that is too long.
    """
    unpacker = zlib.decompressobj(_GZIP)
    pieces: list[bytes] = []
    size, end = 0, offset
    while not unpacker.eof:
        piece = data[end : end + (_NEXT_BYTES if pieces else _FIRST_BYTES)]
        if not piece:
            raise ValueError("the record is cut")
        try:
            text = unpacker.decompress(piece, RECORD_MAX_BYTES - size + 1)
        except zlib.error as error:
            raise ValueError(f"not a gzip member: {error}") from None
        pieces.append(text)
        size += len(text)
        if size > RECORD_MAX_BYTES:
            raise ValueError("the record is too long")
        if len(pieces) == 1 and not _VERSION.match(text):
            raise ValueError("not a WARC record")
        end += len(piece) - len(unpacker.unused_data)
    return _record(b"".join(pieces)), end


def records_in(data: mmap | bytes) -> Iterator[tuple[int, int, Record]]:
    """Yield the offset, the length and the record of each whole member of a file.

    What is damaged is passed over, and so is the record in which the writer was killed. A site may
    have sent members that are in it: they lack the ID of the warcinfo, which no site knows.
    """
    offset, info_id, is_damaged = 0, None, False
    while 0 <= offset < len(data):
        try:
            record, end = record_at(data, offset)
            is_ours = not is_damaged or record.more.get("WARC-Warcinfo-ID") == info_id
        except ValueError:
            is_ours = False
        if not is_ours:
            offset, is_damaged = data.find(_MEMBER, offset + 1), True
            continue
        yield offset, end - offset, record
        if record.kind == "warcinfo" and not is_damaged:
            info_id = record.id
        offset = end


@lru_cache(maxsize=16)  # the records of an attempt have few
def date_text(epoch: float) -> str:
    """Return a time as WARC-Date has it, in UTC."""
    time = datetime.fromtimestamp(min(max(epoch, 0.0), _YEAR_9999), timezone.utc)
    return f"{time.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def epoch_of(text: str) -> float:
    """Return the time that ``date_text`` has written; ValueError if it is none."""
    time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    epoch = time.replace(tzinfo=time.tzinfo or timezone.utc).timestamp()
    if not 0 <= epoch <= _YEAR_9999:
        raise ValueError("not a time of the years 1970 to 9999")
    return epoch


def _record(text: bytes) -> Record:
    head, _, rest = text.partition(b"\r\n\r\n")
    if len(head) > _HEADER_MAX_BYTES:
        raise ValueError("the header is too long")
    named: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        named[name.strip()] = value.strip()
    try:
        length = int(named.pop("Content-Length"))
        record = Record(
            kind=named.pop("WARC-Type"),
            id=named.pop("WARC-Record-ID"),
            date=epoch_of(named.pop("WARC-Date")),
            url=named.pop("WARC-Target-URI", None),
            content_type=named.pop("Content-Type", ""),
            block=rest[: max(length, 0)],
            more=named,
        )
    except KeyError as error:
        raise ValueError(f"the record has no {error}") from None
    if len(record.block) != length:
        raise ValueError("the block is cut")
    if named.pop("WARC-Block-Digest", None) not in (None, digest_of(record.block)):
        raise ValueError("the block has another digest")
    return record
