"""Logs that are lines of JSON: of Caddy, nginx (escape=json), Cloudflare, Traefik, Google Cloud."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from scrapy_koster.audit.bounded_cache import BoundedCache
from scrapy_koster.audit.textlines import Row

_NAMES = {
    "client": (
        "remote_addr", "ClientIP", "ClientHost", "client_ip", "remote_ip", "clientip", "client",
        "ip", "remoteIp",
    ),
    "time": (
        "ts", "time_iso8601", "time_local", "EdgeStartTimestamp", "StartUTC", "msec", "@timestamp",
        "timestamp", "time", "date",
    ),
    "request": ("request", "request_line"),
    "method": (
        "request_method", "ClientRequestMethod", "RequestMethod", "method", "requestMethod",
    ),
    "target": (
        "request_uri", "ClientRequestURI", "RequestPath", "uri", "url", "path", "ClientRequestPath",
        "requestUrl",
    ),
    "status": (
        "status", "EdgeResponseStatus", "DownstreamStatus", "response_status", "status_code",
    ),
    "size": (
        "body_bytes_sent", "bytes_sent", "EdgeResponseBytes", "DownstreamContentSize", "size",
        "bytes", "responseSize",
    ),
    "agent": (
        "http_user_agent", "ClientRequestUserAgent", "request_User-Agent", "user_agent", "agent",
        "userAgent",
    ),
    "host": ("host", "ClientRequestHost", "RequestHost", "http_host", "server_name", "vhost"),
}  # fmt: skip
"""What the fields of a visit are called; the first that is there counts."""
_MOST_SHAPES = 64
# More objects at a time are too many for the caches of the processor: half as fast.
_AT_ONCE = 32
_TIMES = (str, float, int)

Object: TypeAlias = dict[str, Any]


class JsonFormat:
    """Reads lines that are one JSON object each."""

    def __init__(self) -> None:
        self._shapes: BoundedCache[Any, tuple[str, ...]] = BoundedCache(_names_among, _MOST_SHAPES)

    def rows(self, piece: bytes) -> list[Row]:
        """Return the lines that can be read."""
        return [row for row in map(self._row, _objects(piece)) if row is not None]

    def _row(self, found: Any) -> Row | None:
        try:
            return self._of_visit(_flat(found))
        except (AttributeError, LookupError, TypeError):
            return None

    def _of_visit(self, found: Object) -> Row:
        """Return a visit. LookupError or TypeError for an object that is none."""
        client, time, request, method, target, status, size, agent, host = self._shapes[
            tuple(found)
        ]
        if not (asked := _text(found, request or target)):
            raise LookupError  # an application's log is no log of visits
        if not request:
            asked = f"{_text(found, method) or 'GET'} {asked}"
        if type(found[time]) not in _TIMES:
            raise TypeError
        return (
            _text(found, client).encode("utf-8", "backslashreplace"),  # as in a log of text
            found[time],
            asked,
            found.get(status, 0),
            found.get(size, 0),
            _text(found, agent),
            _text(found, host),
        )


def _names_among(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the fields of a visit in an object with *keys*, "" if missing."""
    return tuple(next((name for name in names if name in keys), "") for names in _NAMES.values())


def _flat(found: Object) -> Object:
    """Return an object with the fields of its request, an object of its own in some logs."""
    if type(request := found.get("request")) is dict:  # Caddy
        agents = request.get("headers", {}).get("User-Agent") or ("",)
        found = {**found, **request, "agent": agents[0]}
        del found["request"]
    elif type(request := found.get("httpRequest")) is dict:  # a LogEntry of Google Cloud
        host = request["requestUrl"].partition("://")[2].partition("/")[0]
        found = {**found, **request, "host": host}
    return found


def _text(found: Object, name: str) -> str:
    text = found.get(name) or ""
    if type(text) is not str:
        raise TypeError
    return text


def _objects(piece: bytes) -> Iterator[Any]:
    """Yield the values of the lines that are JSON."""
    lines = piece.decode("utf-8", "surrogateescape").rstrip().split("\n")
    for start in range(0, len(lines), _AT_ONCE):
        some = lines[start : start + _AT_ONCE]
        # One call for some of them is faster, where all are what they should be.
        if found := _loaded(f"[{','.join(some)}]", len(some)):
            yield from found
            continue
        for line in some:
            # nginx without ``escape=json`` writes \x for \u00.
            escaped = line.replace("\\x", "\\u00")
            yield from _loaded(f"[{line}]", 1) or _loaded(f"[{escaped}]", 1) or ()


def _loaded(text: str, count: int) -> list[Any] | None:
    """Return so many JSON values, None where the text is something else."""
    try:
        found: list[Any] = json.loads(text)
        return found if len(found) == count else None
    except (ValueError, RecursionError):
        return None
