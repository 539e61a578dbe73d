"""What the robots.txt of a site states about the pages that are fetched from it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.step import Obey

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_koster.crawl.sites import SiteState
    from scrapy_koster.protocol.step import Step
    from scrapy_koster.protocol.usage import Statement, UsageChoice


class Stated:
    """The statements that applied to each page when it was requested.

    Attach, 3.3: a crawler "uses the copy of robots.txt that is current at the time of the fetch".
    """

    def __init__(self, choice: UsageChoice) -> None:
        self._choice = choice
        self._found: WeakKeyDictionary[Request, tuple[Statement, ...]] = WeakKeyDictionary()
        self.has_any = False
        """Whether a site of this crawl has stated anything so far."""

    def look(self, request: Request, state: SiteState, robot: str, step: Step) -> Statement | None:
        """Note what applies to *request*, whose site allows it; return what refuses it."""
        usage = state.facts.usage
        if usage is None or not isinstance(step, Obey):
            if self.has_any:
                self._found.pop(request, None)
            return None
        self.has_any = True
        statements = self._found[request] = usage.statements(request.url, robot)
        if not self._choice.refuses or is_robots_txt(request.url):
            return None
        return self._choice.disallowed(statements)

    def about(self, request: Request) -> tuple[Statement, ...]:
        """Return what applied to *request* when it was sent."""
        return self._found.get(request, ()) if self.has_any else ()

    def ended_elsewhere(self, request: Request, ended: Request) -> None:
        """Have what applies to *ended* apply to *request*, whose page has come from there."""
        self._found[request] = self.about(ended)
