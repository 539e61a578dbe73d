"""Reads logs of JSON lines: Caddy, nginx (escape=json), Cloudflare, Traefik, Google Cloud."""

import json
import re
from typing import Any, TypeAlias

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
"""The names of the fields of a visit, in order of precedence."""
_TIMES = (str, float, int)
_BYTE = re.compile(r"\\x(?=[89A-Fa-f])")

Object: TypeAlias = dict[str, Any]


def json_rows(piece: bytes) -> list[Row]:
    """Return the readable lines of *piece* as rows."""
    lines = piece.decode("utf-8", "surrogateescape").rstrip("\r\n").split("\n")
    return [row for row in map(_row, lines) if row is not None]


def _row(line: str) -> Row | None:
    try:
        return _of_visit(_flat(_loaded(line)))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None


def _loaded(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        # nginx without ``escape=json`` writes \x0A, which is \u000A in JSON. From \x80 on, it is a
        # byte, as surrogateescape writes it.
        return json.loads(_BYTE.sub(r"\\udc", line).replace("\\x", "\\u00"))


def _of_visit(found: Object) -> Row:
    """Return the row of a visit. Raises LookupError, TypeError or ValueError for other objects."""
    client, time, request, method, target, status, size, agent, host = (
        next((name for name in names if name in found), "") for names in _NAMES.values()
    )
    if not (asked := _text(found, request or target)):
        raise LookupError  # not a visit: a line of an application's log
    if not request:
        asked = f"{_text(found, method) or 'GET'} {asked}"
    asked.encode("utf-8", "surrogateescape")  # raises ValueError for half of a surrogate pair
    if type(found[time]) not in _TIMES:
        raise TypeError
    return (
        _text(found, client).encode("utf-8", "backslashreplace"),  # bytes, as in a text log
        found[time],
        asked,
        found.get(status, 0),
        found.get(size, 0),
        _text(found, agent),
        _text(found, host),
    )


def _flat(found: Object) -> Object:
    """Return *found*, with the fields of a nested request at the top level, as in other logs."""
    if type(request := found.get("request")) is dict:  # Caddy
        agents = request.get("headers", {}).get("User-Agent") or ("",)
        found = {**found, **request, "agent": agents[0]}
        del found["request"]
    elif type(request := found.get("httpRequest")) is dict:  # a LogEntry of Google Cloud
        found = {**found, **request}
    return found


def _text(found: Object, name: str) -> str:
    text = found.get(name) or ""
    if type(text) is not str:
        raise TypeError
    return text
