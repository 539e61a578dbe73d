"""Parts of a crawl that have a defect."""

from __future__ import annotations

from scrapy.exceptions import NotConfigured
from scrapy.robotstxt import RobotParser


class NoFile(RobotParser):
    """Takes the empty file that it is tried with at the start, and no other."""

    def __init__(self, body: bytes) -> None:
        if body:
            raise NotConfigured("this file is too odd")

    @classmethod
    def from_crawler(cls, crawler: object, robotstxt_body: bytes) -> NoFile:
        return cls(robotstxt_body)

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return True


class NoUrl(NoFile):
    """Reads any file, and cannot decide on any URL."""

    def __init__(self, body: bytes) -> None:
        pass

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        raise ZeroDivisionError


class NoBool(NoUrl):
    """Answers with a value that is true, and is no bool."""

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return ("no", "reason")  # type: ignore[return-value]
