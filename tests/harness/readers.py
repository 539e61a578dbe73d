"""Whatever reads text from the network."""

from __future__ import annotations

import gzip
import json
import zlib
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from urllib.parse import clear_cache  # type: ignore[attr-defined]

from scrapy import Request
from scrapy.utils.request import RequestFingerprinter

from harness.audits import audited
from harness.doubling import Reader
from harness.wrong_settings import OVERRIDE
from scrapy_koster.archive.folder import _outcome
from scrapy_koster.archive.history import changes
from scrapy_koster.archive.index import fields_about
from scrapy_koster.archive.record import Record
from scrapy_koster.archive.warc import member_of, records_in
from scrapy_koster.audit.jsonlines import json_rows
from scrapy_koster.audit.judging import method_and_path
from scrapy_koster.audit.naming import Namer
from scrapy_koster.audit.textlines import BALANCER, COMMON, NAMED, nginx_format
from scrapy_koster.audit.w3clines import W3cFormat
from scrapy_koster.checker.syntax import check
from scrapy_koster.crawl.fetching.decoding import decoded as unpacked
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.parking.parked_file import ParkedFile
from scrapy_koster.parsers import KosterRobotParser, StrictestRobotParser
from scrapy_koster.protocol.access import Answer, CachedRobots, after_answer, redirect_target
from scrapy_koster.protocol.delay import longest_delay, names_delay
from scrapy_koster.protocol.hazard import watch_of
from scrapy_koster.protocol.html_page import page_in_place
from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.metatags import metas_of_page
from scrapy_koster.protocol.override import choice, overrides_of
from scrapy_koster.protocol.policy import Policy
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.reading import Reading, Rfc9309, RobotsTxt
from scrapy_koster.protocol.records import has_record, parse
from scrapy_koster.protocol.robotsmeta import ROBOTS_FIELDS, directives_of, names_for
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.sitemap import sitemap_urls_in, sitemaps_in
from scrapy_koster.protocol.usage import Usage, preferences_in
from scrapy_koster.protocol.usage_statements import FIELDS, page_statements, usage_lines
from scrapy_koster.storage.encoding import decoded, fields_of, known_from, site_named

_GZIPS = [gzip.compress(b"#" * n) for n in range(3)]
_HEADS = {"gzip": _GZIPS[0][:10], "deflate": b"x\x9c", "br": b"\x0b", "zstd": b"(\xb5/\xfd"}
_MAX_BYTES = 512_000
_KNOWN = CachedRobots("http://h/robots.txt", 200, b"", None, None, 1.0, 2.0)
_COPY = fields_of(_KNOWN)[0] or {}
_FAILURE: dict[str, object] = {
    "reason": "HTTP 503", "attempts": 1, "since": 1.0, "asked": 1.0, "retry": 2.0
}  # fmt: skip
_ROBOT = "figtree"
_CHECKED = RobotsTxt(
    b"User-agent: *\nDisallow: /a\nDisallow: /%41\nAllow: /aaaa\nDisallow: /aaaaaa"
)


def _decide(reading: Reading) -> None:
    for path in ("/", "/a/a/a", "/" + "a" * 2_000, "/12345?a=%2F", "/%41%0A"):
        reading.allowed(f"http://h{path}", _ROBOT)
        str(reading.ruling(f"http://h{path}", _ROBOT).rule)


def _records(text: str) -> None:
    body = text.encode("latin-1", "replace")
    has_record.__wrapped__(body)  # and not what is remembered of it
    parse(body)
    sitemaps_in(body)
    sitemap_urls_in(body, "http://h/robots.txt")


def _decide_twice(text: str) -> None:
    robots = StrictestRobotParser(text.encode())
    for path in ("/", "/a/a/a", "/" + "a" * 99):
        robots.allowed(f"http://h{path}", _ROBOT)


def _metas(text: str) -> None:
    directives_of(metas_of_page(text.encode(), names_for(_ROBOT)), {}, _ROBOT)


