"""A plain reading of RFC 9309, 2.2, line by line, to compare with.

Of the package it shares nothing; of the draft's plain reading what both standards have:
the lines of a file, and the octets of a URL. It is here to be right, not fast.
"""

from __future__ import annotations

import string
from functools import lru_cache
from typing import NamedTuple

from harness.oracle import Decision, ascii_lower, split_lines

HEX = set(string.hexdigits.encode())
ONE = set((string.ascii_letters + string.digits + "-._~" + ":/?#[]@!$&'()*+,;=").encode())
"""Unreserved and reserved (RFC 3986, 2.2 and 2.3): the others are escaped, three octets each."""


class Unit(NamedTuple):
    octet: int
    is_data: bool
    """Whether a slash or a question mark is escaped in front of the query."""
    in_query: bool


def decide(body: bytes, url: str, token: str) -> Decision:
    """2.2.2: the most octets, Allow before Disallow; of those the first in the file."""
    path = units(of_url(url))
    if bytes(unit.octet for unit in path) == b"/robots.txt" and not any(u.is_data for u in path):
        return Decision(allowed=True, line=None)
    best = Decision(allowed=True, line=None)
    longest = (0, False)
    for number, allows, pattern in rules(body, token):
        if (length(pattern), allows) > longest and matches(pattern, path):
            longest = (length(pattern), allows)
            best = Decision(allows, number)
    return best


def matches(pattern: bytes, path: list[Unit]) -> bool:
    """2.2.3: by the prefixes of *path* that each part of *pattern* may have matched."""
    reached = {0}
    for sign in signs(pattern):
        if sign == "*":
            reached = set(range(min(reached), len(path) + 1)) if reached else reached
        elif isinstance(sign, str):  # "$"
            reached &= {len(path)}
        else:
            reached = {at + 1 for at in reached if at < len(path) and equal(sign, path[at])}
    return bool(reached)


def equal(sign: Unit, unit: Unit) -> bool:
    return sign.octet == unit.octet and (unit.in_query or sign.is_data == unit.is_data)


@lru_cache(maxsize=1000)
def signs(pattern: bytes) -> list[Unit | str]:
    """The special characters of a pattern, and the units between them."""
    found: list[Unit | str] = []
    in_query = False
    end = len(pattern) - pattern.endswith(b"$")
    for part in pattern[:end].replace(b"*", b"\n*\n").split(b"\n"):
        found += ["*"] if part == b"*" else units(part, in_query=in_query)
        in_query = in_query or b"?" in part
    return [*found, "$"] if end < len(pattern) else found


@lru_cache(maxsize=1000)
def length(pattern: bytes) -> int:
    return sum(
        1 if isinstance(sign, str) or (sign.octet in ONE and not sign.is_data) else 3
        for sign in signs(pattern)
    )


def units(path: bytes, *, in_query: bool = False) -> list[Unit]:
    """2.2.2: the octets of a path, each escape decoded once."""
    found: list[Unit] = []
    at = 0
    while at < len(path):
        escaped = path[at] == ord("%") and len(path) > at + 2 and set(path[at + 1 : at + 3]) <= HEX
        octet = int(path[at + 1 : at + 3], 16) if escaped else path[at]
        found.append(Unit(octet, escaped and octet in b"/?" and not in_query, in_query))
        in_query = in_query or path[at] == ord("?")
        at += 3 if escaped else 1
    return found


def of_url(url: str) -> bytes:
    text = url.encode("utf-8", "surrogatepass").split(b"#")[0]
    before, mark, query = text.partition(b"?")
    _, slash, path = before.split(b"://", 1)[-1].partition(b"/")
    return (slash + path or b"/") + mark + query


@lru_cache(maxsize=1)
def rules(body: bytes, token: str) -> list[tuple[int, bool, bytes]]:
    """2.2.1: the rules of all groups of the robot, or else of all groups for "*"."""
    for name in (token.encode(), b"*"):
        found = [group for agents, group in groups(body) if ascii_lower(name) in agents and name]
        if found:
            return [rule for group in found for rule in group]
    return []


def groups(body: bytes) -> list[tuple[list[bytes], list[tuple[int, bool, bytes]]]]:
    """2.1: user-agent lines, and the rules up to the next of them; other lines end nothing."""
    found: list[tuple[list[bytes], list[tuple[int, bool, bytes]]]] = []
    has_rules = True
    for number, line in enumerate(split_lines(body), 1):
        field, colon, value = (part.strip(b" \t") for part in line.split(b"#")[0].partition(b":"))
        name = ascii_lower(field) if colon else b""
        if name == b"user-agent":
            if has_rules:
                found.append(([], []))
            found[-1][0].append(ascii_lower(value))
        elif found and name in (b"allow", b"disallow") and value[:1] in (b"/", b"*"):
            found[-1][1].append((number, name == b"allow", value))
        has_rules = name in (b"allow", b"disallow") or (has_rules and name != b"user-agent")
    return found
