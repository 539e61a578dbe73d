"""The log of a crawl. Text from the network is made printable (section 6)."""

import logging
from collections import Counter

from scrapy.crawler import Crawler

from scrapy_koster.protocol.printable import error_text, printable

_VALUE_CHARS = 1000


class UnexpectedError(Exception):
    """Replaces an error in a traceback. The message is the printable text of the error."""


class Log:
    """Writes the lines of a module into the log of a crawl.

    Messages are %-formatted with named values, as in ``logging``. Values that are not numbers are
    made printable and cut, because hosts, URLs, reasons and the texts of errors may come from the
    network.
    """

    def __init__(self, name: str, crawler: Crawler) -> None:
        """*name* is the name of the logger: the ``__name__`` of the module."""
        self._logger = logging.getLogger(name)
        self._crawler = crawler
        self._logged: Counter[object] = Counter()

    def debug(self, message: str, **values: object) -> None:
        """Log a message about a request, or about an attempt for a robots.txt, at DEBUG."""
        self._write(logging.DEBUG, message, values)

    def info(self, message: str, **values: object) -> None:
        """Log a message about a site, or about the whole crawl, at INFO."""
        self._write(logging.INFO, message, values)

    def info_first(self, count: int, kind: object, message: str, **values: object) -> None:
        """Log the first *count* messages of a *kind* at INFO, and further messages at DEBUG."""
        is_first = self.is_first(kind, count)
        if self._logged[kind] == count:
            message += ". Further messages like this are logged at DEBUG"
        self._write(logging.INFO if is_first else logging.DEBUG, message, values)

    def is_first(self, kind: object, count: int = 1) -> bool:
        """Return whether this is one of the first *count* calls with *kind*."""
        self._logged[kind] += 1
        return self._logged[kind] <= count

    def warning(self, message: str, **values: object) -> None:
        """Log a problem that the user should fix, at WARNING."""
        self._write(logging.WARNING, message, values)

    def warning_once(self, message: str, **values: object) -> None:
        """Log a problem at WARNING the first time, and not again."""
        if self.is_first(message):
            self._write(logging.WARNING, message, values)

    def defect(self, message: str, error: BaseException, **values: object) -> None:
        """Log *message* at ERROR, with the traceback of *error*, a defect of the crawl's code."""
        shown = UnexpectedError(error_text(error)).with_traceback(error.__traceback__)
        self._write(logging.ERROR, message, values, shown)

    def _write(
        self,
        level: int,
        message: str,
        values: dict[str, object],
        error: BaseException | None = None,
    ) -> None:
        if self._logger.isEnabledFor(level) and (level > logging.DEBUG or self._is_heard(level)):
            shown = {name: _harmless(value) for name, value in values.items()}
            self._logger.log(
                level,
                message,
                *([shown] if shown else []),  # without values, % is an ordinary character
                exc_info=error,
                extra={"spider": self._crawler.spider},
                stacklevel=3,
            )

    def _is_heard(self, level: int) -> bool:
        """Return whether a handler takes messages at *level*.

        Scrapy sets LOG_LEVEL in its handlers. Its loggers take every level.
        """
        logger: logging.Logger | None = self._logger
        while logger is not None:
            if any(level >= handler.level for handler in logger.handlers):
                return True
            logger = logger.parent if logger.propagate else None
        return False


def _harmless(value: object) -> object:
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, BaseException):
        return error_text(value)
    return printable(str(value), _VALUE_CHARS)
