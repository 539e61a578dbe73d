"""Usage statements that robots.txt makes about fetched pages."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_koster.protocol.usage import Statement


class Stated:
    """The statements that applied to each page when it was requested.

    Attach, 3.3: a crawler "uses the copy of robots.txt that is current at the time of the fetch".
    """

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[Request, tuple[Statement, ...]] = WeakKeyDictionary()
        self.has_any = False
        """Whether a site of this crawl has made a statement so far."""

    def note(self, request: Request, statements: tuple[Statement, ...]) -> None:
        """Replace the statements that apply to *request*."""
        if statements:
            self.has_any = True
            self._found[request] = statements
        elif self.has_any:
            self._found.pop(request, None)

    def about(self, request: Request) -> tuple[Statement, ...]:
        """Return the statements that applied when *request* was sent."""
        return self._found.get(request, ()) if self.has_any else ()

    def ended_elsewhere(self, request: Request, ended: Request) -> None:
        """Use the statements about *ended* for *request*, whose page came from there."""
        self.note(request, self.about(ended))
