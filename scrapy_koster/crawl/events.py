"""Sends the signals of ``scrapy_koster.signals`` if receivers are connected."""

from __future__ import annotations

from pydispatch.dispatcher import getAllReceivers
from scrapy.crawler import Crawler


class Events:
    """The events of a crawl, sent as signals of its crawler."""

    def __init__(self, crawler: Crawler) -> None:
        self._signals = crawler.signals

    def has_receivers(self, signal: object) -> bool:
        """Return whether *signal* has receivers."""
        return any(getAllReceivers(self._signals.sender, signal))

    def send(self, signal: object, **named: object) -> None:
        """Send *signal* if it has receivers."""
        if self.has_receivers(signal):
            self._signals.send_catch_log(signal, **named)
