"""The request for a /robots.txt, which stands apart from the crawl."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadTimeoutError,
    NotConfigured,
    NotSupported,
    UnsupportedURLSchemeError,
)
from scrapy.http import Response
from scrapy.utils.asyncio import run_in_thread
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from w3lib.url import safe_url_string

from scrapy_koster.crawl.engine.answer_limit import HEADERS_MAX_BYTES, HEADERS_TOO_LONG
from scrapy_koster.crawl.engine.robots_download import RobotsDownload
from scrapy_koster.crawl.engine.robots_mark import MARK
from scrapy_koster.crawl.fetching.coding import codings_in, gunzipped, is_gzip
from scrapy_koster.crawl.fetching.network import network_of
from scrapy_koster.crawl.fetching.robots_request import robots_request
from scrapy_koster.crawl.fetching.transfer import Transfer
from scrapy_koster.protocol.access import Answer, Copy, NoAnswer, redirect_target
from scrapy_koster.protocol.exchange import digest_of
from scrapy_koster.protocol.line import whole_lines
from scrapy_koster.protocol.printable import error_text, printable
from scrapy_koster.protocol.standing import Standing, standing_stated

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector
    from twisted.internet.defer import Deferred

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.config import Config
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


_INSIDE = "it redirects to an address that is not public: {}"


class TurnNeededError(Exception):
    """A host with a Crawl-delay has to have a turn before it is asked for a robots.txt."""

    def __init__(
        self,
        url: str | None = None,
        hops: int = 0,
        exchanges: tuple[Exchange, ...] = (),
        network: str = "",
    ) -> None:
        """*url* is the target of the last of *hops* redirects, None for the site itself.

        *exchanges* are what was sent and received by then. *network* is that of the host that
        redirects (``network_of``).
        """
        super().__init__(url)
        self.url = url
        self.hops = hops
        self.exchanges = exchanges
        self.network = network


@dataclass(frozen=True)
class _Errand:
    """One call of ``Fetcher.fetch()``: what its requests have in common."""

    page: Request
    stale: Copy | None
    until: Instant
    exchanges: list[Exchange]
    """What its requests sent and received, if that is archived; they add to it."""


class Fetcher:
    """Asks sites for their /robots.txt, apart from the crawl.

    A request goes through the downloader middlewares, so that it is sent as
    the crawl's own are (User-Agent, KOSTER_PAGE_META), but neither through the
    downloader's slots nor into its count of concurrent requests: a site that
    hangs takes no room from the others. What would change what its answer
    means is switched off in its meta: retries, redirects, cookies, the HTTP
    cache and the offsite filter.
    """

    def __init__(
        self,
        crawler: Crawler,
        config: Config,
        stats: StatsCollector,
        clock: Clock,
        *,
        needs_turn: Callable[[str], bool] | None = None,
    ) -> None:
        """*needs_turn* tells whether a redirect to a URL has to wait for a turn of its host; None
        if none has to.
        """
        self._needs_turn = needs_turn
        self._crawler = crawler
        self._clock = clock
        self._config = config
        self._stats = stats
        self._under_way: set[Deferred[Answer | NoAnswer]] = set()
        self._cancelled = False

    async def fetch(
        self, site: Site, page: Request, stale: Copy | None, *, after: TurnNeededError | None = None
    ) -> Answer | NoAnswer:
        """Ask *site* on behalf of *page*; a *stale* copy is revalidated (3.4).

        Raises TurnNeededError if it redirects to a host that needs a turn: with it as *after*
        the next call goes on there.

        KOSTER_TIMEOUT_SECS bounds the whole of it, redirects included. Failures are returned. A
        defect of the robot (of a middleware, a download handler, this package) is raised: the site
        has not failed.
        """
        secs = self._config.timeout_secs
        late: list[DownloadTimeoutError] = []
        if after is None or after.url is None:
            self._stats.inc_value("robotstxt/request_count")
        until = self._clock.now() + secs
        errand = _Errand(page, stale, until, list(after.exchanges) if after else [])
        asking: Deferred[Answer | NoAnswer] = deferred_from_coro(self._follow(site, errand, after))

        def time_out() -> None:
            late.append(DownloadTimeoutError(f"no answer within {secs:.15g} s"))
            asking.cancel()

        timer = self._clock.call_later(secs, time_out)
        self._add(asking)
        waiting = maybe_deferred_to_future(asking)
        try:
            answer = await waiting
        except TurnNeededError:
            raise
        except BaseException as error:
            # A CancelledError may be of a handler: that is a failure of the site. If this call is
            # cancelled, the process ends.
            is_ours = bool(late or self._cancelled)
            is_ending = isinstance(waiting, asyncio.Future) and waiting.cancelled()
            if not is_ours and (is_ending or isinstance(error, _DEFECTS)):
                raise
            answer = self._no_answer(late[0] if late else error)
        finally:
            timer.cancel()
            self._remove(asking)
        return replace(answer, exchanges=tuple(errand.exchanges)) if errand.exchanges else answer

    def cancel(self) -> None:
        """End the requests that are under way: the crawl is closing."""
        self._cancelled = True
        for asking in list(self._under_way):
            asking.cancel()

    def _no_answer(self, error: BaseException, *, no_such_host: bool = False) -> NoAnswer:
        if not self._cancelled:
            self._stats.inc_value(f"robotstxt/exception_count/{type(error)}")
        return NoAnswer(error_text(error), no_such_host=no_such_host)

    async def _follow(
        self, site: Site, errand: _Errand, after: TurnNeededError | None
    ) -> Answer | NoAnswer:
        # 3.1: "a robot should follow the redirects until a resource can be
        # found"; its rules are those of the site that was asked.
        url = site.robots_url
        if not _can_be_a_name(site.host):
            return self._no_answer(
                CannotResolveHostError("no host has such a name"), no_such_host=True
            )
        first, network = 0, ""
        if after is not None and after.url is not None:
            url, first, network = after.url, after.hops, after.network
        for hop in range(first, self._config.redirect_max + 1):
            if hop and _leads_inside(urlsplit(url).hostname, network):
                return NoAnswer(_INSIDE.format(printable(url)))
            if hop > first and self._needs_turn is not None and self._needs_turn(url):
                raise TurnNeededError(url, hop, tuple(errand.exchanges), network)
            request = self._request(url, errand)
            answer = await self._ask(request, errand.until)
            if isinstance(answer, NoAnswer):
                # A host that it redirects to is another one.
                return replace(answer, no_such_host=answer.no_such_host and not hop)
            address = request.meta[MARK].address
            if hop and _leads_inside(address, network):  # a name of such an address
                return NoAnswer(_INSIDE.format(printable(url)))
            target = redirect_target(answer)
            if target is None:
                self._stats.inc_value("robotstxt/response_count")
                self._stats.inc_value(f"robotstxt/response_status_count/{answer.status}")
                return answer
            network = network_of(urlsplit(url).hostname or "") or network_of(address)
            url = target
        return NoAnswer(f"more than {self._config.redirect_max} redirects")

    async def _ask(self, request: Request, until: Instant) -> Answer | NoAnswer:
        transfer: Transfer = request.meta[MARK]
        # A middleware may answer a request with another one in its place.
        for _ in range(self._config.redirect_max + 1):
            try:
                result = await self._download.through_middlewares(self._send, request)
            except CannotResolveHostError as error:
                if (
                    self._cancelled or self._clock.now() >= until
                ):  # Twisted says so of a lookup it gave up
                    raise
                # With a proxy it is the name of the proxy, or one that the proxy resolves.
                unknown = "proxy" not in request.meta and await _is_unknown(request.url)
                return self._no_answer(error, no_such_host=unknown)
            if isinstance(result, Response):
                # A middleware may answer in place of the site.
                return self._answer(result, transfer.digest or digest_of(result.body))
            if self._cancelled or self._clock.now() >= until:  # it took that for a failure to retry
                raise DownloadTimeoutError("a downloader middleware would try again")
            request = result
        return NoAnswer("a downloader middleware replaces the request again and again")

    @cached_property
    def _download(self) -> RobotsDownload:
        return RobotsDownload(self._crawler)  # there is an engine when a site is asked

    async def _send(self, request: Request) -> Response:
        transfer: Transfer = request.meta[MARK]
        return await transfer.run(self._crawler, self._clock, self._download, request)

    def _request(self, url: str, errand: _Errand) -> Request:
        plain = not self._download.is_zyte_api(url)
        request = robots_request(url, errand.page, errand.stale, config=self._config, plain=plain)
        exchanges = errand.exchanges if self._config.archive else None
        request.meta[MARK] = Transfer(self._config.max_bytes, exchanges, plain=plain)
        return request

    def _answer(self, response: Response, digest: str) -> Answer | NoAnswer:
        lines = [(name, b", ".join(values)) for name, values in dict.items(response.headers)]
        # With most handlers this is the only limit.
        if sum(len(name) + len(value) for name, value in lines) > HEADERS_MAX_BYTES:
            return NoAnswer(HEADERS_TOO_LONG)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in lines}
        if codings := codings_in(headers.get("content-encoding", "")):
            return NoAnswer(f"its Content-Encoding is not decoded: {printable(', '.join(codings))}")
        if "location" in headers:
            headers["location"] = safe_url_string(response.headers["Location"] or b"")
        # Section 6: "place limits on the resources spent".
        limit = self._config.max_bytes
        body: bytes | None = response.body
        if is_gzip(response.body) and standing_stated(response.status) is Standing.OBEYED:
            body = gunzipped(response.body, limit)
        if body is None:
            return NoAnswer("it is a gzip file that is broken or has no end")
        return Answer(
            response.url,
            response.status,
            headers,
            whole_lines(body, limit),
            cut_bytes=limit if len(body) > limit else None,
            digest=digest,
        )

    def _add(self, asking: Deferred[Answer | NoAnswer]) -> None:
        if not self._under_way:
            # Not for the whole crawl: each piece of every page would pass it.
            self._crawler.signals.connect(self._headers_received, signals.headers_received)
            self._crawler.signals.connect(self._bytes_received, signals.bytes_received)
        self._under_way.add(asking)

    def _remove(self, asking: Deferred[Answer | NoAnswer]) -> None:
        self._under_way.discard(asking)
        if not self._under_way:
            self._crawler.signals.disconnect(self._headers_received, signals.headers_received)
            self._crawler.signals.disconnect(self._bytes_received, signals.bytes_received)

    @staticmethod
    def _headers_received(request: Request) -> None:
        # Not with the first piece of the body: until aiohttp hands that over, it has read on.
        transfer: Transfer | None = request.meta.get(MARK)
        if transfer is not None:
            transfer.headers_ended()

    @staticmethod
    def _bytes_received(data: bytes, request: Request) -> None:
        transfer: Transfer | None = request.meta.get(MARK)
        if transfer is not None:
            transfer.count(data)


def _leads_inside(host: str | None, network: str) -> bool:
    """Return whether *host* is an address of an internal network other than *network*."""
    return network_of(host or "") not in ("", network)


def _can_be_a_name(host: str) -> bool:
    """Return whether a host may have this name: no part of it is empty or longer than 63."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


async def _is_unknown(url: str) -> bool:
    """Return whether the host of *url* does not exist, as the resolver of the system has it.

    What Scrapy raises does not tell that from a resolver that failed.
    """
    try:
        await run_in_thread(socket.getaddrinfo, urlsplit(url).hostname, None)
    except socket.gaierror as error:
        return error.errno in _UNKNOWN_NAME
    except OSError:
        pass
    return False
