"""Which robot a User-Agent header names: by the file, by a kept list, or by itself."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from functools import cache
from typing import TypeAlias

from scrapy_koster.audit.kinds import Kind, kind_of
from scrapy_koster.protocol.line import AGENT_LINE, with_line_feeds
from scrapy_koster.protocol.nametoken import TOKEN, name_token

HEADER_CHARS = 512
"""So much of a User-Agent header is read: the patterns of the list are not linear."""

_TOKEN = re.compile(TOKEN)
_LIKE_A_ROBOT = re.compile(
    # Not any "bot": there are telephones that are called CUBOT.
    r"https?://|www\.|@|bot/|crawl|spider|compatible;[^;)]*bot\b",
    re.IGNORECASE,
)
_COMPATIBLE = re.compile(r"compatible[;,][ +]?([^;,)]*)", re.IGNORECASE)
_NAME_OF_ONE = re.compile(r"bot|crawl|spider|scrap")
_NO_NAME = re.compile(r"[\W\d_]*|https?|www\b.*|.*@.*|[+:/].*|[a-z]")
_BROWSERS = frozenset(
    (
        "mozilla", "opera", "applewebkit", "khtml", "like", "gecko", "chrome", "chromium",
        "safari", "firefox", "edg", "edge", "edga", "edgios", "opr", "opx", "version", "mobile",
        "msie", "trident", "compatible", "windows", "nt", "win64", "wow64", "x64", "x11", "linux",
        "macintosh", "intel", "mac", "os", "x", "iphone", "ipad", "ipod", "cpu", "android",
        "u", "en", "en-us", "presto", "crios", "fxios", "samsungbrowser", "ubuntu", "cros",
        "x86", "x86_64", "aarch64", "i686", "amd64", "rv", "wv", "tablet", "touch", "build",
        "media", "center", "pc", ".net", "clr", "dalvik", "ucbrowser", "yabrowser", "vivaldi",
        "gsa", "brave", "seamonkey", "konqueror", "lynx", "links", "elinks", "w3m", "netscape",
    )
)  # fmt: skip
"""Words that are in the headers of browsers. None of them is the name of a robot."""
_BROWSERS_FIRST = frozenset(
    ("mozilla", "opera", "dalvik", "ucbrowser", "lynx", "links", "elinks", "w3m", "netscape")
)
"""With which such headers begin."""
_SPECIAL = re.compile(r"(?<!\\)[.*+?(){}\[\]|^$]|\\\w")
_GRAM = 4
_LISTED_MOST = 10_000


Tags: TypeAlias = Collection[str]


class By(Enum):
    """How it is known that a name is a robot's."""

    FILE = "file"
    """A User-agent line of the robots.txt has it."""
    LIST = "list"
    """The package crawler-user-agents knows it."""
    ITSELF = "header"
    """Its header calls it a bot, a crawler or a spider."""
    ASKED = "asked"
    """It has asked for /robots.txt."""
    NOTHING = "nothing"
    """It may be one: it is no browser."""


