"""The parsers that are measured, each as it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.robotparser import RobotFileParser

from protego import Protego

from scrapy_koster.parsers import KosterRobotParser

ROBOT = "figtree"


class Peer(NamedTuple):
    """A parser: from the octets of a file to an object, and from that to answers."""

    name: str
    read: Callable[[bytes], Any]
    decide: Callable[[Any, Sequence[str]], None]


def _decide_koster(parser: Any, urls: Sequence[str]) -> None:
    allowed = parser.allowed
    for url in urls:
        allowed(url, ROBOT)


def _read_protego(body: bytes) -> Any:
    return Protego.parse(body.decode("utf-8", "ignore"))


def _decide_protego(parser: Any, urls: Sequence[str]) -> None:
    can_fetch = parser.can_fetch
    for url in urls:
        can_fetch(url, ROBOT)


def _read_urllib(body: bytes) -> Any:
    parser = RobotFileParser()
    parser.parse(body.decode("utf-8", "ignore").splitlines())
    return parser


def _decide_urllib(parser: Any, urls: Sequence[str]) -> None:
    can_fetch = parser.can_fetch
    for url in urls:
        can_fetch(ROBOT, url)


def _read_rerp(body: bytes) -> Any:
    parser = import_module("robotexclusionrulesparser").RobotExclusionRulesParser()
    parser.parse(body.decode("utf-8", "ignore"))
    return parser


def _decide_rerp(parser: Any, urls: Sequence[str]) -> None:
    is_allowed = parser.is_allowed
    for url in urls:
        is_allowed(ROBOT, url)


KOSTER = Peer(
    "scrapy-koster", lambda body: KosterRobotParser.from_crawler(None, body), _decide_koster
)
PROTEGO = Peer("Protego", _read_protego, _decide_protego)


def peers() -> list[Peer]:
    """Return ours first, then the others that are installed."""
    found = [KOSTER, PROTEGO]
    if find_spec("robotexclusionrulesparser"):
        found.append(Peer("robotexclusionrulesparser", _read_rerp, _decide_rerp))
    return [*found, Peer("urllib.robotparser", _read_urllib, _decide_urllib)]
