"""The extension that collects and writes the report of a crawl (KOSTER_REPORT)."""

import re
from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from time import gmtime, strftime
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_koster.crawl.clock import Ticks, clock_of
from scrapy_koster.crawl.config import Config, config_of
from scrapy_koster.crawl.engine.compat import run_in_thread
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.robot import copies_of, user_agent
from scrapy_koster.extras import need_extra
from scrapy_koster.protocol.access import CachedRobots, last_copy
from scrapy_koster.protocol.nametoken import names_of
from scrapy_koster.protocol.printable import error_text, printable
from scrapy_koster.protocol.site import site_of
from scrapy_koster.report.counts import Counts
from scrapy_koster.report.database import Writer, reading
from scrapy_koster.storage import Storage
from scrapy_koster.writing import try_writing

_BATCH_SECS = 2.0
_FOLDER = "reports"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
# Number of files that are kept for a spider. Files that changed within a day are also kept, because
# they may belong to running crawls.
_FILES_KEPT = 10
_MAY_RUN_SECS = 86400.0


class RobotsReport:
    """Extension that counts decisions, and writes a page when the crawl ends (KOSTER_REPORT).

    Counts are saved every two seconds in ``database``, a SQLite file in the folder ``reports`` next
    to KOSTER_SQLITE_PATH. Every run has its own file.
    """

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._clock = clock = clock_of(crawler)
        self._config = config
        self._log = Log(__name__, crawler)
        self._ticks: Ticks | None = None
        self.counts = Counts(clock.epoch, config.parser)
        for signal, handler in self.counts.handlers():
            crawler.signals.connect(handler, signal=signal)
        spider: Any = crawler.spider
        name = _NOT_IN_A_NAME.sub("_", spider.name)[:60] or "spider"
        stamp = strftime("%Y%m%dT%H%M%S", gmtime(clock.epoch()))
        # A random part: several crawls may begin in the same second, in a process or in containers.
        self.database = str(folder_of(config) / f"{name}-{stamp}-{token_hex(4)}.sqlite3")
        self._writer = Writer(self.database)
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._engine_stopped, signal=signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "RobotsReport":
        """Return the extension. Raises NotConfigured if this crawl has no report.

        With ROBOTSTXT_OBEY, a crawl has a report if KOSTER_REPORT is set, or if the crawl is a
        survey. Raises ValueError for an invalid setting, and MissingExtraError if KOSTER_REPORT is
        set without the extra ``tools``. Both errors stop the crawl.
        """
        config = config_of(crawler)
        is_survey = getattr(crawler.spider, "is_survey", False)
        if not crawler.settings.getbool("ROBOTSTXT_OBEY") or not (config.report or is_survey):
            raise NotConfigured  # without a message, Scrapy logs no line
        if config.report:
            _try_page(config.report)
        return cls(crawler, config)

    def _spider_opened(self) -> None:
        with suppress(OSError):
            _remove_oldest(Path(self.database), self._clock.epoch())
        self._write()
        self._ticks = Ticks(self._clock, _BATCH_SECS, self._write)

    def _write(self) -> None:
        """Write the new counts. After an error, the next call writes these counts, too."""
        try:
            for name, value in self._about().items():
                self.counts.tally.put("about", name, value=value)
            self._writer.write(self.counts.tally)
        except Exception as error:  # noqa: BLE001  # the crawl goes on without the report
            self._log.warning_once(
                "The data of the report cannot be written to %(path)s: %(error)s. The crawl"
                " goes on and tries again. Until then, counts are kept in memory, for 10,000"
                " sites at most. This is logged once. Free space, or make the folder writable",
                path=self.database,
                error=error,
            )

    def _about(self) -> dict[str, object]:
        """Return the facts about the crawl for the page, by name."""
        crawler, config = self._crawler, self._config
        spider: Any = crawler.spider
        robot = config.robot or user_agent(crawler)
        started, reason = map(crawler.stats.get_value, ("start_time", "finish_reason"))
        return {
            "title": printable(str(getattr(spider, "report_title", f"Crawl of {spider.name}"))),
            "spider": printable(spider.name),
            "robot": printable(", ".join(names_of(robot))),
            "agent": printable(robot, 400),
            "copies": copies_of(crawler, config),
            "dry_run": int(config.dry_run),
            "survey": int(getattr(spider, "is_survey", False)),
            "parser": config.parser.__name__,
            "version": version("scrapy-koster"),
            "written": int(self._clock.epoch()),
            "started": started and int(started.timestamp()),
            "finished": reason and printable(str(reason)),
        }

    async def _engine_stopped(self) -> None:
        # The counts are complete: requests that waited in place were refused as the spider closed.
        if self._ticks is not None:
            self._ticks.stop()
        self._write()
        self._writer.close()
        page = self._config.report
        if page is None:
            return
        self._log.info("Writing the report. If the crawl had many sites, this takes a while")
        try:
            await run_in_thread(write_report, self._config, self.database, page)
        except Exception as error:  # noqa: BLE001
            self._log.warning(
                "The page of the report cannot be written (%(page)s): %(error)s. The counts are in"
                " %(path)s: run scrapy robots report to make the page",
                page=page,
                path=self.database,
                error=error,
            )
        else:
            self._log.info(
                "The report of this crawl: %(page)s (data: %(path)s)",
                page=str(Path(page).absolute()),
                path=self.database,
            )


