"""Reads text logs: common, combined, of AWS, HAProxy and Squid, or in a format of nginx."""

import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, Any, Any, Any, Any, Any, Any]
"""Client, time, request, status, size, agent and host, as in the log."""

Format: TypeAlias = Callable[[bytes], list[Row]]
"""A function that returns the readable lines of a piece of a log as rows."""

FIELDS = ("client", "time", "request", "status", "size", "agent", "host")

# For linear time, a repeated part of a pattern cannot match the character after it, or it ends at a
# lookahead. The one exception is the client in _BALANCER: it may have a colon, but no space.
_QUOTED = rb"[^\"\\\n]*(?:\\[^\n][^\"\\\n]*)*"
_IP = rb"(?:\d+(?:\.\d+){3}|[\da-fA-F]*:[\da-fA-F]*:[\da-fA-F:.]*|\[[\da-fA-F:.]+\])"
# lighttpd: client, virtual host, user. Apache (%v:%p): virtual host, client, -, user. An address is
# no virtual host beside a name. Of two addresses, a port or the number of words decides.
_CLIENT_FIRST = rb"(?=%b(?:(?::\d+)? (?!%b(?::\d+)? |- )[^ ,\n]+ | %b(?::\d+ | [^ \n]+ \[)))" % (
    (_IP,) * 3
)
# The prefix of a line that a server has sent to syslog, or that journalctl shows.
_SYSLOG = rb"(?:(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT[^ \n]+) [^ \n]+ [^ \n]+: )?"
_COMMON = (
    # Group 1 matches if the client is first, 2 if there is a host. Of a list in X-Forwarded-For,
    # the client is the first address.
    rb"^" + _SYSLOG + rb"(?P<swapped>" + _CLIENT_FIRST + rb")?"
    rb"(?:(?=(?(1)[^ \n]+ |(?=[^ ,\n]+ [^ \n]*[.:]))(?P<host>[^ ,\n]+)))?"
    rb"(?(1)|(?(2)[^ \n]+ ))(?P<client>[^ ,\n]+)(?:,[^ \n]*)? [^ \n]+ [^\[\n]*"
    rb"\[(?P<time>[^\]\n]+)\] \"(?P<request>" + _QUOTED + rb")\" (?P<status>\d{3}) "
    rb"(?P<size>\d+|-)(?: \"" + _QUOTED + rb"\" \"(?P<agent>" + _QUOTED + rb")\")?"
    rb"[^\n]*\n"
)

_BALANCER = (
    # docs.aws.amazon.com/elasticloadbalancing: type (not of classic load balancers), time,
    # balancer, client with port, target, three durations, two statuses, bytes received, bytes
    # sent, request, agent.
    rb"^(?:[a-z0-9]+ )?(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[^ \n]* [^ \n]+ "
    rb"(?P<client>[^ \n]+):\d+ [^ \n]+ [-\d.]+ [-\d.]+ [-\d.]+ (?P<status>\d{3}|-) [^ \n]+ "
    rb"\d+ (?P<size>\d+) \"(?P<request>[^\"\n]*)\" \"(?P<agent>" + _QUOTED + rb")\"[^\n]*\n"
)

_HAPROXY = (
    # docs.haproxy.org, "HTTP log format", after a syslog prefix: client with port, time,
    # frontend, server, durations, status, bytes, two cookies, state, counts, queues, headers,
    # request. Of captured headers, Host may be the first, and User-Agent is the next.
    rb"^(?:[^ \n]* ){0,8}?(?P<client>[^ \n]+):\d+ \[(?P<time>[^\].\n]+)\.\d+\] [^ \n]+ [^ \n]+ "
    rb"[-+/\d]+ (?P<status>-1|\d{3}) \+?(?P<size>\d+) [^ \n]+ [^ \n]+ [^ \n]+ [+/\d]+ [/\d]+ "
    rb"(?:\{(?:(?P<host>[^ /|}\n]*)(?:\||(?=\})))?(?P<agent>[^|}\n]*)(?:\|[^}\n]*)?\} )?"
    rb"(?:\{[^}\n]*\} )?\"(?P<request>[^\"\n]*)\"[^\n]*\n"
)

