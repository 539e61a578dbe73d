"""Finds the robot in a User-Agent header: by the robots.txt, by a list, or by the header."""

import re
from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from functools import cache
from typing import TypeAlias

from scrapy_koster.audit.kinds import Kind, kind_of
from scrapy_koster.protocol.line import AGENT_LINE, with_line_feeds
from scrapy_koster.protocol.nametoken import TOKEN, name_token

HEADER_CHARS = 512
"""A longer User-Agent header is cut, because some patterns of the list are slow on long text."""

_TOKEN = re.compile(TOKEN)
_LIKE_A_ROBOT = re.compile(
    # "bot" alone is not enough: CUBOT is a telephone.
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
"""Words in the headers of browsers. They are not names of robots."""
_BROWSERS_FIRST = frozenset(
    ("mozilla", "opera", "dalvik", "ucbrowser", "lynx", "links", "elinks", "w3m", "netscape")
)
"""The first words of headers of browsers."""
_SPECIAL = re.compile(r"(?<!\\)[.*+?(){}\[\]|^$]|\\\w")
_GRAM = 4
_LISTED_MOST = 10_000


Tags: TypeAlias = Collection[str]


class By(Enum):
    """The reason why a name is taken for a robot."""

    FILE = "file"
    """The name is in a User-agent line of the robots.txt."""
    LIST = "list"
    """The name is in the package crawler-user-agents."""
    ITSELF = "header"
    """The name contains "bot", "crawl", "spider" or "scrap"."""
    ASKED = "asked"
    """The client has requested /robots.txt."""
    NOTHING = "nothing"
    """No reason. The program is not a browser, and may be a robot."""


class Namer:
    """Finds the robot in a User-Agent header, as a name token in lower case."""

    def __init__(self, files: Iterable[bytes]) -> None:
        self._in_files = {name for file in files for name in _agents(file)}
        self._listed: dict[str, Kind] = {}

    def named(self, header: str) -> str | None:
        """Return the robot in *header*, or None for a browser or an empty header."""
        header = header[:HEADER_CHARS]
        known = _known_in(header)
        name = self._name_in(header, known)
        if known is not None and name not in self._listed and len(self._listed) < _LISTED_MOST:
            self._listed[name] = kind_of(name, known[1])
        return name or None

    def _name_in(self, header: str, known: tuple[int, Tags] | None) -> str:
        """Return the name of the robot in *header*, or "" for a browser.

        The name is the first token, the token after ``compatible;``, or the token of a listed
        robot. Any other token counts only if the header is like a robot's, or if a robots.txt has
        the token and the token is like a robot's name: apps that contain a browser send many
        words. A listed robot without a token that can be a name gets the name "robot".
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
        """Return the name after ``compatible;``, "" if a browser or no name follows."""
        for match in _COMPATIBLE.finditer(header):
            tokens: list[str] = [token.lower() for token in _TOKEN.findall(match[1])]
            if tokens and tokens[0] in _BROWSERS:
                continue
            if in_file := next((token for token in tokens if token in self._in_files), ""):
                return in_file
            if listed and listed in tokens:
                return listed  # in "Yahoo! Slurp", the second token
            if names := [token for token in tokens if _may_be_name(token)]:
                return names[0]
        return ""

    def by(self, name: str) -> By:
        """Return the reason why *name* is taken for a robot, by the name only."""
        if name in self._in_files:
            return By.FILE
        if name in self._listed:
            return By.LIST
        return By.ITSELF if _NAME_OF_ONE.search(name) else By.NOTHING

    def kind(self, name: str) -> Kind:
        """Return the kind of the robot *name*."""
        return self._listed.get(name) or kind_of(name, ())


def _agents(file: bytes) -> Iterator[str]:
    """Yield the values of User-agent lines, and the name tokens in the values, in lower case."""
    for value in AGENT_LINE.findall(with_line_feeds(file)):
        for name in (value.lower(), name_token(value)):
            if name not in ("", "*") and name not in _BROWSERS:
                yield name


def _may_be_name(token: str) -> bool:
    return token not in _BROWSERS and not _NO_NAME.fullmatch(token)


def _name_at(header: str, at: int) -> str:
    """Return the token of *header* at or after the index *at*, or "" if it cannot be a name."""
    tokens = (token[0].lower() for token in _TOKEN.finditer(header) if token.end() > at)
    name = next(tokens, "")
    return name if _may_be_name(name) and "." not in name else ""


def _likely(tokens: Iterable[str]) -> str:
    """Return the most likely name of a robot among *tokens*, or ""."""
    names = [token for token in tokens if _may_be_name(token)]
    return next(filter(_NAME_OF_ONE.search, names), names[0] if names else "")


@cache
def _list() -> tuple[dict[str, list[tuple[str, Tags]]], list[tuple[re.Pattern[str], Tags]]]:
    """Return crawler-user-agents: plain texts by the first four characters, and other patterns.

    Most of the 1,500 patterns are plain text. A search for them one by one would be slow.
    """
    from crawleruseragents import CRAWLER_USER_AGENTS_DATA  # noqa: PLC0415  # loads half a MB

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
    """Return the index and the tags of a listed robot in *header*, or None.

    Plain texts are searched before patterns.
    """
    by_gram, patterns = _list()
    for at in range(len(header) - _GRAM + 1):
        for plain, tags in by_gram.get(header[at : at + _GRAM], ()):
            if header.startswith(plain, at):
                return at, tags
    for pattern, tags in patterns:
        if match := pattern.search(header):
            return match.start(), tags
    return None