def write_report(config: Config, database: str, page: str, *, against: str | None = None) -> None:
    """Write the page about *database*, a report's file. Raises DatabaseError and OSError.

    The page has the robots.txt files of the storage, or no files if the storage fails. *against* is
    the file of an older report to compare with, or None.
    """
    # Imported only here, because ``report.page`` needs packages of the extra ``tools``.
    from scrapy_koster.report.page import write_page  # noqa: PLC0415

    with ExitStack() as stack:
        storage: Storage | None = None
        with suppress(Exception):  # a storage may raise any error
            with reading(database) as connection:
                about = dict(connection.execute("SELECT name, value FROM about").fetchall())
            storage = stack.enter_context(closing(config.open_storage(about["copies"])))

        def copy_of(name: str) -> CachedRobots | None:
            with suppress(Exception):
                if storage is not None and (site := site_of(name)) is not None:
                    return last_copy(storage.get(site))
            return None

        write_page(database, page, copies=copy_of, against=against)


def _try_page(page: str) -> None:
    """Raise ValueError if *page* cannot be written, so that the crawl stops at its start.

    Raises MissingExtraError without the extra ``tools``. Creates the folder of *page*.
    """
    need_extra("tools", "KOSTER_REPORT")
    try:
        Path(page).absolute().parent.mkdir(parents=True, exist_ok=True)
        try_writing(page)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"Invalid KOSTER_REPORT: {printable(repr(page))} cannot be written"
            f" ({error_text(error)}). Use a path in a folder that this process may write to."
            ' For example: KOSTER_REPORT = "robots-report.html".'
        ) from error


def folder_of(config: Config) -> Path:
    """Return the folder for the files of reports, next to the file of the storage."""
    return Path(config.sqlite_path).absolute().parent / _FOLDER


def report_files(folder: Path, spider: str = "*") -> Iterable[Path]:
    """Return the files of reports in *folder* (``folder_of``), the newest first.

    *spider* selects the reports of one spider.
    """
    stamped = f"{spider}-????????T??????-*.sqlite3"
    return sorted(folder.glob(stamped), key=_last_written, reverse=True)


def _last_written(path: Path) -> float:
    wal = path.with_name(f"{path.name}-wal")
    return max((each.stat().st_mtime for each in (path, wal) if each.exists()), default=0.0)


def _remove_oldest(own: Path, now: float) -> None:
    """Remove old report files of the spider of this crawl. *own* is the file of this crawl.

    The newest ten files are kept, and files that changed within a day.
    """
    spider = own.name.rsplit("-", 2)[0]
    for old in list(report_files(own.parent, spider))[_FILES_KEPT:]:
        if now - _last_written(old) > _MAY_RUN_SECS:
            for suffix in ("", "-wal", "-shm"):
                old.with_name(f"{old.name}{suffix}").unlink(missing_ok=True)
