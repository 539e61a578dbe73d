"""Fetches the robots.txt of a site: redirects, the time limit, and errors."""

import re
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured, NotSupported

from scrapy_koster.crawl.clock import Clock, LateError
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.engine.compat import (
    CannotResolveHostError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
    run_in_thread,
)
from scrapy_koster.crawl.engine.private import Engine, Within
from scrapy_koster.crawl.fetching.lookahead import FetchLimiter
from scrapy_koster.crawl.fetching.transfer import Transfer, count_bytes
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import Answer, NoAnswer, last_copy, redirect_target
from scrapy_koster.protocol.printable import error_text, printable
from scrapy_koster.protocol.site import Site
from scrapy_koster.signals import robots_requested

Load: TypeAlias = Callable[[str], Awaitable[object]]

# The codes of a resolver that has answered: the name does not exist, or has no address. The code of
# a resolver that fails is not in this set.
_UNKNOWN_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
# Errors that count as defects of the crawl's own code, not as failures of a site.
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
)
CLAIM_SPARE_SECS = 5.0
"""The time by which a claim is longer than KOSTER_TIMEOUT_SECS.

Half of this time is for waiting for the host's turn, and half for storing the result.
"""

# Twisted's list of errors, "[<twisted.python.failure.Failure twisted.internet.error.ConnectionLost:
# Connection to the other side was lost.>]": its class and text are enough.
_ERRORS = re.compile(r"\[?<(?:[\w.]+ )?(?:\w+\.)*(\w+: [^<>]*)>\]?")
_INSIDE = "it redirects to an address that is not public: {}"
_WITH_IPV4 = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""NAT64, and the IPv4-compatible addresses of old: the last four bytes are an IPv4 address."""
# The registries of IANA change, and ``ipaddress`` with every Python. So only global unicast
# addresses count as public.
_UNICAST = IPv6Network("2000::/3")
_SPECIAL = (IPv4Network("192.0.0.0/24"), IPv6Network("3fff::/20"))


@dataclass(eq=False)
class Fetcher:
    """Fetches robots.txt files, without the slots of the downloader.

    A request passes through the downloader middlewares like a request for a page, but takes up no
    slot of its host and no CONCURRENT_REQUESTS slot. So a hanging site takes no room from others.
    Retries, redirects, cookies, the HTTP cache and the offsite filter would change the meaning of
    an answer. The meta of the request disables these components.
    """

    crawler: Crawler
    config: Config
    clock: Clock
    visit: Callable[[Site, str], Within]
    """Takes a site and a URL, and returns the context of a request to the URL.

    Entering this context waits for the turn of the URL's host. None if the host has no delay.
    """
    limiter: FetchLimiter

    def __post_init__(self) -> None:
        """Count the bytes of each robots.txt from now on."""
        self.crawler.signals.connect(count_bytes, signals.bytes_received)

    async def fetch(
        self, state: SiteState, page: Request, place: AsyncExitStack, load: Load
    ) -> Answer | NoAnswer:
        """Return the answer of the site to a request for its robots.txt, or a NoAnswer.

        The request is sent like *page* (KOSTER_PAGE_META), and revalidates an expired copy (3.4).
        *place* is the place in the limit. Other fetches have it while a redirect waits for a turn.
        *load* is called with the URL of a redirect to another host, whose delay may be stored.
        KOSTER_TIMEOUT_SECS limits the fetch with its redirects, but not the waits for the turns of
        hosts. LateError is raised if the first wait is too long for the claim, and IgnoreRequest if
        the crawl closes during a wait. An error of the crawl's own code is raised: of a middleware,
        or an error in ``_DEFECTS`` of a download handler. The site has not failed.
        """
        site = state.site
        try:
            # If a label is empty, too long, or invalid in IDNA, Twisted's resolver raises an error
            # in a thread, and never calls back.
            site.host.encode("idna")
        except UnicodeError:
            invalid = CannotResolveHostError("no host has such a name")
            return self._no_answer(invalid, no_such_host=True)
        async with AsyncExitStack() as visit:
            if turn := self.visit(site, site.robots_url):
                await self.clock.within(CLAIM_SPARE_SECS / 2, visit.enter_async_context(turn))
            self.crawler.stats.inc_value("robotstxt/request_count")
            self.crawler.signals.send_catch_log(robots_requested, site=site)
            transfer = Transfer(self.crawler, self.config, page, last_copy(state.known))
            try:
                answer = await self._follow(state, transfer, visit, place, load)
            except LateError:
                secs = self.config.timeout_secs
                answer = self._no_answer(DownloadTimeoutError(f"no answer within {secs:.15g} s"))
            except Exception as error:
                if isinstance(error, _DEFECTS) or not transfer.is_of_site:
                    raise
                is_unknown = await self._shows_unknown_host(error, site, transfer)
                answer = self._no_answer(error, no_such_host=is_unknown)
        if transfer.exchanges or transfer.proxy:
            answer = replace(answer, exchanges=tuple(transfer.exchanges), proxy=transfer.proxy)
        return answer

    def _no_answer(self, error: Exception, *, no_such_host: bool = False) -> NoAnswer:
        self.crawler.stats.inc_value(f"robotstxt/exception_count/{type(error)}")
        reason = _ERRORS.sub(r"\1", error_text(error)).replace("cleanly", "without a response")
        if isinstance(error, ResponseDataLossError) and not str(error):
            reason += "the response ended early"
        return NoAnswer(reason, no_such_host=no_such_host)

    async def _shows_unknown_host(self, error: Exception, site: Site, transfer: Transfer) -> bool:
        """Return whether *error* shows that the host of *site* does not exist.

        A handler raises one of these errors for a host that cannot exist. They do not show this if
        the crawl closes, if the request used a proxy, or after a redirect.
        """
        if not isinstance(error, (CannotResolveHostError, UnsupportedURLSchemeError, ValueError)):
            return False
        if (
            Engine(self.crawler).is_closing
            or transfer.is_proxied
            or transfer.url != site.robots_url
        ):
            return False
        with suppress(LateError):
            return await transfer.limit.within(_is_unknown(transfer.url))
        return False

    async def _follow(
        self,
        state: SiteState,
        transfer: Transfer,
        visit: AsyncExitStack,
        place: AsyncExitStack,
        load: Load,
    ) -> Answer | NoAnswer:
        # 3.1: "a robot should follow the redirects until a resource can be found". The rules apply
        # to the site, not to the sites of the redirects.
        url, network = state.site.robots_url, ""
        host = last_host = state.site.host.strip("[]")
        for hop in range(self.config.redirect_max + 1):
            if hop and _leads_inside(host, network):
                return NoAnswer(_INSIDE.format(printable(url)))
            if host != last_host:  # a redirect on the same host belongs to the same visit
                await visit.aclose()
                await load(url)
                if turn := self.visit(state.site, url):
                    await place.aclose()
                    await visit.enter_async_context(turn)
                    await self.limiter.enter(place, state, is_new=False)
            answer = await transfer.get(url)
            if isinstance(answer, NoAnswer):
                return answer
            if hop and _leads_inside(transfer.address, network):  # a name with an internal address
                return NoAnswer(_INSIDE.format(printable(url)))
            target = redirect_target(answer)
            if target is None:
                self.crawler.stats.inc_value("robotstxt/response_count")
                self.crawler.stats.inc_value(f"robotstxt/response_status_count/{answer.status}")
                return answer
            network = network_of(host) or network_of(transfer.address)
            url, last_host, host = target, host, urlsplit(target).hostname or ""
        return NoAnswer(f"more than {self.config.redirect_max} redirects")


def _leads_inside(host: str, network: str) -> bool:
    """Return whether *host* is in an internal network (``network_of``) other than *network*."""
    return network_of(host) not in ("", network)


def network_of(host: str) -> str:
    """Return the internal network of *host*: "loopback", "link-local" or "private".

    The result is "" for a public address or a name, but "loopback" for localhost and its
    subdomains. An IPv4 address can be written in all ways that the system reads: with fewer
    numbers, octal, or hexadecimal, and as a URL can spell it: with escapes, or in other scripts.
    """
    host = normalize("NFKC", unquote(host)).replace("\u3002", ".")
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
    if any(address in each for each in _SPECIAL) or not address.is_global:
        return "private"
    is_public = not address.is_multicast if address.version == 4 else address in _UNICAST
    return "" if is_public else "private"


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address *host*, or None for a name.

    If an IPv6 address contains an IPv4 address (``_WITH_IPV4``, IPv4-mapped or 6to4), the IPv4
    address is returned.
    """
    with suppress(OSError, ValueError):
        return IPv4Address(socket.inet_aton(host))
    with suppress(ValueError):
        address = IPv6Address(host)
        if int(address) > 1 and any(address in each for each in _WITH_IPV4):  # 1 is loopback
            return IPv4Address(address.packed[-4:])
        return address.ipv4_mapped or address.sixtofour or address
    return None


async def _is_unknown(url: str) -> bool:
    """Return whether the system's resolver answers that the host of *url* does not exist.

    CannotResolveHostError does not show this: Scrapy also raises it if the resolver fails.
    """
    try:
        await run_in_thread(socket.getaddrinfo, urlsplit(url).hostname, None)
    except OSError as error:
        return error.errno in _UNKNOWN_NAME
    return False
