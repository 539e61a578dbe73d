"""Scrapy's priority queue, in which a request costs the same however many hosts have one."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.pqueues import (
    DownloaderAwarePriorityQueue,
    DownloaderInterface,
    ScrapyPriorityQueue,
)

from scrapy_koster.crawl.scrapy_internals import QUEUE_INTERNALS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler


class RoundRobinPriorityQueue(DownloaderAwarePriorityQueue):
    """Takes a request of the host that has the fewest downloads, and of such hosts by turns.

    So does Scrapy's own, in alphabetical order, and for each request it looks at every host in the
    queue. This one looks at hosts in the order of their turns until it finds one without a
    download: at no more than are being downloaded from. A JOBDIR is the same for both.
    """

    pqueues: OrderedDict[Any, Any]
    """Of each host, in the order of their turns: the next is the first."""

    def __init__(self, crawler: Crawler, *args: Any, **kwargs: Any) -> None:
        super().__init__(crawler, *args, **kwargs)
        for internal in QUEUE_INTERNALS:
            owner, _, name = internal.name.rpartition(".")
            if owner.endswith(DownloaderAwarePriorityQueue.__name__) and not hasattr(self, name):
                raise RuntimeError(
                    f"RoundRobinPriorityQueue does not work with Scrapy {scrapy.__version__}, which"
                    f" has no {internal.name}: remove SCHEDULER_PRIORITY_QUEUE from your settings"
                )
        self.pqueues = OrderedDict(self.pqueues)
        self._downloader_interface = _Downloads(crawler)

    def pqfactory(self, slot: str, startprios: Iterable[int] = ()) -> ScrapyPriorityQueue:
        """Return the queue of one host. In memory it needs no folder, whose name is a hash."""
        return super().pqfactory(slot if self.key else "", startprios)

    def pop(self) -> Request | None:
        """Return a request, None if there is none."""
        try:
            return super().pop()
        finally:  # a host whose queue cannot be read has had its turn, too
            if self._last_selected_slot in self.pqueues:
                self.pqueues.move_to_end(self._last_selected_slot)


class _Downloads(DownloaderInterface):
    """Tells the queue of one host alone: the one that comes next."""

    def stats(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """Return the first with the fewest downloads, and their number."""
        fewest: list[tuple[int, str]] = []
        for slot in possible_slots:
            [(count, _)] = super().stats([slot])
            if not fewest or count < fewest[0][0]:
                fewest = [(count, slot)]
            if not count:
                break
        return fewest
