"""Writes the robots.txt of a crawl to the archive (KOSTER_ARCHIVE)."""

import json
import platform
from importlib.metadata import version
from typing import Any

import scrapy
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from scrapy_koster.archive.record import Attempt
from scrapy_koster.crawl.clock import clock_of
from scrapy_koster.crawl.config import DEFAULTS, FALLBACK_SCHEDULER, STORAGE_SETTINGS
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.robot import user_agent
from scrapy_koster.protocol.access import CacheEntry

_UNDECISIVE = {"KOSTER_ARCHIVE", "KOSTER_REPORT", "KOSTER_STORAGE", FALLBACK_SCHEDULER}
_CONFORMS_TO = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"


class Archiver:
    """Archives the attempts to retrieve a robots.txt.

    A copy or failure is written before the crawl stores or obeys it. So the evidence for a page is
    in the archive before the page is fetched. If an attempt ends with a defect of the crawl's own
    code, the failure is not written. If a write fails, the crawl goes on. Failed writes are
    counted, and the first is logged.
    """

    def __init__(self, crawler: Crawler, folder: str, robot: str) -> None:
        """Write into *folder*, for a crawl that decides for *robot*."""
        # These modules belong to an extra, which a crawl without an archive does not load.
        from scrapy_koster.archive.evidence import Evidence  # noqa: PLC0415
        from scrapy_koster.archive.writer import Writer  # noqa: PLC0415

        self._folder = folder
        self._stats = crawler.stats
        self._log = Log(__name__, crawler)
        info, began = _info_of(crawler, robot), clock_of(crawler).epoch()
        self._evidence = Evidence(Writer(folder, info, began=began), began=began)

    def archive(self, attempt: Attempt) -> CacheEntry:
        """Write *attempt*. Return its copy or failure, in which a copy has the ID of its record.

        The copy or failure is returned unchanged if the write fails, or if it comes from the
        storage and is archived already.
        """
        try:
            archived, records = self._evidence.add(attempt)
        except Exception as error:  # noqa: BLE001  # a full disk must not end the crawl
            self._failed(error)
            return attempt.known
        self._stats.inc_value("koster/archive/records", records)
        return archived

    def close(self) -> None:
        """Close the file of the archive, and write its index."""
        try:
            self._evidence.close()
        except Exception as error:  # noqa: BLE001  # a full disk must not end the crawl
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._stats.inc_value("koster/archive/error")
        self._log.warning_once(
            "The archive of robots.txt could not be written. The crawl goes on, and this is"
            " not said again: %(folder)s: %(error)s. Free space, or set KOSTER_ARCHIVE to a"
            " folder that can be written",
            folder=self._folder,
            error=error,
        )


def _info_of(crawler: Crawler, robot: str) -> bytes:
    """Return the block of a warcinfo record: the software and the settings of the crawl.

    *robot* is the name for which the crawl decides.
    """
    settings = crawler.settings
    told = {
        "software": f"scrapy-koster/{version('scrapy-koster')} Scrapy/{scrapy.__version__}"
        f" Python/{platform.python_version()}",
        "format": "WARC File Format 1.1",
        "conformsTo": _CONFORMS_TO,
        "robots": "classic",
        "http-header-user-agent": user_agent(crawler),
        "koster-spider": str(getattr(crawler.spider, "name", "")),
        "koster-robot": robot,
        "koster-settings": json.dumps(decisive(settings), default=_path_or_text, sort_keys=True),
    }
    lines = (f"{name}: {' '.join(value.split())}\r\n" for name, value in told.items())
    return "".join(lines).encode("utf-8", "replace")


def decisive(settings: BaseSettings) -> dict[str, Any]:
    """Return the KOSTER_ settings that affect decisions, by name.

    The settings of storages are left out, because a value can be secret.
    """
    names = DEFAULTS.keys() - STORAGE_SETTINGS.keys() - _UNDECISIVE
    return {name: settings.get(name, DEFAULTS[name]) for name in names}


def _path_or_text(value: object) -> object:
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return list(value) if isinstance(value, (set, frozenset, tuple)) else str(value)
