"""Undocumented names of Scrapy, with the effect of a missing name.

A later release may rename or remove a name. If a crawl needs a missing name, the crawl stops at the
start with an error that has the name, and no page is fetched. Other names are looked up when used.
Without such a name, a single feature does not work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import scrapy

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Internal(NamedTuple):
    """An undocumented name of Scrapy."""

    name: str
    """The full name."""
    purpose: str
    """The use of the name in this package."""
    without: str = "The crawl stops when it starts."
    """The effect if Scrapy lacks the name."""
    place: str = ""
    """The path from the crawler to the name at the start; "" if no crawl needs the name."""


def _needed(owner: str, place: str, purpose: str) -> Internal:
    """Return the row of a needed attribute of the class *owner*."""
    name = f"scrapy.{owner}.{place.rpartition('.')[2]}"
    return Internal(name, purpose, place=place)


def _of_queue(name: str, purpose: str, without: str = "be built") -> Internal:
    return Internal(f"scrapy.pqueues.{name}", purpose, f"RoundRobinPriorityQueue cannot {without}.")


_SLOT = "core.engine._Slot"
_DOWNLOADER = "core.downloader.Downloader"
_MIDDLEWARES = "core.downloader.middleware.DownloaderMiddlewareManager"
_HANDLERS = "core.downloader.handlers.DownloadHandlers"
_CALL_ENGINE = "to make the engine call the scheduler"
_CHECK = "to check a request when it is sent"
_SEND = "to send the request for a robots.txt as pages are"

INTERNALS = (
    _needed("core.engine.ExecutionEngine", "engine._slot", "the names of its class"),
    _needed("core.engine.ExecutionEngine", "engine.downloader", "the names of its class"),
    _needed(_SLOT, "engine._slot.closing", "whether a crawl closes"),
    _needed(_SLOT, "engine._slot.close_if_idle", "scrapy shell"),
    _needed(_SLOT, "engine._slot.nextcall", _CALL_ENGINE),
    _needed("utils.reactor.CallLaterOnce", "engine._slot.nextcall.schedule", _CALL_ENGINE),
    _needed(_DOWNLOADER, "engine.downloader.active", "which requests are under way"),
    Internal(
        f"scrapy.{_DOWNLOADER}.needs_backout",
        "whether all places are taken",
        "Requests that wait in the downloader take places of CONCURRENT_REQUESTS.",
    ),
    _needed(_DOWNLOADER, "engine.downloader.handlers", _CHECK),
    _needed(_DOWNLOADER, "engine.downloader.middleware", _SEND),
    _needed(_MIDDLEWARES, "engine.downloader.middleware.download_async", _SEND),
    _needed(_HANDLERS, "engine.downloader.handlers.download_request_async", _CHECK),
    _needed(
        _HANDLERS,
        "engine.downloader.handlers._get_handler",
        "the handler whose connections are limited; whether it is that of scrapy-zyte-api",
    ),
    Internal(
        "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler._pool",
        "the limit of an answer on Twisted's connections",
        "The headers of a robots.txt have no limit.",
    ),
    Internal(
        "scrapy.core.scheduler.Scheduler.df",
        "duplicates of parked requests in a JOBDIR",
        "A request that waited when a crawl was killed may be fetched twice.",
    ),
)

_QUEUE = "DownloaderAwarePriorityQueue"
QUEUE_INTERNALS = (
    _of_queue("DownloaderInterface", "to look at few hosts", "be imported"),
    _of_queue(f"{_QUEUE}.pqueues", "the hosts with requests, in the order of their turns"),
    _of_queue(f"{_QUEUE}._downloader_interface", "to look at few hosts"),
    _of_queue(f"{_QUEUE}._last_selected_slot", "whose turn it was"),
)
"""Names that only RoundRobinPriorityQueue uses."""


def check_internals(crawler: Crawler) -> None:
    """Raise RuntimeError if Scrapy lacks a name that the crawl of *crawler* needs.

    Call this when the spider is opened: the objects of the crawl exist by then.
    """
    for internal in INTERNALS:
        path, _, last = internal.place.rpartition(".")
        owner: object = crawler
        for step in path.split("."):
            owner = getattr(owner, step, None)
        if path and owner is not None and not hasattr(owner, last):
            raise RuntimeError(
                f"scrapy-koster does not work with Scrapy {scrapy.__version__}, which has no"
                f" {internal.name}. The crawl stops, because it might not obey robots.txt. Upgrade"
                " scrapy-koster, or install an older release of Scrapy."
            )
