"""What the robots.txt of a site states about the pages that are fetched from it."""

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
        """Whether a site of this crawl has stated anything so far."""

    def note(self, request: Request, statements: tuple[Statement, ...]) -> None:
        """Note the *statements* that apply to *request*, in place of older ones."""
        if statements:
            self.has_any = True
            self._found[request] = statements
        elif self.has_any:
            self._found.pop(request, None)

    def about(self, request: Request) -> tuple[Statement, ...]:
        """Return what applied to *request* when it was sent."""
        return self._found.get(request, ()) if self.has_any else ()

    def ended_elsewhere(self, request: Request, ended: Request) -> None:
        """Have what applies to *ended* apply to *request*, whose page has come from there."""
        self.note(request, self.about(ended))
