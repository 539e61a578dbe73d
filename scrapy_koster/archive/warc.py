"""WARC records in gzip members, written and read by warcio (the extra ``archive``)."""

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from io import BytesIO
from typing import Any, BinaryIO

from scrapy_koster.archive.record import Record
from scrapy_koster.protocol.exchange import digest_of

try:
    from warcio import ArchiveIterator, StatusAndHeaders, WARCWriter
    from warcio.recordloader import ArcWarcRecord
except ImportError as error:
    raise ImportError('An archive needs warcio: pip install "scrapy-koster[archive]"') from error

RECORD_MAX_BYTES = 2**25
"""Reading a file stops at a longer record."""

_YEAR_9999 = 253402300799.0
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def member_of(record: Record) -> bytes:
    """Return *record* as a gzip member of a WARC file."""
    block = record.head + record.body
    named = {
        "WARC-Type": record.kind,
        "WARC-Record-ID": record.id,
        "WARC-Date": date_text(record.date),
        **({} if record.url is None else {"WARC-Target-URI": record.url}),
        **record.more,
        "WARC-Block-Digest": digest_of(block),
    }
    fields = [(name, _CONTROL.sub(" ", value)) for name, value in named.items()]
    headers = StatusAndHeaders("", fields, protocol="WARC/1.1")
    stream, length = BytesIO(block), len(block)
    # Pass the type "warcinfo", because warcio writes such a record unchanged. With "revisit",
    # warcio would encode the HTTP header again. With other types, warcio would add its own digests.
    whole = ArcWarcRecord("warc", "warcinfo", headers, stream, None, record.content_type, length)
    packed = BytesIO()
    WARCWriter(packed).write_record(whole)
    return packed.getvalue()


def records_in(file: BinaryIO) -> Iterator[tuple[int, int, Record]]:
    """Yield the offset, the length and the record of each member, from the position of *file* on.

    Reading stops at the first damaged member, for example after a writer was killed. The rest
    of the file may be the body of a response, forged to look like members. Raises OSError.
    """
    members = ArchiveIterator(file, no_record_parse=True)
    try:
        for member in members:
            record = _record(member)
            yield members.get_record_offset(), members.get_record_length(), record
    except OSError:
        raise
    except Exception:  # noqa: BLE001  # warcio raises many kinds
        return


def date_text(epoch: float) -> str:
    """Return a time as a WARC-Date, in UTC."""
    time = datetime.fromtimestamp(min(max(epoch, 0.0), _YEAR_9999), timezone.utc)
    return f"{time.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _record(found: Any) -> Record:
    """Return a record read by warcio. Raises ValueError or KeyError if damaged or too long."""
    named = dict(found.rec_headers.headers)
    block, content_type = found.raw_stream.read(RECORD_MAX_BYTES), named.get("Content-Type", "")
    # warcio checks no digest of a revisit.
    if digest_of(block) != named["WARC-Block-Digest"]:
        raise ValueError("the record is too long, cut, or has another digest")
    is_http = content_type.startswith("application/http")
    head, end, body = block.partition(b"\r\n\r\n") if is_http else (b"", b"", block)
    time = datetime.fromisoformat(named["WARC-Date"].removesuffix("Z"))
    return Record(
        kind=named["WARC-Type"],
        date=time.replace(tzinfo=timezone.utc).timestamp(),
        body=body,
        content_type=content_type,
        url=named.get("WARC-Target-URI"),
        id=named["WARC-Record-ID"],
        more=named,
        head=head + end,
    )
