"""What a request that may not be made ends with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import CannotResolveHostError, IgnoreRequest

from scrapy_koster.protocol.step import Refuse

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from scrapy_koster.protocol.step import Step
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


def unavailable(
    verdict: Verdict, step: Step, defect: Failure | None, *, is_by_hand: bool
) -> Exception:
    """Return the exception of a request that *step* refuses: RobotsUnavailable, or the cause.

    *defect* is the last error of a component at the site's robots.txt. *is_by_hand*: a command of
    Scrapy fetches one page.
    """
    if isinstance(step, Refuse):
        if step.failure.is_defect and defect is not None and isinstance(defect.value, Exception):
            # Without the traceback of the request before, which raised the same exception.
            return defect.value.with_traceback(defect.tb)
        if step.failure.no_such_host and is_by_hand:
            # `scrapy shell` goes on after IgnoreRequest, with no response.
            return CannotResolveHostError(step.failure.reason)
    return RobotsUnavailable(verdict)
