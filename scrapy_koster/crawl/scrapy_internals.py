"""Undocumented names of Scrapy, with the effect of a missing name.

A new release of Scrapy may rename or remove a name. If a crawl needs a missing name, the crawl
stops at the start with an error that has the name, and no page is fetched. Other names are looked
up when used. Without such a name, a single feature does not work.
"""

from operator import attrgetter

import scrapy
from scrapy.crawler import Crawler

_HANDLERS = "scrapy.core.downloader.handlers.DownloadHandlers"
NEEDED = {
    # To see whether a crawl closes or belongs to `scrapy shell`, and to call the scheduler.
    "engine._slot": "scrapy.core.engine.ExecutionEngine",
    "engine._slot.closing": "scrapy.core.engine._Slot",
    "engine._slot.close_if_idle": "scrapy.core.engine._Slot",
    "engine._slot.nextcall": "scrapy.core.engine._Slot",
    "engine._slot.nextcall.schedule": "scrapy.utils.reactor.CallLaterOnce",
    # To see which requests are in the downloader.
    "engine.downloader": "scrapy.core.engine.ExecutionEngine",
    "engine.downloader.active": "scrapy.core.downloader.Downloader",
    # To check a request when it is sent, and to name a handler with wrong results.
    "engine.downloader.handlers": "scrapy.core.downloader.Downloader",
    "engine.downloader.handlers.download_request_async": _HANDLERS,
    "engine.downloader.handlers._get_handler": _HANDLERS,
    # To send a request for a robots.txt in the same way as a request for a page.
    "engine.downloader.middleware": "scrapy.core.downloader.Downloader",
    "engine.downloader.middleware.download_async": (
        "scrapy.core.downloader.middleware.DownloaderMiddlewareManager"
    ),
}
"""Names that a crawl needs at its start: the path from the crawler, and the class with the name."""

# Other names, each with the feature that is missing without it:
#   Downloader.slots: requests that wait for a DOWNLOAD_DELAY leave their places to other hosts
#   Downloader.needs_backout: requests that wait in the downloader take no CONCURRENT_REQUESTS slot
#   Scheduler.df: a request that waited when a crawl was killed is not fetched twice


def check_internals(crawler: Crawler) -> None:
    """Raise RuntimeError if Scrapy lacks a name that the crawl of *crawler* needs.

    Call this when the spider is opened: the objects of the crawl exist by then.
    """
    for path, owner in NEEDED.items():
        try:
            attrgetter(path)(crawler)
        except AttributeError:
            raise RuntimeError(
                f"scrapy-koster does not work with Scrapy {scrapy.__version__}, which has no"
                f" {owner}.{path.rpartition('.')[2]}. The crawl stops, because it might not obey"
                " robots.txt. Upgrade scrapy-koster, or install an older release of Scrapy."
            ) from None
