"""Fetches the robots.txt of a site: redirects, the time limit, and errors."""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadTimeoutError,
    NotConfigured,
    NotSupported,
    StopDownload,
    UnsupportedURLSchemeError,
)
from scrapy.http import Response
from scrapy.utils.asyncio import run_in_thread

from scrapy_koster.crawl.clock import LateError, clock_of
from scrapy_koster.crawl.engine.answer_limit import (
    AnswerLimit,
    is_zyte_api,
    send_limited,
    through_middlewares,
)
from scrapy_koster.crawl.engine.private import CANCELLED, MARK
from scrapy_koster.crawl.fetching.http_messages import (
    answer_of,
    exchange_of,
    is_file,
    robots_request,
    without_coding,
)
from scrapy_koster.protocol.access import NoAnswer, redirect_target
from scrapy_koster.protocol.exchange import digest_of
from scrapy_koster.protocol.printable import error_text, printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.config import Config
    from scrapy_koster.protocol.access import Answer, Copy
    from scrapy_koster.protocol.exchange import Exchange
    from scrapy_koster.protocol.site import Site

# The resolver has answered: the name does not exist, or has no address. A resolver without an
# answer has another code.
_UNKNOWN_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
# Errors of the crawl's own code. A site cannot cause these errors in a handler or a middleware.
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
_REPLACED_MOST = 10
"""How often downloader middlewares can replace the request for a URL."""

_STOPPED = (
    "a handler of the signal bytes_received or headers_received raised StopDownload for the"
    f" robots.txt. Let it return at once if {MARK!r} is in request.meta"
)
_INSIDE = "it redirects to an address that is not public: {}"
_NAT64 = IPv6Network("64:ff9b::/96")


class Fetcher:
    """Fetches robots.txt files, apart from the requests of the crawl.

    A request passes through the downloader middlewares like the crawl's own requests (User-Agent,
    KOSTER_PAGE_META), but uses no slot and no place of CONCURRENT_REQUESTS. So a hanging site takes
    no room from healthy sites. Retries, redirects, cookies, the HTTP cache and the offsite filter
    would change the meaning of an answer. The meta of the request disables these components.
    """

    def __init__(
        self,
        crawler: Crawler,
        config: Config,
        *,
        visit: Callable[[Site, str], AbstractAsyncContextManager[None]] | None = None,
    ) -> None:
        """Use *visit* for the context of a request to a URL: the context waits for a turn."""
        self._crawler = crawler
        self._clock = clock_of(crawler)
        self._config = config
        self._stats = crawler.stats
        self._visit = visit
        self._under_way = 0

    async def fetch(self, site: Site, page: Request, stale: Copy | None) -> Answer | NoAnswer:
        """Return the answer of *site* to a request for its robots.txt, or the failure.

        The request uses the connection of *page*, and revalidates a *stale* copy (3.4).
        KOSTER_TIMEOUT_SECS limits the fetch with its redirects, but not the wait for the turn of
        the site's host, which comes first. A defect of a middleware, a download handler or this
        package is raised, because the site has not failed.
        """
        self._stats.inc_value("robotstxt/request_count")
        if not _can_be_a_name(site.host):
            invalid = CannotResolveHostError("no host has such a name")
            return self._no_answer(invalid, no_such_host=True)
        async with AsyncExitStack() as visit:
            await visit.enter_async_context(self._visit_to(site, site.robots_url))
            transfer = Transfer(self._crawler, self._config, page, stale)
            if not self._under_way:
                # If connected for the whole crawl, the function would be called for pages, too.
                self._crawler.signals.connect(_bytes_received, signals.bytes_received)
            self._under_way += 1
            secs = self._config.timeout_secs
            try:
                answer = await self._clock.within(secs, self._follow(site, transfer, visit))
            except LateError:
                answer = self._no_answer(DownloadTimeoutError(f"no answer within {secs:.15g} s"))
            except _DEFECTS:
                raise
            except Exception as error:  # noqa: BLE001  # of the site or the network
                answer = self._no_answer(error)
            finally:
                self._under_way -= 1
                if not self._under_way:
                    self._crawler.signals.disconnect(_bytes_received, signals.bytes_received)
        exchanges = tuple(transfer.exchanges)
        return replace(answer, exchanges=exchanges) if exchanges else answer

    def _no_answer(self, error: Exception, *, no_such_host: bool = False) -> NoAnswer:
        self._stats.inc_value(f"robotstxt/exception_count/{type(error)}")
        return NoAnswer(error_text(error), no_such_host=no_such_host)

    def _visit_to(self, site: Site, url: str) -> AbstractAsyncContextManager[object]:
        return nullcontext() if self._visit is None else self._visit(site, url)

    async def _follow(
        self, site: Site, transfer: Transfer, first: AsyncExitStack
    ) -> Answer | NoAnswer:
        # 3.1: "a robot should follow the redirects until a resource can be found". The rules apply
        # to the first site.
        url, network = site.robots_url, ""
        for hop in range(self._config.redirect_max + 1):
            if hop and _leads_inside(urlsplit(url).hostname, network):
                return NoAnswer(_INSIDE.format(printable(url)))
            try:
                async with self._visit_to(site, url) if hop else first:
                    answer = await transfer.get(url)
            except CannotResolveHostError as error:
                # Twisted raises this error for a cancelled lookup, too. A proxy resolves the name
                # itself, and a redirect leads to another host.
                is_of_site = not (transfer.is_over or transfer.is_proxied or hop)
                unknown = is_of_site and await _is_unknown(url)
                return self._no_answer(error, no_such_host=unknown)
            if isinstance(answer, NoAnswer):
                return answer
            if hop and _leads_inside(transfer.address, network):  # the name of an internal address
                return NoAnswer(_INSIDE.format(printable(url)))
            target = redirect_target(answer)
            if target is None:
                self._stats.inc_value("robotstxt/response_count")
                self._stats.inc_value(f"robotstxt/response_status_count/{answer.status}")
                return answer
            network = network_of(urlsplit(url).hostname or "") or network_of(transfer.address)
            url = target
        return NoAnswer(f"more than {self._config.redirect_max} redirects")


