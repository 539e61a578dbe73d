"""What a request that may not be made ends with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

if TYPE_CHECKING:
    from scrapy_koster.protocol.verdict import Verdict


class RobotsForbidden(IgnoreRequest):
    """The site's robots.txt forbids the request; ``verdict`` says where."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict


class RobotsUnavailable(IgnoreRequest):
    """The site's robots.txt could not be retrieved (3.1); ``verdict`` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict
