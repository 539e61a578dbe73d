"""Files of any size that are made to cost a robot more than they should."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, cycle, islice, product

_PIECES = bytes(n for n in range(33, 127) if n not in b"*$#%?/")
HOSTILE_PATHS = (
    "/" + _PIECES.decode(), "/" + "a" * 2_000, "/c" + "a" * 2_000, "/b%2F" + "1234567890" * 200,
)  # fmt: skip
"""Paths that many rules of the files almost match."""

_STAR = b"User-agent: *\n"


def harmless(size: int) -> bytes:
    """Return the ordinary file that the others are measured by."""
    return _cut(_STAR + b"".join(_numbered(b"Disallow: /directory-%d/page\n", size)), size)


def _numbered(line: bytes, size: int) -> list[bytes]:
    return [line % n for n in range(size // len(line) + 1)]


def _cut(body: bytes, size: int) -> bytes:
    return body[:size]


def _repeated(line: bytes) -> Callable[[int], bytes]:
    return lambda size: _cut(_STAR + b"Disallow: /x\n" + line * (size // len(line)), size)


def _for_nobody(line: bytes) -> Callable[[int], bytes]:
    """Name the robot only where it does not count, so that all is looked through."""
    return lambda size: _cut(b"# figtree\n" + line * (size // len(line)), size)


def _counted(line: bytes) -> Callable[[int], bytes]:
    return lambda size: _cut(_STAR + b"".join(_numbered(line, size)), size)


def _nested_stars(size: int) -> bytes:
    depth = next(n for n in count() if n * (n + 9) > size)
    return _cut(_STAR + b"".join(b"allow:/%s*c\n" % (b"*a" * n) for n in range(depth)), size)


def _wrong_order(size: int) -> bytes:
    """Rules whose pieces all are in HOSTILE_PATH, the last one before the first one."""
    pieces = product(_PIECES[29:58], _PIECES[58:], _PIECES[:29])
    rules = (b"allow:*%c*%c*%c\n" % each for each in cycle(pieces))
    return _cut(_STAR + b"".join(islice(rules, size // 13 + 1)), size)


def _nested(size: int) -> bytes:
    depth = next(n for n in count() if n * (n + 24) // 2 > size)
    fields = (b"Allow", b"Disallow")
    rules = [b"%s: /%s\n" % (fields[n % 2], b"a" * n) for n in range(depth, 0, -1)]
    return _cut(_STAR + b"".join(rules), size)


def _shared_prefix(size: int) -> bytes:
    line = b"Disallow: /" + b"p" * 4000 + b"%d\n"
    return _cut(_STAR + b"".join(_numbered(line, size)), size)


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "lines of one octet": _repeated(b"a\n"),
    "NUL bytes": _repeated(b"\0"),
    "shortest rules": _repeated(b"allow:/\n"),
    "distinct short rules": _counted(b"disallow:/%x\n"),
    "nested prefixes": _nested,
    "a shared prefix of 4 kB": _shared_prefix,
    "one rule of escapes": lambda size: _cut(_STAR + b"Disallow: /" + b"%41" * (size // 3), size),
    "agent lines": _for_nobody(b"User-agent: a\n"),
    "agents and what is no rule": _for_nobody(b"User-agent: a\nx\n"),
    "one long agent": lambda size: (
        _cut(b"User-agent: " + b"a" * size, size - 13) + b"\nDisallow: /\n"
    ),
    "spaces": _repeated(b" "),
    "spaces after a field": lambda size: _cut(_STAR + b"Disallow" + b" " * size, size),
    "spaces in a path": lambda size: _cut(_STAR + b"Disallow: /" + b" " * size, size - 1) + b"x",
    "half-spaced lines": _repeated(b"Disallow" + b" " * 500 + b"\n"),
    "a field without end": lambda size: _cut(_STAR + b"a" * size, size),
    "almost agent lines": _repeated(b"user-agen: *\n"),
    "stars that almost match": _repeated(b"Disallow: /*a*a*a*a*a*a*a*b$\n"),
    "a number before a common ending": _counted(b"Disallow: /*/%d-1234567890\n"),
    "a number at the end": _counted(b"Disallow: /*a*a*a*a*a*a*a%d$\n"),
    "a number at the start": _counted(b"Disallow: /a%d*a*a*a*b\n"),
    "short rules with a star": _counted(b"allow:*%x\n"),
    "distinct and misspelt": _counted(b"disalow:*%x\n"),
    "several rules in a line": _counted(b">allow:/%x<br>allow:*a<br>disallow:*b\n"),
    "many groups": _counted(b"user-agent:*\nallow:*%x\n"),
    "stars nested": _nested_stars,
    "stars in the wrong order": _wrong_order,
    "one rule of stars": lambda size: _cut(_STAR + b"Disallow: /" + b"*a" * size, size),
    "one rule of encoded slashes": lambda size: _cut(
        _STAR + b"Disallow: /%2F" + b"\xff" * size, size
    ),
}
