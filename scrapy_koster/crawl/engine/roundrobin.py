"""A priority queue like Scrapy's, which does not slow down with the number of hosts."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import scrapy
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue, DownloaderInterface

from scrapy_koster.crawl.scrapy_internals import QUEUE_INTERNALS


class RoundRobinPriorityQueue(DownloaderAwarePriorityQueue):
    """Returns a request of a host with the fewest downloads under way. Hosts take turns.

    For a request, Scrapy's own queue examines every host in the queue. This queue examines hosts in
    the order of turns, and stops at the first host without downloads. So this queue examines at
    most the hosts with downloads, and one more. Both queues can use the same JOBDIR.
    """

    pqueues: OrderedDict[Any, Any]
    """The queues of the hosts, in the order of turns."""

    def __init__(self, crawler: Crawler, *args: Any, **kwargs: Any) -> None:
        super().__init__(crawler, *args, **kwargs)
        for internal in QUEUE_INTERNALS:
            owner, _, name = internal.rpartition(".")
            if owner.endswith(DownloaderAwarePriorityQueue.__name__) and not hasattr(self, name):
                raise RuntimeError(
                    f"RoundRobinPriorityQueue does not work with Scrapy {scrapy.__version__}, which"
                    f" has no {internal}: remove SCHEDULER_PRIORITY_QUEUE from your settings"
                )
        self.pqueues = OrderedDict(self.pqueues)
        self._downloader_interface = _Downloads(crawler)

    def pop(self) -> Request | None:
        """Return the next request, or None."""
        try:
            return super().pop()
        finally:  # after an error, too: a queue that cannot be read has had its turn
            if self._last_selected_slot in self.pqueues:
                self.pqueues.move_to_end(self._last_selected_slot)


class _Downloads(DownloaderInterface):
    """Reports only one host to the queue: the host of the next request."""

    def stats(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """Return the first host with the fewest downloads, as [(number of downloads, name)].

        The list is empty if there are no hosts.
        """
        fewest: list[tuple[int, str]] = []
        for slot in possible_slots:
            [(count, _)] = super().stats([slot])
            if not fewest or count < fewest[0][0]:
                fewest = [(count, slot)]
            if not count:
                break
        return fewest
