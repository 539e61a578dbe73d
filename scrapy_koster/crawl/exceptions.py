"""The errors of requests that may not be sent."""

from scrapy.exceptions import IgnoreRequest

from scrapy_koster.protocol.verdict import Verdict


class _Refused(IgnoreRequest):
    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict


class RobotsForbidden(_Refused):
    """The request is forbidden. ``verdict`` has the reason, and a line of the robots.txt if any."""


class RobotsUnavailable(_Refused):
    """No robots.txt decides, for example because it could not be retrieved (3.1).

    ``verdict`` has the reason.
    """