def _robots_tags(text: str) -> None:
    octets = text.encode("latin-1", "replace")
    directives_of((), dict.fromkeys(ROBOTS_FIELDS, (octets,)), _ROBOT)


def _hazards(text: str) -> None:
    if watch := watch_of(text.encode(), KosterRobotParser(text.encode())):
        for path in ("/", "/a/a/a", "/" + "a" * 99, "/12345?a=%2F", "/%3F"):
            watch.hazard(f"http://h{path}", _ROBOT)


def _delay(text: str) -> None:
    octets = text.encode()
    for field in (b"crawl-delay", b"request-rate"):
        longest_delay([Line(1, field, octets)])
        longest_delay([Line(1, field, b"1" + octets), Line(2, field, b"1/1" + octets)])
    for body in (octets, b"User-agent: *\n" + octets):
        names_delay(body)
        StrictestRobotParser(body).delay(_ROBOT)


def _page_in_place(text: str) -> None:
    for octets in (f"<html>{text}".encode(), text.encode()):
        page_in_place.__wrapped__(octets)  # and not what is remembered of it


def _usage(text: str) -> None:
    body = b"User-agent: *\n" + text.encode()
    lines = usage_lines(body, StrictestRobotParser(body))
    if lines is not None:
        lines.listed(_ROBOT)
        for path in ("/", "/a/a/a", "/" + "a" * 2_000, "/12345?a=%2F", "/%41%0A"):
            Usage(lines.statements(f"http://h{path}", _ROBOT)).to_dict()


def _dictionary(text: str) -> None:
    for value in (text.encode("latin-1", "replace"), b"a=" + text.encode("latin-1", "replace")):
        preferences_in(value)
        preferences_in(value, is_signal=True)


def _usage_of_page(text: str) -> None:
    octets = text.encode()
    page_statements(dict.fromkeys(FIELDS, (octets,)), octets, _ROBOT)


def _answer(text: str) -> None:
    for name in ("cache-control", "expires", "date", "age", "etag", "last-modified", "retry-after"):
        for status in (200, 503):
            headers = {name: text} if name != "date" else {name: text, "expires": text}
            answer = Answer("http://h/robots.txt", status, headers)
            after_answer(answer, None, now=1e9, policy=Policy(), jitter=0.0)


def _redirect(text: str) -> None:
    clear_cache()  # of urlsplit
    for location in (text, f"http://{text}", f"/{text}"):
        redirect_target(Answer("http://h/a/b/robots.txt", 301, {"location": location}))


def _url(text: str) -> None:
    clear_cache()
    for url in (text, f"http://h/{text}"):
        try:
            site_of(url)
        except ValueError as error:
            printable(str(error))
        _CHECKED.allowed(url, _ROBOT)
        _CHECKED.ruling(url, _ROBOT)


def _coded(text: str) -> None:
    octets = text.encode("latin-1", "replace")
    gzips = b"".join(_GZIPS[n % len(_GZIPS)] for n in octets)  # a member for each octet
    for coding, head in _HEADS.items():
        for body in (octets, head + octets, gzips):
            with suppress(ValueError):
                unpacked(body, coding, _MAX_BYTES)
    with suppress(ValueError):
        unpacked(b"#", text, _MAX_BYTES)


def _value(text: str) -> None:
    """What a storage has of a site, whoever wrote it."""
    octets = text.encode("latin-1", "replace")
    for value in (octets, zlib.compress(octets)):
        with suppress(ValueError):
            decoded(value)
    for name in ("url", "status", "body", "etag", "last_modified", "fetched", "expires"):
        with suppress(ValueError):
            known_from({**_COPY, name: octets if name == "body" else text}, None)
    for name in ("reason", "attempts", "since", "asked", "retry"):
        with suppress(ValueError):
            known_from(None, {**_FAILURE, name: text})
    site_named(text)


def _parked(text: str) -> None:
    """A request in the file of a JOBDIR: its URL was in a page."""
    crawler: Any = SimpleNamespace(spider=None, request_fingerprinter=RequestFingerprinter())
    request = Request("http://h/", headers={"Referer": text}, meta={text: text, "url": text})
    with TemporaryDirectory() as folder:
        file = ParkedFile(crawler, Path(folder))
        file.resume()
        for place in ((0, 1), (0, 2)):
            if file.write(text, place, request):
                file.take(text, place)
        file.close()


def _log(text: str) -> None:
    crawler: Any = SimpleNamespace(spider=None)
    log = Log("koster.doubling", crawler)
    for value in (text, ValueError(text), [text], {text: text}):
        log.warning("%(value)s", value=value)
    printable(text)
    printable(text, 1000)


_OVERRIDES = overrides_of([OVERRIDE | {"allow": ["/" + "a" * n for n in range(1, 50)]}])


def _override(text: str) -> None:
    """A URL that was in a page, at a site with overrides."""
    choice(f"https://a.example/{text}", _OVERRIDES)


def _archive(text: str) -> None:
    """What is in a folder of an archive, whoever wrote it."""
    octets = text.encode("utf-8", "replace")
    list(records_in(BytesIO(octets)))
    block = {"site": text, "copy": {**_OF_AN_OUTCOME, "url": text}, "failure": None}
    for told in (octets, json.dumps(block).encode()):
        record = Record("metadata", 1e9, told, "application/json", f"http://h/{text}", "<x>")
        _outcome(record, Site("http", "h", 80), Path("x"))
    data = member_of(record)
    for damaged in (data[:-9], data[9:], data * 2):
        list(records_in(BytesIO(damaged)))
    list(fields_about("http://h/", octets.splitlines(keepends=True)))


def _changes(text: str) -> None:
    lines = text.encode("utf-8", "replace").splitlines()
    list(changes(lines, lines[1:]))
    list(changes(lines, lines[::-1]))


_NGINX = nginx_format(
    '"$http_x_forwarded_for" $remote_user [$time_local] "$request" $status "$http_user_agent"'
)


def _logged(text: str) -> None:
    """A line of an access log, in each format."""
    octets = text.encode("utf-8", "replace")
    kinds = [COMMON, BALANCER, *NAMED.values(), _NGINX, json_rows, W3cFormat().rows]
    for kind in kinds:
        kind(octets)
    W3cFormat().rows(b"#Fields: date time cs-uri-stem x y\n" + octets)
    BALANCER(b'2026-11-21T20:00:00Z app/a 1.2.3.4:5 - 0 0 0 200 200 1 2 "G http://' + octets)
    method_and_path(octets)
    Namer([]).named(text)


_OF_AN_OUTCOME = {**_COPY, "body": None, "bytes": 1}
READERS = {
    "archive": Reader(_archive),
    "changes": Reader(_changes),
    "decision": Reader(lambda text: _decide(RobotsTxt(text.encode("latin-1", "replace")))),
    "RFC 9309": Reader(lambda text: _decide(Rfc9309(text.encode()))),
    "both readings": Reader(_decide_twice),
    "hazards": Reader(_hazards),
    "delay": Reader(_delay),
    "records": Reader(_records),
    "check": Reader(lambda text: check(text.encode())),
    "HTML": Reader(_metas),
    "HTML in place of a robots.txt": Reader(_page_in_place),
    "X-Robots-Tag": Reader(_robots_tags, most_chars=64_000),
    "usage lines": Reader(_usage, chars=8_000),
    "usage dictionary": Reader(_dictionary, chars=4_000, most_chars=120_000),
    "usage of a page": Reader(_usage_of_page, most_chars=64_000),
    "fields": Reader(_answer),
    "Location": Reader(_redirect),
    "URL": Reader(_url),
    "URL, overridden": Reader(_override),
    "Content-Encoding": Reader(_coded, chars=4_000, most_chars=64_000),
    "stored value": Reader(_value, most_chars=256_000),
    "parked request": Reader(_parked, most_chars=256_000),
    "log and terminal": Reader(_log),
    "access log": Reader(_logged, chars=8_000, most_chars=64_000),
    "audit": Reader(
        lambda text: audited(text.encode("utf-8", "replace")),
        chars=8_000,
        most_chars=64_000,
    ),
}