_SQUID = (
    # wiki.squid-cache.org/Features/LogFormat, "squid": time, duration, client, result with status,
    # bytes, method, URL, user, server, type.
    rb"^(?P<time>\d+\.\d{3}) +-?\d+ (?P<client>[^ \n]+) \w+/(?P<status>\d{3}) (?P<size>\d+) "
    rb"(?P<request>[^ \n]+ [^ \n]+) [^ \n]+ \w+/[^ \n]+ [^\n]+\n"
)

_OWN = {
    "time_local": rb"\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}",
    "time_iso8601": rb"[0-9T:+-]+",
    "msec": rb"\d+\.\d+",
    "status": rb"\d{3}",
    "request_method": rb"[^ \n\"]+",
    "scheme": rb"https?",
    "host": rb"[0-9A-Za-z_.:\[\]-]*",
    "server_port": rb"\d+",
}
"""Patterns of nginx variables. Any other variable ends at the character that follows it in the
format."""
_MEANS = {
    "remote_addr": "client", "http_x_forwarded_for": "client", "realip_remote_addr": "client",
    "time_local": "time", "time_iso8601": "time", "msec": "time",
    "request": "request", "request_uri": "request", "uri": "request",
    "status": "status", "body_bytes_sent": "size", "bytes_sent": "size",
    "http_user_agent": "agent", "host": "host", "http_host": "host", "server_name": "host",
}  # fmt: skip
"""Fields by nginx variable. If a format has two variables for a field, the first here counts."""
_FIRST = rb"(?=(?P<%b>[^ ,\"\n]*))%b"  # of a list
_VARIABLE = re.compile(r"\$(\{)?(\w+)(?(1)\})", re.ASCII)


def decoded(field: bytes | str) -> str:
    """Return a field of a log as text. A byte becomes one character."""
    return field if isinstance(field, str) else field.decode("latin-1")


def _format(pattern: bytes) -> Format:
    """Return the format for a pattern with groups named as in FIELDS. Missing fields are empty."""
    compiled = re.compile(pattern + b"()", re.MULTILINE)  # the last group is empty
    places = (compiled.groupindex.get(name, compiled.groups) - 1 for name in FIELDS)
    ordered = itemgetter(*places)
    return lambda piece: list(map(ordered, compiled.findall(piece)))


COMMON = _format(_COMMON)
"""The common log of NCSA, the combined log, and both with a virtual host or a user's name."""

BALANCER = _format(_BALANCER)
"""The logs of application and classic load balancers of AWS."""

NAMED = {"haproxy": _format(_HAPROXY), "squid": _format(_SQUID)}
"""The formats of proxies: the httplog of HAProxy, and the native format of Squid."""


def nginx_format(text: str) -> Format:
    """Return the format for *text*, a ``log_format`` of nginx.

    Raises ValueError, with a message for the user, if the time or the request is missing, or if the
    end of a field is unclear.
    """
    first, *rest = _VARIABLE.split(text)
    names, texts = rest[1::3], rest[2::3]
    chosen = _chosen(names)
    pattern = b"^" + re.escape(first.encode())
    for name, following, ends in zip(names, texts, [*texts[:-1], texts[-1] + "\n"], strict=True):
        looks = _OWN.get(name) or _looks(name, ends)
        group = _FIRST if name == "http_x_forwarded_for" else b"(?P<%b>%b)"
        field = chosen.pop(name, None)  # of a variable that is there twice, the first counts
        pattern += group % (field.encode(), looks) if field else looks
        pattern += re.escape(following.encode())
    return _format(pattern + rb"\r?\n")


def _chosen(names: list[str]) -> dict[str, str]:
    """Return the fields by variable. If two variables have the same field, only one is returned.

    Raises ValueError if the time or the request is missing.
    """
    chosen = {field: name for name, field in reversed(_MEANS.items()) if name in names}
    for field, wanted in (("time", "$time_local"), ("request", "$request")):
        if field not in chosen:
            raise ValueError(f"no {wanted} in --log-format: use haproxy, squid or that of nginx")
    return {name: field for field, name in chosen.items()}


def _looks(name: str, following: str) -> bytes:
    """Return the pattern of the nginx variable *name*, which ends before *following*.

    Raises ValueError if *following* is empty.
    """
    if not following:
        raise ValueError(f"in the log format, a character has to follow ${name}")
    end = following[0]
    return _QUOTED if end == '"' else rb"[^%b\n]*" % re.escape(end.encode())
