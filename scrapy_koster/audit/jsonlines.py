"""Logs that are lines of JSON: of Caddy, nginx (escape=json), Cloudflare, Traefik, Google Cloud."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from scrapy_koster.audit.kept import Kept
from scrapy_koster.audit.textlines import Row

_NAMES = {
    "client": (
        "remote_addr", "ClientIP", "ClientHost", "client_ip", "remote_ip", "clientip", "client",
        "ip",
    ),
    "time": (
        "ts", "time_iso8601", "time_local", "EdgeStartTimestamp", "StartUTC", "msec", "@timestamp",
        "timestamp", "time", "date",
    ),
    "request": ("request", "request_line"),
    "method": ("request_method", "ClientRequestMethod", "RequestMethod", "method"),
    "target": (
        "request_uri", "ClientRequestURI", "RequestPath", "uri", "url", "path", "ClientRequestPath",
    ),
    "status": (
        "status", "EdgeResponseStatus", "DownstreamStatus", "response_status", "status_code",
    ),
    "size": (
        "body_bytes_sent", "bytes_sent", "EdgeResponseBytes", "DownstreamContentSize", "size",
        "bytes",
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


class _Shapes(Kept[tuple[str, ...], tuple[str, ...]]):
    """Under which names objects with these keys have the fields of a visit."""

    def made(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names, empty where there is none."""
        return tuple(
            next((name for name in names if name in keys), "") for names in _NAMES.values()
        )


class JsonFormat:
    """Reads lines that are one JSON object each."""

    def __init__(self) -> None:
        self._shapes = _Shapes(_MOST_SHAPES)

    def rows(self, piece: bytes) -> list[Row]:
        """Return the lines that can be read."""
        return [row for row in map(self._row, _objects(piece)) if row is not None]

    def _row(self, found: Any) -> Row | None:
        try:
            request = found.get("request")
            if type(request) is dict:
                return _caddys(found, request)
            if type(entry := found.get("httpRequest")) is dict:
                return _googles(found, entry)
            return self._flat(found)
        except (AttributeError, LookupError, TypeError):
            return None

    def _flat(self, found: Object) -> Row:
        """Return an object without others in it as a line. LookupError where a field is missing."""
        names = self._shapes[tuple(found)]
        client, time, request, method, target, status, size, agent, host = names
        if not request:
            asked = f"{_text(found, method) or 'GET'} {_asked(_text(found, target))}"
        else:
            asked = _asked(_text(found, request))
        return (
            _text(found, client).encode("utf-8", "backslashreplace"),  # as in a log of text
            _time(found, time),
            asked,
            found.get(status, 0),
            found.get(size, 0),
            _text(found, agent),
            _text(found, host),
        )


def _text(found: Object, name: str) -> str:
    text = found.get(name) or ""
    if type(text) is not str:
        raise TypeError
    return text


def _asked(text: str) -> str:
    """Return what was asked for. LookupError for nothing: an app's log is no log of visits."""
    if not text:
        raise LookupError
    return text


def _time(found: Object, name: str) -> str | float:
    time = found[name]
    if type(time) not in _TIMES:
        raise TypeError
    return time  # type: ignore[no-any-return]


def _caddys(found: Object, request: Object) -> Row:
    """Return a line of Caddy's: what was asked is an object of its own."""
    agents = request.get("headers", {}).get("User-Agent") or ("",)
    client, agent = request.get("client_ip") or request["remote_ip"], agents[0]
    method, target, host = request["method"], request["uri"], request.get("host", "")
    if not type(client) is type(agent) is type(method) is type(target) is type(host) is str:
        raise TypeError
    asked = f"{method} {target}"
    address, time = client.encode("utf-8", "backslashreplace"), _time(found, "ts")
    return address, time, asked, found.get("status", 0), found.get("size", 0), agent, host


def _googles(found: Object, entry: Object) -> Row:
    """Return a line of Google Cloud's: a LogEntry with an HttpRequest."""
    asked = f"{_text(entry, 'requestMethod') or 'GET'} {_asked(_text(entry, 'requestUrl'))}"
    host = asked.partition("://")[2].partition("/")[0]
    return (
        _text(entry, "remoteIp").encode("utf-8", "backslashreplace"),
        _time(found, "timestamp"),
        asked,
        entry.get("status", 0),
        entry.get("responseSize", 0),
        _text(entry, "userAgent"),
        host,
    )


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
            yield from _loaded(f"[{line}]", 1) or _loaded(f"[{_with_escapes(line)}]", 1) or ()


def _with_escapes(line: str) -> str:
    """Return a line of nginx' without ``escape=json`` as JSON has it."""
    return line.replace("\\x", "\\u00")


def _loaded(text: str, count: int) -> list[Any] | None:
    """Return so many JSON values, None where the text is something else."""
    try:
        found: list[Any] = json.loads(text)
        return found if len(found) == count else None
    except (ValueError, RecursionError):
        return None
