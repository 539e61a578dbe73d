"""Fetches the robots.txt of a site: redirects, the limit of time, and errors."""

from __future__ import annotations

import asyncio
import socket
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadTimeoutError,
    NotConfigured,
    NotSupported,
    UnsupportedURLSchemeError,
)
from scrapy.utils.asyncio import run_in_thread
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_koster.crawl.engine.robots_mark import MARK
from scrapy_koster.crawl.fetching.network import network_of
from scrapy_koster.crawl.fetching.transfer import Transfer
from scrapy_koster.protocol.access import NoAnswer, redirect_target
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
