"""Fetches the robots.txt of a site: redirects, the limit of time, and errors."""

from __future__ import annotations

import asyncio
import socket
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadTimeoutError,
    NotConfigured,
    NotSupported,
    StopDownload,
    UnsupportedURLSchemeError,
)
from scrapy.http import Response
from scrapy.utils.asyncio import run_in_thread
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_koster.crawl.engine.answer_limit import AnswerLimit
from scrapy_koster.crawl.engine.robots_download import (
    is_zyte_api,
    send_limited,
    through_middlewares,
)
from scrapy_koster.crawl.engine.robots_mark import MARK
from scrapy_koster.crawl.fetching.http_messages import (
    answer_of,
    exchange_of,
    is_file,
    robots_request,
    without_coding,
)
from scrapy_koster.crawl.fetching.network import network_of
from scrapy_koster.protocol.access import NoAnswer, redirect_target
from scrapy_koster.protocol.exchange import digest_of
from scrapy_koster.protocol.printable import error_text, printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from scrapy import Request
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.protocol.access import Answer, Copy
    from scrapy_koster.protocol.exchange import Exchange
    from scrapy_koster.protocol.site import Site

# The resolver has answered, and there is no such name, or it has no address. That it did
# not answer is another code.
_UNKNOWN_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
# No site makes a handler or a middleware raise these: what was called does not fit, or there is no
# handler for the scheme.
_DEFECTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotConfigured,
    NotSupported,
    RuntimeError,
    SyntaxError,
    TypeError,
    UnsupportedURLSchemeError,
)


_STOPPED = (
    "a handler of the signal bytes_received or headers_received raised StopDownload for the"
    f" robots.txt. Let it return at once if {MARK!r} is in request.meta"
)
_INSIDE = "it redirects to an address that is not public: {}"


class Fetcher:
    """Asks sites for their /robots.txt, apart from the crawl.

    A request goes through the downloader middlewares, so that it is sent as the crawl's own are
    (User-Agent, KOSTER_PAGE_META), but neither through the downloader's slots nor into its count of
    concurrent requests: a site that hangs takes no room from the others. Retries, redirects,
    cookies, the HTTP cache and the offsite filter would change the meaning of an answer. The meta
    of the request switches them off.
    """

    def __init__(
        self,
        crawler: Crawler,
        config: Config,
        stats: Stats,
        clock: Clock,
        *,
        visit: Callable[[str], AbstractAsyncContextManager[None]] | None = None,
    ) -> None:
        """*visit* returns the context in which a URL is requested, and waits for its turn."""
        self._crawler = crawler
        self._clock = clock
        self._config = config
        self._stats = stats
        self._visit = visit
        self._under_way: dict[Deferred[Answer | NoAnswer], Transfer] = {}
        self._cancelled = False

    async def fetch(self, site: Site, page: Request, stale: Copy | None) -> Answer | NoAnswer:
        """Ask *site* on behalf of *page*; a *stale* copy is revalidated (3.4).

        KOSTER_TIMEOUT_SECS bounds the whole of it, redirects included. Failures are returned. A
        defect of the robot (of a middleware, a download handler, this package) is raised: the site
        has not failed.
        """
        secs = self._config.timeout_secs
        self._stats.asked()
        transfer = Transfer(self._crawler, self._config, self._clock, page, stale)
        asking: Deferred[Answer | NoAnswer] = deferred_from_coro(self._follow(site, transfer))
        timer = self._clock.call_later(secs, self._end, asking)
        self._add(asking, transfer)
        waiting = maybe_deferred_to_future(asking)
        try:
            answer = await waiting
        except BaseException as error:
            # A CancelledError may be of a handler: that is a failure of the site. If this call is
            # cancelled, the process ends.
            is_ending = isinstance(waiting, asyncio.Future) and waiting.cancelled()
            if not transfer.is_over and (is_ending or isinstance(error, _DEFECTS)):
                raise
            late = DownloadTimeoutError(f"no answer within {secs:.15g} s")
            answer = self._no_answer(late if transfer.is_over else error)
        finally:
            timer.cancel()
            self._remove(asking)
        exchanges = tuple(transfer.exchanges)
        return replace(answer, exchanges=exchanges) if exchanges else answer

    def cancel(self) -> None:
        """End the requests that are under way: the crawl is closing."""
        self._cancelled = True
        for asking in list(self._under_way):
            self._end(asking)

    def _end(self, asking: Deferred[Answer | NoAnswer]) -> None:
        self._under_way[asking].end()
        asking.cancel()

    def _no_answer(self, error: BaseException, *, no_such_host: bool = False) -> NoAnswer:
        if not self._cancelled:
            self._stats.raised(error)
        return NoAnswer(error_text(error), no_such_host=no_such_host)

    async def _follow(self, site: Site, transfer: Transfer) -> Answer | NoAnswer:
        # 3.1: "a robot should follow the redirects until a resource can be found"; its rules are
        # those of the site that was asked.
        url, network = site.robots_url, ""
        for hop in range(self._config.redirect_max + 1):
            if hop and _leads_inside(urlsplit(url).hostname, network):
                return NoAnswer(_INSIDE.format(printable(url)))
            try:
                async with nullcontext() if self._visit is None else self._visit(url):
                    answer = await transfer.get(url)
            except (CannotResolveHostError, UnicodeError) as error:
                # Twisted raises it for a lookup that was given up. A proxy resolves the name
                # itself, and a redirect leads to another host.
                is_of_site = not (transfer.is_over or transfer.is_proxied or hop)
                unknown = is_of_site and await _is_unknown(url)
                return self._no_answer(error, no_such_host=unknown)
            if isinstance(answer, NoAnswer):
                return answer
            if hop and _leads_inside(transfer.address, network):  # a name of such an address
                return NoAnswer(_INSIDE.format(printable(url)))
            target = redirect_target(answer)
            if target is None:
                self._stats.answered(answer.status)
                return answer
            network = network_of(urlsplit(url).hostname or "") or network_of(transfer.address)
            url = target
        return NoAnswer(f"more than {self._config.redirect_max} redirects")

    def _add(self, asking: Deferred[Answer | NoAnswer], transfer: Transfer) -> None:
        if not self._under_way:
            # Not for the whole crawl: each piece of every page would pass it.
            self._crawler.signals.connect(_bytes_received, signals.bytes_received)
        self._under_way[asking] = transfer

    def _remove(self, asking: Deferred[Answer | NoAnswer]) -> None:
        del self._under_way[asking]
        if not self._under_way:
            self._crawler.signals.disconnect(_bytes_received, signals.bytes_received)


@dataclass(eq=False)
class Transfer:
    """Sends the requests of one fetch. Each of them has it in its meta."""

    crawler: Crawler
    config: Config
    clock: Clock
    page: Request
    """The request on whose behalf the site is asked."""
    stale: Copy | None
    """A copy that is revalidated."""
    is_over: bool = False
    """Whether its time is over, or the crawl closes."""
    is_proxied: bool = False
    """Whether the last request was sent to a proxy."""
    address: str = ""
    """The address of the host that answered last; "" if unknown, or that of a proxy."""
    exchanges: list[Exchange] = field(default_factory=list)
    """What was sent and received, if there is an archive."""
    _is_plain: bool = True
    """Whether the file is asked for as it is: as text, and not compressed."""
    _limit: AnswerLimit = field(init=False)
    _received: int = 0
    _digest: str = ""

    def end(self) -> None:
        """Send no further request. The one that is under way is cancelled by the caller."""
        self.is_over = True

    async def get(self, url: str) -> Answer | NoAnswer:
        """Return the answer to a request for *url*, or to one that a middleware has in its place.

        A middleware may answer in place of the site.
        """
        self._is_plain = not is_zyte_api(self.crawler, url)
        request = robots_request(
            url, self.page, self.stale, config=self.config, plain=self._is_plain
        )
        request.meta[MARK] = self
        for _ in range(self.config.redirect_max + 1):
            self._digest = self.address = ""
            try:
                result = await through_middlewares(self.crawler, self._send, request)
            finally:
                self.is_proxied = "proxy" in request.meta
            if isinstance(result, Response):
                digest = self._digest or digest_of(result.body)
                return answer_of(result, self.config.max_bytes, digest)
            if self.is_over:  # the middleware took that for a failure to retry
                raise DownloadTimeoutError("a downloader middleware would try again")
            request = result
        return NoAnswer("a downloader middleware replaces the request again and again")

    async def _send(self, request: Request) -> Response:
        """Return the decoded response to *request*. A middleware may have it sent again."""
        limit = self._limit = AnswerLimit(self.config.max_bytes)
        self._received, began = 0, self.clock.epoch()
        tell = partial(
            self.crawler.signals.send_catch_log, request=request, spider=self.crawler.spider
        )
        tell(signals.request_reached_downloader)
        # A middleware may have set these headers, as for all requests.
        request.headers.pop("Range", None)
        if self._is_plain:
            request.headers["Accept-Encoding"] = "identity"
        try:
            try:
                response = await send_limited(self.crawler, request, limit)
            except StopDownload as error:  # of a handler of the crawl: ours does not fail
                raise RuntimeError(_STOPPED) from error
            self._digest = digest_of(response.body)
            if "proxy" not in request.meta and response.ip_address is not None:
                self.address = str(response.ip_address)
            if self.config.archive:
                self.exchanges.append(exchange_of(request, response, began, self._digest))
            tell(signals.response_downloaded, response=response)
        finally:
            tell(signals.request_left_downloader)
        if is_file(response):
            self._check_whole(response)
        return without_coding(response, self.config.max_bytes)

    def count(self, data: bytes) -> None:
        """Count *data*, a piece of the body; raise StopDownload if there is enough of it."""
        self._limit.headers_ended()
        self._received += len(data)
        if self._received > self.config.max_bytes:
            raise StopDownload(fail=False)

    def _check_whole(self, response: Response) -> None:
        """Raise RuntimeError if a mistake of the robot has cut *response*."""
        length = response.headers.get("Content-Length")
        is_stopped = "download_stopped" in response.flags
        is_cut_here = self._received > self.config.max_bytes
        if is_stopped and not is_cut_here and length != b"%d" % len(response.body):
            raise RuntimeError(_STOPPED)


def _bytes_received(data: bytes, request: Request) -> None:
    transfer: Transfer | None = request.meta.get(MARK)
    if transfer is not None:
        transfer.count(data)


def _leads_inside(host: str | None, network: str) -> bool:
    """Return whether *host* is an address of an internal network other than *network*."""
    return network_of(host or "") not in ("", network)


async def _is_unknown(url: str) -> bool:
    """Return whether the host of *url* does not exist, as the resolver of the system has it.

    Scrapy's error does not tell that from a resolver that failed.
    """
    try:
        await run_in_thread(socket.getaddrinfo, urlsplit(url).hostname, None)
    except UnicodeError:  # a part of the name is empty, or longer than 63
        return True
    except OSError as error:
        return error.errno in _UNKNOWN_NAME
    return False
