"""What a crawl has learnt of a site, as records.

    request, response   each hop, as it was sent and received; a 304 is a revisit
    conversion          the file as it was obeyed, if that is not what was received: it was
                        compressed, or a middleware has changed it
    resource            a copy that came out of the storage, on its first use
    metadata            what the crawl made of that, in JSON: its "outcome"

Every outcome is written after the records that it refers to, in one call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from http import HTTPStatus
from typing import Any
from uuid import UUID

from scrapy_koster.archive.record import Record, date_text, new_id
from scrapy_koster.archive.writer import Writer
from scrapy_koster.protocol.access import Copy, Failure, Known, last_copy
from scrapy_koster.protocol.exchange import Exchange, digest_of
from scrapy_koster.protocol.line import whole_lines
from scrapy_koster.protocol.path import origin_and_path
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import COPY_FIELDS, FAILURE_FIELDS
from scrapy_koster.storage.latest import learnt

OUTCOME_TYPE = "application/json"
_RESPONSE_TYPE = "application/http; msgtype=response"
_REQUEST_TYPE = "application/http; msgtype=request"

_SENT = {
    b"accept", b"accept-encoding", b"host", b"if-modified-since", b"if-none-match", b"user-agent",
}  # fmt: skip
"""The request headers that are written: others may be secret."""
_NOT_RECEIVED = {b"set-cookie", b"set-cookie2", b"transfer-encoding"}
"""The response headers that are not: secrets, and what no longer holds."""
_URLS = {b"location", b"content-location", b"refresh", b"link"}
_USER = re.compile(rb"(?<=//)[^/?#\s]*@")
_USER_OF_URL = re.compile(rb"\A([^/?#]*//)[^/?#\s]*@")
_LINE_END = re.compile(rb"[\r\n]+")
_REVISIT = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is to be written: something was learnt of a site."""

    site: Site
    known: Known
    source: str
    """Where it comes from: a value of Source."""
    now: float
    """When it was learnt, in seconds since the epoch."""
    exchanges: tuple[Exchange, ...] = ()
    """What was sent and received for it; none if it comes out of the storage."""
    stale: Copy | None = None
    """The copy that was revalidated, as it was before."""