class Namer:
    """Names robots by their name tokens, in lower case."""

    def __init__(self, files: Iterable[bytes]) -> None:
        self._in_files = {name for file in files for name in _agents(file)}
        self._listed: dict[str, Kind] = {}

    def named(self, header: str) -> str | None:
        """Return the robot that sends *header*, None where it is a browser or empty."""
        header = header[:HEADER_CHARS]
        known = _known_in(header)
        name = self._name_in(header, known)
        if known is not None and name not in self._listed and len(self._listed) < _LISTED_MOST:
            self._listed[name] = kind_of(name, known[1])
        return name or None

    def _name_in(self, header: str, known: tuple[int, Tags] | None) -> str:
        """Return the name in *header*; "" where there is none.

        It is the first token, or what follows ``compatible;``, or what the list knows. In
        between stand the words of browsers, and of apps that show a page in themselves: those
        may be words of the file as well, and are no names.
        """
        listed = _name_at(header, known[0]) if known else ""
        first = name_token(header)
        if first in _BROWSERS_FIRST or _NO_NAME.fullmatch(first):
            first = ""
        if first and (first == listed or first in self._in_files or _NAME_OF_ONE.search(first)):
            return first
        if compatible := self._compatible(header, listed):
            return compatible
        if first or listed:
            return first or listed
        tokens: list[str] = [token.lower() for token in _TOKEN.findall(header)]
        is_like_one = known is not None or bool(_LIKE_A_ROBOT.search(header))
        for token in tokens:
            if token in self._in_files and (is_like_one or _NAME_OF_ONE.search(token)):
                return token
        name = _likely(tokens) if is_like_one else ""
        return name or ("robot" if known else "")

    def _compatible(self, header: str, listed: str) -> str:
        """Return the name that follows ``compatible;``, "" where a browser's does, or none."""
        for match in _COMPATIBLE.finditer(header):
            tokens: list[str] = [token.lower() for token in _TOKEN.findall(match[1])]
            if tokens and tokens[0] in _BROWSERS:
                continue
            if in_file := next((token for token in tokens if token in self._in_files), ""):
                return in_file
            if listed and listed in tokens:
                return listed  # Yahoo! Slurp
            if names := [token for token in tokens if _may_be_name(token)]:
                return names[0]
        return ""

    def by(self, name: str) -> By:
        """Return by what it is known that a name is a robot's, so far as it is not by asking."""
        if name in self._in_files:
            return By.FILE
        if name in self._listed:
            return By.LIST
        return By.ITSELF if _NAME_OF_ONE.search(name) else By.NOTHING

    def kind(self, name: str) -> Kind:
        """Return what the robot *name* is for."""
        return self._listed.get(name) or kind_of(name, ())


def _agents(file: bytes) -> Iterator[str]:
    """Yield the robots that a file names, each also by its name token."""
    for value in AGENT_LINE.findall(with_line_feeds(file)):
        for name in (value.lower(), name_token(value)):
            if name not in ("", "*") and name not in _BROWSERS:
                yield name


def _may_be_name(token: str) -> bool:
    return token not in _BROWSERS and not _NO_NAME.fullmatch(token)


def _name_at(header: str, at: int) -> str:
    """Return the token of *header* that has the character at *at*, if it may be a name."""
    tokens = (token[0].lower() for token in _TOKEN.finditer(header) if token.end() > at)
    name = next(tokens, "")
    return name if _may_be_name(name) and "." not in name else ""


def _likely(tokens: Iterable[str]) -> str:
    """Return the token that looks most like the name of a robot."""
    names = [token for token in tokens if _may_be_name(token)]
    return next(filter(_NAME_OF_ONE.search, names), names[0] if names else "")


@cache
def _list() -> tuple[dict[str, list[tuple[str, Tags]]], list[tuple[re.Pattern[str], Tags]]]:
    """Return crawler-user-agents: its plain texts by their first four characters, and its patterns.

    1,500 patterns are slow one after the other, and most of them are plain.
    """
    from crawleruseragents import CRAWLER_USER_AGENTS_DATA  # noqa: PLC0415  # half a MB

    by_gram: dict[str, list[tuple[str, Tags]]] = {}
    patterns = []
    for entry in CRAWLER_USER_AGENTS_DATA:
        plain, tags = re.sub(r"\\(\W)", r"\1", entry["pattern"]), entry.get("tags", ())
        if _SPECIAL.search(entry["pattern"]) or len(plain) < _GRAM:
            patterns.append((re.compile(entry["pattern"]), tags))
        else:
            by_gram.setdefault(plain[:_GRAM], []).append((plain, tags))
    return by_gram, patterns


def _known_in(header: str) -> tuple[int, Tags] | None:
    """Return where the list knows a robot in *header*, and its tags; plain texts come first."""
    by_gram, patterns = _list()
    for at in range(len(header) - _GRAM + 1):
        for plain, tags in by_gram.get(header[at : at + _GRAM], ()):
            if header.startswith(plain, at):
                return at, tags
    for pattern, tags in patterns:
        if match := pattern.search(header):
            return match.start(), tags
    return None
