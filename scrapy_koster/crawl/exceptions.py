"""What a request that may not be made ends with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

if TYPE_CHECKING:
    from scrapy_koster.protocol.verdict import Verdict


class RobotsForbidden(IgnoreRequest):
    """The robots.txt forbids the request. ``verdict`` has the line and the reason."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict


class RobotsUnavailable(IgnoreRequest):
    """The robots.txt could not be retrieved (3.1). ``verdict`` has the reason."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict
