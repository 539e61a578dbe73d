"""The spider middlewares for page directives and for forbidden links, and what they share."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import HtmlResponse, Response, XmlResponse
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from scrapy_koster.crawl.components.component import Component
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.exceptions import RobotsForbidden
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.metatags import metas_of_page
from scrapy_koster.protocol.nametoken import names_of
from scrapy_koster.protocol.robotsmeta import ROBOTS_FIELDS, Directives, directives_of, names_for
from scrapy_koster.signals import output_dropped

PAGE_DIRECTIVES = "koster_page_directives"
"""The key of request.meta with the directives of the page, for example ["noindex"]."""

_XHTML = b"http://www.w3.org/1999/xhtml"
_XHTML_WITHIN_BYTES = 1024
_NUL_WITHIN_BYTES = 256


class PageMiddleware(Component):
    """Base class of a spider middleware that reads pages, and drops output of their callbacks."""

    why_dropped: str
    """The reason why output was dropped: the words after "their pages" in the last log line."""
    how_to_keep: str
    """A sentence for the log, with the setting that keeps the output."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._log = Log(type(self).__module__, crawler)
        self._found: WeakKeyDictionary[Response, Any] = WeakKeyDictionary()
        """What a subclass has found in a page. A callback may change the meta, but not this."""
        self._dropped: Counter[str] = Counter()
        crawler.signals.connect(self._sum_up, signal=signals.spider_closed)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield the output of the callback of *response* that ``_passes``."""
        async for output in result:
            if await self._passes(output, response):
                yield output

    async def _passes(self, output: Any, response: Response) -> bool:
        """Return whether *output*, of the callback of *response*, is not dropped."""
        raise NotImplementedError

    def _drops(self, output: Any, response: Response, kind: str, reason: str, why: str) -> bool:
        """Log *output*, and send the signal. Return True to drop *output*, False in a dry run."""
        self._parts.announcer.send(output_dropped, response=response, output=output, reason=reason)
        hint = (
            f". {self.how_to_keep} dont_obey_robotstxt in the meta of the page's request keeps"
            " those of that page"
        )
        self._log.info_first(
            1,
            kind,
            "%(dropped)s %(what)s from %(page)s, %(why)s%(more)s",
            dropped="Would drop" if self._config.dry_run else "Dropped",
            what=output if isinstance(output, Request) else f"an item ({type(output).__name__})",
            page=response.url,
            why=why,
            more="" if self._dropped[kind] else hint,
        )
        self._dropped[kind] += 1
        return not self._config.dry_run

    def _sum_up(self) -> None:
        if dropped := sorted(self._dropped.items()):
            self._log.info(
                "%(dropped)s because their pages %(why)s: %(counts)s. %(how)s",
                dropped="Would be dropped" if self._config.dry_run else "Dropped",
                why=self.why_dropped,
                counts=", ".join(f"{kind}: {count}" for kind, count in dropped),
                how=self.how_to_keep,
            )


def headers_of(response: Response, fields: Iterable[bytes]) -> dict[bytes, Sequence[bytes]]:
    """Return the values of *fields*, which are in title case."""
    # Faster than headers.getlist(), which normalizes the name in every call.
    return {field: dict.get(response.headers, field) or () for field in fields}


def html_of(response: Response) -> bytes:
    """Return the HTML or XHTML of *response* in an ASCII-compatible encoding, or b"".

    UTF-16 and UTF-32 are converted to UTF-8.
    """
    if not isinstance(response, (HtmlResponse, XmlResponse)):
        return b""
    body = response.body
    if isinstance(response, XmlResponse) and _XHTML not in body[:_XHTML_WITHIN_BYTES]:
        return b""
    # Other encodings are not decoded: a page may name an encoding for which Python raises an error.
    has_nul = b"\0" in body[:_NUL_WITHIN_BYTES]  # for speed: the encoding is guessed from the body
    is_wide = has_nul and response.encoding.startswith(("utf-16", "utf-32"))
    return response.text.encode("utf-8", "replace") if is_wide else body


class RobotsMetaMiddleware(PageMiddleware):
    """Drops requests from pages with nofollow, and items from pages with noindex."""

    why_dropped = "say so"
    how_to_keep = "KOSTER_PAGE_DIRECTIVES = [] keeps all requests and items."

    @staticmethod
    def is_on(config: Config) -> bool:
        """Return whether KOSTER_PAGE_DIRECTIVES is not empty."""
        return bool(config.page_directives)

    def process_spider_input(self, response: Response) -> None:
        """Set the directives of the page in the meta of its request, for the callback."""
        request = response.request
        assert request is not None  # the engine sets it
        is_exempt = request.meta.get("dont_obey_robotstxt")
        if found := {} if is_exempt else self._directives(response, request):
            self._found[response] = found
        # Set even if empty: a spider may have copied the meta of another page to this request.
        request.meta[PAGE_DIRECTIVES] = [word for word in ("noindex", "nofollow") if word in found]

    def _directives(self, response: Response, request: Request) -> Directives:
        sources = self._config.page_directives
        headers = headers_of(response, ROBOTS_FIELDS if "header" in sources else ())
        page = html_of(response) if "meta" in sources else b""
        found: Directives = {}
        for token in names_of(self._parts.robot.name_of(request)):
            metas = metas_of_page(page, names_for(token))
            found = directives_of(metas, headers, token) | found
        return found

    async def _passes(self, output: Any, response: Response) -> bool:
        word = "nofollow" if isinstance(output, Request) else "noindex"
        said = self._found.get(response, {}).get(word)
        if said is None or output is None:
            return True
        self._crawler.stats.inc_value(f"koster/meta/{word}")
        return not self._drops(output, response, word, word, f"which says {said}")


class LinkFilterMiddleware(Component):
    """Drops forbidden requests from callbacks, and calls the errbacks of these requests.

    Dropped requests are not queued. Enabled by KOSTER_FILTER_LINKS. This middleware needs the
    highest order of the spider middlewares, so that the others process the output of errbacks.
    """

    settings = "KOSTER_FILTER_LINKS"

    @staticmethod
    def is_on(config: Config) -> bool:
        """Return whether links are filtered. A dry run drops no link."""
        return config.filter_links and not config.dry_run

    async def process_spider_output(
        self,
        response: Response,  # noqa: ARG002  # Scrapy passes it by name
        result: AsyncIterator[Any],
    ) -> AsyncIterator[Any]:
        """Yield the output, with the output of the errback in place of a forbidden request."""
        async for output in result:
            error = None
            if isinstance(output, Request):
                with suppress(Exception):  # KosterMiddleware raises the error again
                    error = self.enforcement.drop_link(output)
            if error is None:
                yield output
            elif output.errback is not None:
                async for each in self._errback(output, error):
                    yield each

    async def _errback(self, request: Request, error: RobotsForbidden) -> AsyncIterator[Any]:
        """Yield the output of the errback of *request*. The errback gets *error* in a FetchFailure.

        A CloseSpider of the errback is raised. If the errback raises any other error than *error*,
        *request* is yielded. KosterMiddleware then refuses *request*, and Scrapy calls the errback
        again and logs the error of the errback.
        """
        failure = Failure(error)
        failure.request = request  # type: ignore[attr-defined]  # as Scrapy does
        try:
            output = request.errback(failure)  # type: ignore[misc]  # not None
            if isinstance(output, Failure):  # the errback has returned the failure
                return
            found = await ensure_awaitable(iterate_spider_output(output))
            async for each in as_async_generator(found):
                yield each
        except CloseSpider:
            raise
        except Exception as raised:  # noqa: BLE001  # an errback may raise any error
            if raised is not error:
                yield request
