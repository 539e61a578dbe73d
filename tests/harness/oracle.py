"""A plain reading of 3.2.1 and 3.2.2, line by line, to compare with.

It shares nothing with the package, and does one thing after the other: it is
here to be right, not fast. The points (A1, B12, ...) are those of the decision
table.
"""

from __future__ import annotations

import string
from typing import NamedTuple

ENCODED_SLASH = -1
TOKEN_OCTETS = set((string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~").encode())


class Decision(NamedTuple):
    allowed: bool
    line: int | None
    """The line that decided."""


def decide(body: bytes, url: str | bytes, robot: str) -> Decision:
    """Return whether the robot with the name token *robot* may access *url*."""
    path = url_octets(url)
    if path == octets(b"/robots.txt"):
        return Decision(allowed=True, line=None)
    for number, field, value in obeyed_rules(body, robot):
        if field in (b"allow", b"disallow") and value and matches(octets(value), path):
            return Decision(field == b"allow", number)
    return Decision(allowed=True, line=None)


def matches(record_path: list[int], url_path: list[int]) -> bool:
    """3.2.2: whether record_path ends before a difference in octets is met."""
    return record_path == url_path[: len(record_path)]


def obeyed_rules(body: bytes, robot: str) -> list[tuple[int, bytes, bytes]]:
    """3.2.1: the rule lines of the record that the robot obeys."""
    found = records(body)
    if robot not in ("", "*"):
        for agents, rules in found:
            for agent in agents:
                if ascii_lower(robot.encode()) in ascii_lower(agent):
                    return rules
    for agents, rules in found:
        if b"*" in agents:
            return rules
    return []


def records(body: bytes) -> list[tuple[list[bytes], list[tuple[int, bytes, bytes]]]]:
    """3.2: agent lines followed by rule lines, over and over."""
    found: list[tuple[list[bytes], list[tuple[int, bytes, bytes]]]] = []
    for number, line in enumerate(split_lines(body), 1):
        text = line.split(b"#")[0]
        if b":" not in text:
            continue
        field, value = (part.strip(b" \t") for part in text.split(b":", 1))
        if ascii_lower(field) == b"user-agent":
            if not found or found[-1][1]:
                found.append(([], []))
            found[-1][0].append(value)
        elif field and set(field) <= TOKEN_OCTETS and found:
            found[-1][1].append((number, ascii_lower(field), value))
    return [record for record in found if record[1]]


def split_lines(body: bytes) -> list[bytes]:
    if body[:3] == b"\xef\xbb\xbf":
        body = body[3:]
    split: list[bytes] = [b""]
    previous = b""
    for at in range(len(body)):
        octet = body[at : at + 1]
        if octet == b"\r" or (octet == b"\n" and previous != b"\r"):
            split.append(b"")
        elif octet != b"\n":
            split[-1] += octet
        previous = octet
    return split


def ascii_lower(text: bytes) -> bytes:
    return bytes(octet + 32 if 65 <= octet <= 90 else octet for octet in text)


def url_octets(url: str | bytes) -> list[int]:
    """C4: path, parameters and query, decoded; an empty path is "/"."""
    text = url.encode("utf-8", "surrogatepass") if isinstance(url, str) else url
    text = text.split(b"#")[0]
    before, mark, query = text.partition(b"?")
    behind_scheme = before.split(b"://", 1)[-1]
    _, slash, path = behind_scheme.partition(b"/")
    return octets((slash + path or b"/") + mark + query)


def octets(path: bytes) -> list[int]:
    """C3: the octets of a path, each escape decoded once."""
    decoded: list[int] = []
    at = 0
    while at < len(path):
        escape = path[at + 1 : at + 3].decode("latin-1")
        if path[at : at + 1] == b"%" and len(escape) == 2 and set(escape) <= set(string.hexdigits):
            octet = int(escape, 16)
            decoded.append(ENCODED_SLASH if octet == ord("/") else octet)
            at += 3
        else:
            decoded.append(path[at])
            at += 1
    return decoded
