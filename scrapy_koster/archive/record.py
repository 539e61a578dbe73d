"""The values of an archive: an attempt to retrieve a robots.txt, and a record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from scrapy_koster.protocol.access import CachedRobots, CacheEntry
from scrapy_koster.protocol.exchange import Exchange
from scrapy_koster.protocol.site import Site


class ArchiveError(Exception):
    """The archive cannot be read, or a record is missing."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to retrieve a robots.txt: the result, with the requests and responses."""

    site: Site
    known: CacheEntry
    source: str
    """Where the result comes from: a value of Source."""
    now: float
    """Time of the result, in seconds since the epoch."""
    exchanges: tuple[Exchange, ...] = ()
    """Requests and responses of the attempt; empty if the result comes from the storage."""
    stale: CachedRobots | None = None
    """The copy before the attempt, or None. A 304 refers to this copy."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The archived result of an attempt of a crawl to retrieve a robots.txt."""

    at: float
    """Time of the result, in seconds since the epoch."""
    source: str
    known: CacheEntry
    """The copy or failure without the body of the copy. ``Folder.whole`` adds the body."""
    body_bytes: int
    warc: Path
    """The WARC file that has the result."""


def outcome_url(site: Site) -> str:
    """Return the URI of the results about *site*. Other programs replay a robots.txt by its URL."""
    return f"urn:koster:{site.robots_url}"


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a WARC file (WARC 1.1, ISO 28500:2017)."""

    kind: str
    """WARC-Type, such as "response"."""
    date: float
    """WARC-Date, in seconds since the epoch."""
    body: bytes
    """Payload: the block without the HTTP header."""
    content_type: str
    url: str | None = None
    """WARC-Target-URI."""
    id: str = field(default_factory=lambda: f"<{uuid4().urn}>")
    """WARC-Record-ID with angle brackets."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Named fields without an attribute in this class, such as WARC-Refers-To.

    In a record that was read, these are the named fields of the file.
    """
    head: bytes = b""
    """HTTP header, including the empty line after it."""