@dataclass(eq=False)
class Transfer:
    """The requests of a fetch. The meta of these requests has this object."""

    crawler: Crawler
    config: Config
    page: Request
    """The request of the crawl that needs the robots.txt."""
    stale: Copy | None
    """The expired copy, to be revalidated."""
    is_proxied: bool = False
    """Whether the last request was sent to a proxy."""
    address: str = ""
    """The IP address of the last answer; "" if unknown, or with a proxy."""
    exchanges: list[Exchange] = field(default_factory=list)
    """The requests and responses, if there is an archive."""
    _is_plain: bool = True
    """Whether the request asks for uncompressed text."""
    _limit: AnswerLimit = field(init=False)
    _received: int = 0
    _digest: str = ""

    def __post_init__(self) -> None:
        """Begin the time of the transfer."""
        self._clock = clock_of(self.crawler)
        self._until = self._clock.now() + self.config.timeout_secs

    @property
    def is_over(self) -> bool:
        """Whether the time is over. The current request has been cancelled then."""
        return self._clock.now() >= self._until

    async def get(self, url: str) -> Answer | NoAnswer:
        """Return the answer to a request for *url*.

        A middleware can replace the request, or answer in place of the site.
        """
        self._is_plain = not is_zyte_api(self.crawler, url)
        request = robots_request(
            url, self.page, self.stale, config=self.config, plain=self._is_plain
        )
        request.meta[MARK] = self
        for _ in range(_REPLACED_MOST + 1):
            self._digest = self.address = ""
            try:
                result = await through_middlewares(self.crawler, self._send, request)
            except CANCELLED as error:  # by a handler: if not, nobody waits for this answer
                raise DownloadCancelledError("it was cancelled") from error
            finally:
                self.is_proxied = "proxy" in request.meta
            if isinstance(result, Response):
                digest = self._digest or digest_of(result.body)
                return answer_of(result, self.config.max_bytes, digest)
            if self.is_over:  # the middleware has replaced a cancelled request
                raise DownloadTimeoutError("a downloader middleware would try again")
            request = result
        return NoAnswer("a downloader middleware replaces the request again and again")

    async def _send(self, request: Request) -> Response:
        """Return the decoded response to *request*. A middleware can call this several times."""
        limit = self._limit = AnswerLimit(self.config.max_bytes)
        self._received, began = 0, self._clock.epoch()
        tell = partial(
            self.crawler.signals.send_catch_log, request=request, spider=self.crawler.spider
        )
        tell(signals.request_reached_downloader)
        # A middleware may have set these headers for every request of the crawl.
        request.headers.pop("Range", None)
        if self._is_plain:
            request.headers["Accept-Encoding"] = "identity"
        try:
            try:
                response = await send_limited(self.crawler, request, limit)
            except StopDownload as error:  # raised by a signal handler of the project
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
        """Count the bytes of a piece of the body; raise StopDownload at KOSTER_MAX_BYTES."""
        self._limit.headers_ended()
        self._received += len(data)
        if self._received > self.config.max_bytes:
            raise StopDownload(fail=False)

    def _check_whole(self, response: Response) -> None:
        """Raise RuntimeError if a signal handler of the project has cut *response*."""
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
    """Return whether *host* is an internal address outside *network*."""
    return network_of(host or "") not in ("", network)


def network_of(host: str) -> str:
    """Return "loopback", "link-local", "private" or "", the network of an address.

    The result for a name is "", except for localhost. Addresses can be written in the ways that the
    system reads: with fewer numbers, octal, or hexadecimal.
    """
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return "loopback"
    address = _address(host)
    if address is None:
        return ""
    if address.is_loopback or address.is_unspecified:  # the crawler's own machine
        return "loopback"
    if address.is_link_local:
        return "link-local"
    return "" if address.is_global and not address.is_multicast else "private"


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address in *host*, as IPv4 if IPv6 contains such an address; None for a name."""
    try:
        address = ip_address(host)
    except ValueError:
        try:
            return IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or address


def _can_be_a_name(host: str) -> bool:
    """Return whether no label of *host* is empty or longer than 63 characters.

    For such a name, Twisted's resolver would fail without an answer.
    """
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


async def _is_unknown(url: str) -> bool:
    """Return whether the host of *url* does not exist, according to the system's resolver.

    Scrapy raises the same error if the resolver fails.
    """
    try:
        await run_in_thread(socket.getaddrinfo, urlsplit(url).hostname, None)
    except OSError as error:
        return error.errno in _UNKNOWN_NAME
    return False
