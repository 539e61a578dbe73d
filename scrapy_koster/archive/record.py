"""The values of an archive: what is to be written, and a record of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from scrapy_koster.protocol.access import Copy, Known
from scrapy_koster.protocol.exchange import Exchange
from scrapy_koster.protocol.site import Site


class ArchiveError(Exception):
    """The archive cannot be read, or lacks a record. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of a lookup of a robots.txt, with the exchanges that led to it."""

    site: Site
    known: Known
    source: str
    """Where the result comes from: a value of Source."""
    now: float
    """Time of the result, in seconds since the epoch."""
    exchanges: tuple[Exchange, ...] = ()
    """Requests and responses of the lookup; empty if the result comes from the storage."""
    stale: Copy | None = None
    """The revalidated copy, as it was before."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a WARC file (WARC 1.1, ISO 28500:2017)."""

    kind: str
    """WARC-Type, such as "response"."""
    date: float
    """WARC-Date, in seconds since the epoch."""
    body: bytes
    """Payload: the block without its HTTP header."""
    content_type: str
    url: str | None = None
    """WARC-Target-URI."""
    id: str = field(default_factory=lambda: f"<{uuid4().urn}>")
    """WARC-Record-ID, with its angle brackets."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Other named fields, such as WARC-Refers-To."""
    head: bytes = b""
    """HTTP header with its empty line. It is written, and not read back."""
    status: str = "-"
    """HTTP status of a response."""
