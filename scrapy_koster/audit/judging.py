"""Decides about requests of robots, and which copies of the file a robot may still use."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from scrapy_koster.protocol.delay import delay_of
from scrapy_koster.protocol.line import with_line_feeds
from scrapy_koster.protocol.path import origin_and_path
from scrapy_koster.protocol.reading import Reading, Rfc9309, RobotsTxt
from scrapy_koster.protocol.ruling import Standard
from scrapy_koster.protocol.site_status import Ground, SiteStatus, status_of_http
from scrapy_koster.protocol.wording import text_of

READINGS = (Standard.DRAFT, Standard.RFC_9309)
GRACE_SECS = {Standard.DRAFT: 7 * 86400, Standard.RFC_9309: 86400}
"""For how long a copy may be used: 3.4, "an expiry of 7 days"; RFC 9309, 2.4, 24 hours."""

FREE = -1
"""Replaces the number of a version if the site has answered that there is no file."""

_NOT_SENT = (444, 460, 499)
"""Statuses that nginx and AWS log if the client got no response."""

_READERS: dict[Standard, type[Reading]] = {Standard.DRAFT: RobotsTxt, Standard.RFC_9309: Rfc9309}
_RULE_CHARS = 300
ANSWERS_KEPT = 32_768
_KEPT_LENGTH = 512
_ORIGIN = b"http://site"
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"v": b"\v", b"f": b"\f"}


class Version(NamedTuple):
    """A version of the robots.txt."""

    name: str
    since: float
    """Start of the version in seconds since the epoch, minus infinity for the first version."""
    body: bytes


class Rule(NamedTuple):
    """A Disallow line. Several versions of the file can have the same line."""

    line: int
    """Number of the line, or 0 if unknown."""
    text: str
    record: int
    """The number of the first line of the record, or 0 if unknown."""


Decision: TypeAlias = dict[tuple[int, Standard], Rule]
"""The rules that disallow a path, by the number of a version and the reading."""


class RobotsRequest(NamedTuple):
    """A request for /robots.txt."""

    fetches: bool
    """Whether the response can have the file. False for HEAD."""


Answer: TypeAlias = "Decision | RobotsRequest | None"
"""The answer is None if no version disallows the request, or if the request has no path."""


class Files:
    """The versions of a robots.txt, by time."""

    def __init__(self, versions: Sequence[Version]) -> None:
        ordered = sorted(versions, key=lambda version: version.since)
        if ordered[0].since > float("-inf"):
            # An empty version: requests before the first date are not judged.
            ordered.insert(0, Version("", float("-inf"), b""))
        self.versions = ordered
        self._since = [version.since for version in ordered]

    def at(self, secs: float) -> int:
        """Return the number of the version at the time *secs*."""
        return bisect_right(self._since, secs) - 1


class Judge:
    """Answers which rules of the file disallow a request of a robot."""

    def __init__(self, files: Files) -> None:
        self._last = len(files.versions) - 1
        self._read = [
            (n, standard, _READERS[standard](version.body))
            for n, version in enumerate(files.versions)
            for standard in READINGS
            if version.body
        ]
        self._texts = [with_line_feeds(version.body).lower() for version in files.versions]
        self._names: dict[tuple[tuple[int, ...], ...], str] = {}
        self._first_named = lru_cache(ANSWERS_KEPT)(self._first_like)
        self._kept = lru_cache(ANSWERS_KEPT)(self._answer)

    def answer(self, name: str, request: bytes | str) -> Answer:
        """Return the answer to a request line, for the robot with the name token *name*."""
        is_long = len(request) > _KEPT_LENGTH  # not cached, to limit the memory
        return self._answer(name, request) if is_long else self._kept(name, request)

    def like(self, name: str) -> str:
        """Return a name that has the same records as *name*.

        Robots with the same records share cached answers. Of a name that is not in the file, the
        records are not searched: a log can have very many names.
        """
        return self._first_named(name if any(name in text for text in self._texts) else "")

    def _first_like(self, name: str) -> str:
        records = (reading.records(name) for _, _, reading in self._read)
        key = tuple(tuple(each.agents[0].number for each in some) for some in records)
        return self._names.setdefault(key, name)

    def _answer(self, name: str, request: bytes | str) -> Answer:
        method, path = method_and_path(request)
        if not path:
            return None
        if path.partition(b"?")[0] == b"/robots.txt":
            return RobotsRequest(method == b"GET")
        target = _ORIGIN + path
        url = target.decode() if target.isascii() else target
        found = {
            (n, standard): _rule(reading, url, name)
            for n, standard, reading in self._read
            if not reading.allowed(url, name)
        }
        return found or None

    def delay_secs(self, name: str, standard: Standard) -> float | None:
        """Return the delay of the robot in the last version, as *standard* reads it, or None."""
        read = (reading for n, by, reading in self._read if (n, by) == (self._last, standard))
        delays = (delay_of(each, name) for each in read)
        return next((delay.secs for delay in delays if delay), None)


def _rule(reading: Reading, url: str | bytes, name: str) -> Rule:
    ruling = reading.ruling(url, name)
    assert ruling.rule is not None  # only a rule disallows
    record = ruling.record.agents[0].number if ruling.record else 0
    return Rule(ruling.rule.number, text_of(ruling.rule, _RULE_CHARS), record)


def method_and_path(request: bytes | str) -> tuple[bytes, bytes]:
    """Return the method and the path of a request line. The path is empty if there is none.

    Bytes that Apache and nginx have escaped as ``\\xhh`` are decoded.
    """
    if isinstance(request, str):
        request = request.encode("utf-8", "surrogateescape")  # invalid UTF-8 is unchanged
    elif b"\\" in request:
        request = _ESCAPE.sub(_escaped, request)
    method, _, rest = request.partition(b" ")
    if method[:1] == b"/":
        return b"GET", request
    path, _, protocol = rest.rpartition(b" ")
    if not path or not protocol.startswith(b"HTTP/"):
        path = rest
    if path[:1] != b"/":
        if path[:7].lower() != b"http://" and path[:8].lower() != b"https://":
            return method, b""
        path = origin_and_path(path)[1].encode("latin-1")
    return method, path


def _escaped(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 16)])
    return _LETTERS.get(match[2], match[2])


class Knowledge:
    """Knows which versions a robot may use, from its fetches of the file."""

    def __init__(self, unseen_until: float) -> None:
        self.unseen_until = unseen_until
        """Until this time, the robot may have fetched the file without being noticed."""
        self.fetched: float | None = None
        self.version = FREE

    def fetch(self, secs: float, status: int, files: Files) -> None:
        """Note the fetched version, unless *status* means restricted or unavailable (3.1)."""
        if status in _NOT_SENT or (self.fetched is not None and secs < self.fetched):
            return  # no answer, or a line out of order
        site_status = SiteStatus.OBEYED if status == 304 else status_of_http(status)
        if not site_status.is_closed:
            self.fetched = secs
            self.version = files.at(secs) if site_status.ground is Ground.RULE else FREE

    def excuses(self, decision: Decision, standard: Standard, secs: float, files: Files) -> bool:
        """Return whether a copy that the robot can use at the time *secs* allows a request."""
        oldest = secs - GRACE_SECS[standard]  # an older copy has expired
        if self.fetched is not None and self.fetched <= secs:
            allows = self.version == FREE or (self.version, standard) not in decision
            return allows and oldest < self.fetched
        # Of a line out of order, it is not known which copy the robot had before its last fetch.
        until = self.unseen_until if self.fetched is None else secs
        held = range(files.at(oldest), files.at(until) + 1)
        return oldest <= until and any((n, standard) not in decision for n in held)