class Evidence:
    """Writes what a crawl learns. Its methods are called in one thread, one after the other."""

    def __init__(self, writer: Writer, *, began: float) -> None:
        """*began* is when the crawl did, in seconds since the epoch.

        A copy that was fetched later, and has a record, is in the archive of another worker.
        """
        self._writer = writer
        self._began = began
        self._written: dict[str, None] = {}
        self._outcomes: dict[tuple[Site, float], None] = {}

    def add(self, attempt: Attempt) -> tuple[Known, int]:
        """Write *attempt*; return what is known, with the record of its copy, and how many records.

        Raises OSError if they cannot be written: none of them is.
        """
        outcome = attempt.site, learnt(attempt.known)
        if not attempt.exchanges and outcome in self._outcomes:
            return attempt.known, 0
        self._writer.open()
        records, known = self._records(attempt)
        self._writer.write(records)
        _remember(self._outcomes, outcome)
        for record in records:
            if record.kind == "resource":
                _remember(self._written, record.id)
        return known, len(records)

    def close(self) -> None:
        """End the file, and write its index. Raises OSError."""
        self._writer.close()

    def _records(self, attempt: Attempt) -> tuple[list[Record], Known]:
        records: list[Record] = []
        known, copy, held = attempt.known, last_copy(attempt.known), None
        if copy is not None and not _is_new(attempt):
            # One that was renewed has another date, and the record that it had before.
            held = self._held(attempt.site, attempt.stale or copy, records)
            copy = replace(copy, record_id=held.record_id)
        for exchange in attempt.exchanges:
            records += self._hop(exchange, held)
        if copy is not None and isinstance(known, Copy) and _is_new(attempt):
            copy = self._received(attempt, copy, records)
        known = copy if isinstance(known, Copy) and copy else known
        if isinstance(known, Failure):
            known = replace(known, stale=copy)
        records.append(self._outcome(attempt, known))
        return records, known

    def _held(self, site: Site, copy: Copy, records: list[Record]) -> Copy:
        """Return *copy* with the record of its body, which is written if no worker has one."""
        if copy.record_id is not None and copy.fetched >= self._began:
            return copy
        # By what it is, not by chance: workers that write the same copy name it alike.
        name = f"{site} {copy.url} {copy.fetched!r} {copy.digest} {copy.cut_bytes}".encode()
        record_id = f"<{UUID(bytes=sha256(name).digest()[:16], version=5).urn}>"
        if copy.record_id == record_id and record_id in self._written:
            return copy
        more = self._common() | {"WARC-Payload-Digest": digest_of(copy.body)}
        records.append(
            Record(
                "resource", copy.fetched, copy.body, "text/plain", _url(copy.url), record_id, more
            )
        )
        return replace(copy, record_id=record_id)

    def _hop(self, exchange: Exchange, held: Copy | None) -> Iterable[Record]:
        url, response_id = _url(exchange.url), new_id()
        origin, target = origin_and_path(url)
        sent = [(name, value) for name, value in exchange.sent if name.lower() in _SENT]
        if not any(name.lower() == b"host" for name, _ in sent):
            sent.insert(0, (b"Host", origin.partition("://")[2].encode("latin-1")))
        kind, more = "response", self._common() | {"WARC-Payload-Digest": exchange.digest}
        if exchange.address is not None:
            more["WARC-IP-Address"] = exchange.address
        if exchange.is_cut:
            more["WARC-Truncated"] = "length"
        if exchange.status == 304 and held is not None:
            kind = "revisit"
            more |= _of_revisit(held)
        received = []
        for name, value in exchange.received:
            lower = name.lower()
            if lower not in _NOT_RECEIVED:
                shown = _USER.sub(b"", value) if lower in _URLS else value
                received.append((name, shown))
        status = b"HTTP/1.1 %d %s" % (exchange.status, _phrase(exchange.status))
        block = _http(status, received) + exchange.body
        yield Record(kind, exchange.began, block, _RESPONSE_TYPE, url, response_id, more)
        more = self._common() | {"WARC-Concurrent-To": response_id}
        block = _http(f"GET {target} HTTP/1.1".encode("latin-1"), sent)
        yield Record("request", exchange.began, block, _REQUEST_TYPE, url, more=more)

    def _received(self, attempt: Attempt, copy: Copy, records: list[Record]) -> Copy:
        """Return the copy of an answer with the record of its body."""
        last = attempt.exchanges[-1] if attempt.exchanges else None
        responses = [record for record in records if record.kind == "response"]
        if last is not None and copy.digest == last.digest and _is_obeyed(last.body, copy):
            return replace(copy, record_id=responses[-1].id)
        more = self._common() | {"WARC-Payload-Digest": digest_of(copy.body)}
        kind = "resource"
        if responses:
            kind, more["WARC-Refers-To"] = "conversion", responses[-1].id
        record = Record(kind, copy.fetched, copy.body, "text/plain", _url(copy.url), more=more)
        records.append(record)
        return replace(copy, record_id=record.id)

    def _outcome(self, attempt: Attempt, known: Known) -> Record:
        copy = last_copy(known)
        told: dict[str, object] = {"site": str(attempt.site), "source": attempt.source}
        more = self._common()
        if copy is not None:
            fields = {name: getattr(copy, name) for name in COPY_FIELDS if name != "body"}
            told["copy"] = {**fields, "url": _url(copy.url), "bytes": len(copy.body)}
            more["Koster-Digest"] = copy.digest
            if copy.record_id is not None:
                more["WARC-Refers-To"] = copy.record_id
        if isinstance(known, Failure):
            failure = {name: getattr(known, name) for name in FAILURE_FIELDS}
            reason = _USER.sub(b"", known.reason.encode("utf-8", "replace")).decode()
            told["failure"] = {**failure, "reason": reason, "no_such_host": known.no_such_host}
        block = json.dumps(told).encode()
        url = attempt.site.robots_url
        return Record("metadata", attempt.now, block, OUTCOME_TYPE, url, more=more)

    def _common(self) -> dict[str, str]:
        return {"WARC-Warcinfo-ID": self._writer.info_id}


def _is_obeyed(received: bytes, copy: Copy) -> bool:
    """Return whether *copy* is obeyed as it was received, but for what was cut."""
    if not copy.body:  # an error page is not kept
        return True
    kept = received if copy.cut_bytes is None else whole_lines(received, copy.cut_bytes)
    return kept == copy.body


def _is_new(attempt: Attempt) -> bool:
    """Return whether the copy is one that its site has sent now."""
    known, exchanges = attempt.known, attempt.exchanges
    return (
        attempt.source == "fetched"
        and isinstance(known, Copy)
        and not (exchanges and exchanges[-1].status == 304)
    )


def _of_revisit(copy: Copy) -> dict[str, str]:
    return {
        "WARC-Profile": _REVISIT,
        "WARC-Payload-Digest": copy.digest,
        "WARC-Refers-To": copy.record_id or "",
        "WARC-Refers-To-Target-URI": _url(copy.url),
        "WARC-Refers-To-Date": date_text(copy.fetched),
    }


def _url(url: str) -> str:
    """Return *url* without the name and the password of a user."""
    return _USER_OF_URL.sub(rb"\1", url.encode("utf-8", "replace")).decode()


def _http(first: bytes, lines: Iterable[tuple[bytes, bytes]]) -> bytes:
    named = [
        name + b": " + (_LINE_END.sub(b" ", value) if b"\n" in value or b"\r" in value else value)
        for name, value in lines
    ]
    return b"\r\n".join((first, *named, b"", b""))


def _phrase(status: int) -> bytes:
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""


def _remember(seen: dict[Any, None], key: object) -> None:
    seen[key] = None
    if len(seen) > _REMEMBERED:
        del seen[next(iter(seen))]
