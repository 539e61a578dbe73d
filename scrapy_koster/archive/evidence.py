"""Turns the attempts of a crawl to retrieve a robots.txt into WARC records.

    request, response   an exchange as sent and received, also a redirect; a 304 is a revisit
    conversion          the file as obeyed, if the body was compressed, cut, or changed by a
                        middleware
    resource            a copy from the storage, on the first use
    metadata            the result in JSON: the "outcome" of an attempt

The new records of an attempt are written in one call, the outcome last.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from http.client import responses as phrases
from uuid import UUID

from scrapy_koster.archive.record import Attempt, Record, outcome_url
from scrapy_koster.archive.warc import date_text
from scrapy_koster.archive.writer import Writer
from scrapy_koster.protocol.access import CachedRobots, CacheEntry, FetchFailure, last_copy
from scrapy_koster.protocol.exchange import Exchange, digest_of
from scrapy_koster.protocol.path import origin_and_path
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import fields_of
from scrapy_koster.storage.latest import recorded_at

_RESPONSE = "application/http; msgtype=response"
_REQUEST = "application/http; msgtype=request"

_SENT = {
    b"accept", b"accept-encoding", b"host", b"if-modified-since", b"if-none-match", b"user-agent",
}  # fmt: skip
"""The archived request headers. Other headers can be secret."""
_NOT_RECEIVED = {b"set-cookie", b"set-cookie2", b"transfer-encoding"}
"""The response headers that are not archived: secrets, and an encoding that is decoded."""
_URLS = {b"location", b"content-location", b"refresh", b"link"}
_USER = re.compile(rb"(?<=//)[^/?#\s]*@")
_USER_OF_URL = re.compile(rb"\A([^/?#]*//)[^/?#\s]*@")
_REVISIT = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_REMEMBERED = 100_000


class Evidence:
    """Writes the results of a crawl into an archive."""

    def __init__(self, writer: Writer, *, began: float) -> None:
        """*began* is the start of the crawl, in seconds since the epoch.

        A copy that has a ``record_id`` and was fetched since then is archived already.
        """
        self._writer = writer
        self._began = began
        self._written: dict[object, None] = {}

    def add(self, attempt: Attempt) -> tuple[CacheEntry, int]:
        """Write *attempt*. Return its copy or failure, and the number of written records.

        The returned copy has the ID of its record. A copy or failure from the storage is written
        once: later it is returned unchanged, with the number 0. Raises OSError if *attempt* cannot
        be written.
        """
        outcome = attempt.site, recorded_at(attempt.known)
        if not attempt.exchanges and outcome in self._written:
            return attempt.known, 0
        known, records = self._records(attempt)
        self._writer.write(records)
        for key in (outcome, *(record.id for record in records if record.kind == "resource")):
            self._written[key] = None
            if len(self._written) > _REMEMBERED:
                del self._written[next(iter(self._written))]
        return known, len(records)

    def close(self) -> None:
        """Close the file, and write the index. Raises OSError."""
        self._writer.close()

    def _records(self, attempt: Attempt) -> tuple[CacheEntry, list[Record]]:
        records: list[Record] = []
        known, copy, held = attempt.known, last_copy(attempt.known), None
        is_renewed = any(exchange.status == 304 for exchange in attempt.exchanges[-1:])
        is_new = attempt.source == "fetched" and isinstance(known, CachedRobots) and not is_renewed
        if copy is not None and not is_new:
            # After a 304, the copy has a new date. Its body is in the record of ``attempt.stale``.
            held = self._held(attempt.site, attempt.stale or copy, records)
            copy = replace(copy, record_id=held.record_id)
        for exchange in attempt.exchanges:
            records += _hop(exchange, held)
        if copy is not None:
            copy = copy if held else _received(attempt, copy, records)
            known = replace(known, stale=copy) if isinstance(known, FetchFailure) else copy
        return known, [*records, _outcome(attempt, known)]

    def _held(self, site: Site, copy: CachedRobots, records: list[Record]) -> CachedRobots:
        """Return *copy* with the ID of its record. An unwritten record is added to *records*."""
        if copy.record_id is not None and copy.fetched >= self._began:
            return copy
        # The ID is derived from fields of the copy, so workers use the same ID for the same copy.
        name = f"{site} {copy.url} {copy.fetched!r} {copy.digest} {copy.cut_bytes}".encode()
        record_id = f"<{UUID(bytes=sha256(name).digest()[:16], version=5).urn}>"
        if copy.record_id != record_id or record_id not in self._written:
            records.append(replace(_of_body(copy), id=record_id))
        return replace(copy, record_id=record_id)


def _hop(exchange: Exchange, held: CachedRobots | None) -> list[Record]:
    """Return the records of a response and its request. A 304 is a revisit of *held*, if given."""
    url = _url(exchange.url)
    origin, target = origin_and_path(url)
    sent = [(name, value) for name, value in exchange.sent if name.lower() in _SENT]
    if not any(name.lower() == b"host" for name, _ in sent):
        sent.insert(0, (b"Host", origin.partition("://")[2].encode("latin-1")))
    received = [
        (name, _USER.sub(b"", value) if name.lower() in _URLS else value)
        for name, value in exchange.received
        if name.lower() not in _NOT_RECEIVED
    ]
    kind, more = "response", {"WARC-Payload-Digest": exchange.digest}
    if exchange.address is not None:
        more["WARC-IP-Address"] = exchange.address
    if exchange.is_cut:
        more["WARC-Truncated"] = "length"
    if exchange.status == 304 and held is not None:
        kind = "revisit"
        more |= {
            "WARC-Profile": _REVISIT,
            "WARC-Payload-Digest": held.digest,
            "WARC-Refers-To": held.record_id or "",
            "WARC-Refers-To-Target-URI": _url(held.url),
            "WARC-Refers-To-Date": date_text(held.fetched),
        }
    began, body, status = exchange.began, exchange.body, exchange.status
    head = _http(f"HTTP/1.1 {status} {phrases.get(status, '')}", received)
    response = Record(kind, began, body, _RESPONSE, url, more=more, head=head)
    more, head = {"WARC-Concurrent-To": response.id}, _http(f"GET {target} HTTP/1.1", sent)
    return [response, Record("request", began, b"", _REQUEST, url, more=more, head=head)]


def _received(attempt: Attempt, copy: CachedRobots, records: list[Record]) -> CachedRobots:
    """Return *copy* with the ID of the record that has its body.

    This is the last response in *records*. If there is no response, or if the response has another
    body, a record of the body is added. The copy of an error page has no body, and gets the ID of
    the response.
    """
    responses = [record for record in records if record.kind == "response"]
    if responses and copy.body in (b"", attempt.exchanges[-1].body):
        return replace(copy, record_id=responses[-1].id)
    body = _of_body(copy)
    if responses:
        more = {**body.more, "WARC-Refers-To": responses[-1].id}
        body = replace(body, kind="conversion", more=more)
    records.append(body)
    return replace(copy, record_id=body.id)


def _of_body(copy: CachedRobots) -> Record:
    more = {"WARC-Payload-Digest": digest_of(copy.body)}
    return Record("resource", copy.fetched, copy.body, "text/plain", _url(copy.url), more=more)


def _outcome(attempt: Attempt, known: CacheEntry) -> Record:
    copy, failure = fields_of(known)
    told: dict[str, object] = {"site": str(attempt.site), "source": attempt.source}
    more = {}
    if copy is not None:
        size = len(copy.pop("body"))
        told["copy"] = {**copy, "url": _url(copy["url"]), "bytes": size}
        more = {"Koster-Digest": copy["digest"], "WARC-Refers-To": copy["record_id"] or ""}
    if failure is not None and isinstance(known, FetchFailure):
        reason = _USER.sub(b"", known.reason.encode("utf-8", "replace")).decode()
        told["failure"] = {**failure, "reason": reason, "no_such_host": known.no_such_host}
    body, url = json.dumps(told).encode(), outcome_url(attempt.site)
    return Record("metadata", attempt.now, body, "application/json", url, more=more)


def _url(url: str) -> str:
    """Return *url* without the name and the password of a user."""
    return _USER_OF_URL.sub(rb"\1", url.encode("utf-8", "replace")).decode()


def _http(first: str, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    lines = [name + b": " + b" ".join(value.splitlines()) for name, value in fields]
    return b"\r\n".join((first.encode("latin-1"), *lines, b"", b""))
