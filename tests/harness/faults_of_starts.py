"""What stops a crawl before its first request: wrong settings, and parts that cannot be built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scrapy import Spider
from scrapy.core.scheduler import Scheduler
from scrapy.exceptions import NotConfigured
from scrapy.robotstxt import RobotParser

from harness.wrong_settings import NO_FILES, WRONG
from scrapy_koster import KosterMiddleware


@dataclass(frozen=True)
class StartFault:
    group: str
    name: str
    says: str
    """What the error has to say, as a pattern."""
    settings: Sequence[Mapping[str, Any]]
    """Each is a crawl."""
    promised: str = "the crawl stops at the start with a message"


class Unlicensed(RobotParser):
    @classmethod
    def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> Any:
        raise NotConfigured("no licence")

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return True


class Raising(Unlicensed):
    @classmethod
    def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> Any:
        raise ZeroDivisionError("no licence")


class NotOpening(Scheduler):
    def open(self, spider: Spider) -> Any:
        raise OSError("no queue")


class NotBuilt(Scheduler):
    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        raise NotConfigured("no queue")


class KosterOff(KosterMiddleware):
    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        raise NotConfigured("no luck")


_SETTINGS, _PARTS = "the settings", "the parts of the crawl"
_TAKEN_OUT = "there is no KosterMiddleware"
FAULTS = (
    StartFault(
        _SETTINGS,
        "a wrong value of any setting",
        "KOSTER_(TIMEOUT|PARSER|OVERRIDES)",
        [
            {name: WRONG[name][0]}
            for name in ("KOSTER_TIMEOUT_SECS", "KOSTER_PARSER", "KOSTER_OVERRIDES")
        ],
    ),
    StartFault(_SETTINGS, "a name that is none", "Unknown setting", [{"KOSTER_TIMEOUT": 3}]),
    StartFault(
        _SETTINGS,
        "KOSTER_REPORT cannot be written: a name too long, a folder, a folder that is read-only",
        "Invalid KOSTER_REPORT: .* cannot be written",
        [{"KOSTER_REPORT": path} for path in NO_FILES],
    ),
    StartFault(
        _PARTS, "a parser that raises NotConfigured", "licence", [{"KOSTER_PARSER": Unlicensed}]
    ),
    StartFault(_PARTS, "a parser that cannot be built", "licence", [{"KOSTER_PARSER": Raising}]),
    StartFault(_PARTS, "a scheduler that does not open", "no queue", [{"SCHEDULER": NotOpening}]),
    StartFault(
        _PARTS, "a scheduler that raises NotConfigured", "no queue", [{"SCHEDULER": NotBuilt}]
    ),
    StartFault(
        _PARTS,
        "KosterMiddleware is taken out",
        _TAKEN_OUT,
        [{"DOWNLOADER_MIDDLEWARES": {KosterMiddleware: None}}],
    ),
    StartFault(
        _PARTS,
        "a KosterMiddleware that raises NotConfigured",
        _TAKEN_OUT,
        [{"DOWNLOADER_MIDDLEWARES": {KosterMiddleware: None, KosterOff: 100}}],
    ),
)
