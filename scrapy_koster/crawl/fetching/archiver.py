"""Writes the robots.txt of a crawl to the archive (KOSTER_ARCHIVE)."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import scrapy

from scrapy_koster.archive.record import Attempt, Record
from scrapy_koster.crawl.clock import clock_of
from scrapy_koster.crawl.config import DEFAULTS, FALLBACK_SCHEDULER, STORAGE_SETTINGS
from scrapy_koster.crawl.messages.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from scrapy_koster.protocol.access import Copy, Known
    from scrapy_koster.protocol.exchange import Exchange
    from scrapy_koster.protocol.site import Site
    from scrapy_koster.protocol.verdict import Source

_UNDECISIVE = {"KOSTER_ARCHIVE", "KOSTER_REPORT", "KOSTER_STORAGE", FALLBACK_SCHEDULER}
_CONFORMS_TO = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"


class Archiver:
    """Writes the archive, with a call for each attempt.

    A copy or failure is written before the crawl stores or obeys the robots.txt. So the evidence
    for every fetched page is on the disk. Failed writes are counted, and logged once.
    """

    def __init__(self, crawler: Crawler, folder: str, robot: str) -> None:
        """Write into *folder*, for a crawl that decides for *robot*."""
        # An extra, which a crawl without an archive does not load.
        from scrapy_koster.archive.evidence import Evidence  # noqa: PLC0415
        from scrapy_koster.archive.writer import Writer  # noqa: PLC0415

        self._folder = folder
        self._stats = crawler.stats
        self._log = Log(__name__, crawler)
        self._epoch = clock_of(crawler).epoch
        began = self._epoch()
        info = _info_of(crawler, robot=robot, began=began)
        self._evidence = Evidence(Writer(folder, info, began=began), began=began)

    def learnt(
        self,
        site: Site,
        known: Known,
        source: Source,
        exchanges: tuple[Exchange, ...] = (),
        stale: Copy | None = None,
    ) -> Known:
        """Write an attempt for *site*, and return *known* with the record ID of the copy.

        *exchanges* are the requests and responses, *stale* is the revalidated copy.
        """
        attempt = Attempt(site, known, source.value, self._epoch(), exchanges, stale)
        try:
            archived, records = self._evidence.add(attempt)
        except Exception as error:  # noqa: BLE001  # no disk and no file may end the crawl
            self._failed(error)
            return known
        self._stats.inc_value("koster/archive/records", records)
        return archived

    def close(self) -> None:
        """End the file, and write its index."""
        try:
            self._evidence.close()
        except Exception as error:  # noqa: BLE001  # as above
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._stats.inc_value("koster/archive/error")
        if self._log.is_first("failed"):
            self._log.warning(
                "The archive of robots.txt could not be written. The crawl goes on, and this is"
                " not said again: %(folder)s: %(error)s. Free space, or set KOSTER_ARCHIVE to a"
                " folder that can be written",
                folder=self._folder,
                error=error,
            )


def _info_of(crawler: Crawler, *, robot: str, began: float) -> Callable[[str], Record]:
    """Return a function that makes the warcinfo record of a file, with the software and settings.

    The crawl decides for *robot*, and began at *began*, in seconds since the epoch.
    """
    settings = crawler.settings
    told = {
        "software": f"scrapy-koster/{version('scrapy-koster')} Scrapy/{scrapy.__version__}"
        f" Python/{platform.python_version()}",
        "format": "WARC File Format 1.1",
        "conformsTo": _CONFORMS_TO,
        "robots": "classic",
        "http-header-user-agent": str(settings["USER_AGENT"]),
        "koster-spider": str(getattr(crawler.spider, "name", "")),
        "koster-robot": robot,
        "koster-settings": json.dumps(decisive(settings), default=_path_or_text, sort_keys=True),
    }
    lines = (f"{name}: {' '.join(value.split())}\r\n" for name, value in told.items())
    block = "".join(lines).encode("utf-8", "replace")

    def info(filename: str) -> Record:
        more = {"WARC-Filename": filename}
        return Record("warcinfo", began, block, "application/warc-fields", more=more)

    return info


def decisive(settings: BaseSettings) -> dict[str, Any]:
    """Return the settings that affect decisions, without storage settings, maybe secret."""
    names = DEFAULTS.keys() - STORAGE_SETTINGS.keys() - _UNDECISIVE
    return {name: settings.get(name, DEFAULTS[name]) for name in names}


def _path_or_text(value: object) -> object:
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return list(value) if isinstance(value, (set, frozenset, tuple)) else str(value)
