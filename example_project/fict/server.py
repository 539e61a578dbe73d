"""The extension that serves the site while a crawl runs."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import strftime
from typing import TYPE_CHECKING, Any

from scrapy import signals

from fict.site import ROBOTS_TXT, Document, documents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Spider
    from scrapy.crawler import Crawler

_POLL_SECS = 0.02


class FictOrg:
    """Serves the site on a free port of 127.0.0.1 from a thread of its own.

    A spider gets at it by ``FictOrg.of(spider)``, for the URLs of its pages.
    """

    def __init__(self, pages: Mapping[str, Document], log: str | None = None) -> None:
        self._pages = pages
        self._log = log
        self._server: _Server | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FictOrg:
        site = cls(
            documents(_robots_txt(crawler)),
            crawler.settings["FICT_LOG"],
        )
        crawler.signals.connect(site.open, signal=signals.spider_opened)
        crawler.signals.connect(site.close, signal=signals.spider_closed)
        return site

    @staticmethod
    def of(spider: Spider) -> FictOrg:
        site = spider.crawler.get_extension(FictOrg)
        if site is None:
            raise RuntimeError('the spider needs EXTENSIONS = {"fict.server.FictOrg": 500}')
        return site

    @property
    def asked(self) -> list[str]:
        """The paths of the requests that reached the site, in their order."""
        return self._server.asked if self._server else []

    def url(self, path: str) -> str:
        if self._server is None:
            raise RuntimeError("the site is served from spider_opened on")
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def open(self) -> None:
        self._server = _Server(self._pages, self._log)
        Thread(target=self._server.serve_forever, args=(_POLL_SECS,), daemon=True).start()

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


def _robots_txt(crawler: Crawler) -> bytes:
    """Return that of the spider, if it has one, of FICT_ROBOTS_TXT, or of section 4."""
    of_spider: str | None = getattr(crawler.spidercls, "robots_txt", None)
    file = crawler.settings["FICT_ROBOTS_TXT"]
    if of_spider is not None or not file:
        return (of_spider or ROBOTS_TXT).encode()
    return Path(file).read_bytes()


class _Server(ThreadingHTTPServer):
    def __init__(self, pages: Mapping[str, Document], log: str | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages = pages
        self.log = Path(log) if log else None
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        document = self.server.pages.get(self.path)
        if document is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", document.content_type)
        self.send_header("Content-Length", str(len(document.body)))
        for name, value in document.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(document.body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Add a line to the log of the site, where it has one, as Apache and nginx do."""
        if self.server.log is not None:
            agent, when = self.headers.get("User-Agent", "-"), strftime("%d/%b/%Y:%H:%M:%S %z")
            with self.server.log.open("a", encoding="latin-1") as log:
                log.write(
                    f'{self.client_address[0]} - - [{when}] "{self.requestline}" {int(code)} {size}'
                    f' "-" "{agent}"\n'
                )

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name there
        """Say nothing on stderr: what was asked is in ``asked``."""
