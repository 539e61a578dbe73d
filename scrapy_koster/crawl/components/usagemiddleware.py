"""The spider middleware that tells callbacks what a page may be used for."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

from itemadapter import ItemAdapter
from scrapy import Request, signals
from scrapy.exceptions import DropItem, NotConfigured
from scrapy.http import Response

from scrapy_koster import signals as robots_signals
from scrapy_koster.crawl.assembly import assembly_of
from scrapy_koster.crawl.config import DAY_SECS
from scrapy_koster.crawl.engine.notconfigured import not_disabled
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.pages.page import (
    may_have_metas,
    octets_of,
    prepare_for,
    syntax_of,
    tokens_of,
    tokens_said,
)
from scrapy_koster.protocol.metatags import Syntax, part_to_read
from scrapy_koster.protocol.usage import KNOWN_LABELS, Usage
from scrapy_koster.protocol.usage_page import (
    TDM_NAMES,
    HeaderFields,
    header_statements,
    page_statements,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from scrapy.crawler import Crawler
    from scrapy.http import Headers

    from scrapy_koster.crawl.assembly import Assembly
    from scrapy_koster.protocol.usage import Statement

USAGE = "koster_usage"
"""The key of response.meta with the Usage of the page."""

_Unfit: TypeAlias = "tuple[str, Statement | None]"
"""A purpose that items may not serve, and the statement that says so."""

_HEADERS = (b"Content-Usage", b"X-Robots-Tag", b"Tdm-Reservation", b"Tdm-Policy")
_NO_FIELDS = HeaderFields()


class UsageMiddleware:
    """Sets ``response.meta["koster_usage"]``, and drops items if a purpose is disallowed."""

    def __init__(self, crawler: Crawler, parts: Assembly) -> None:
        """See ``from_crawler``, which has the parts built."""
        self._crawler = crawler
        self._log = Log(__name__, crawler)
        self._stats = parts.stats
        self._events = parts.events
        self._stated = parts.stated
        self._token = parts.config.robot
        self._choice = choice = parts.config.usage
        self._dry_run = parts.config.dry_run
        self._labels = choice.labels
        self._reads_metas = choice.reads_metas
        self._nothing = Usage(labels=self._labels)
        self._found: WeakKeyDictionary[Response, Usage] = WeakKeyDictionary()
        self._unfit: WeakKeyDictionary[Response, _Unfit] = WeakKeyDictionary()
        self._dropped: Counter[str] = Counter()
        crawler.signals.connect(self._begin, signal=signals.spider_opened)
        crawler.signals.connect(self._sum_up, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UsageMiddleware:
        """Create it. Raises ValueError, which stops the crawl, if a setting is invalid."""
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        with not_disabled(cls.__name__):
            return cls(crawler, assembly_of(crawler))

    def process_spider_input(self, response: Response) -> None:
        """Set the usage of the page, so that its callback can see it."""
        request = response.request
        assert request is not None  # the engine sets it
        usage, fields = self._nothing, _NO_FIELDS
        stated = self._stated.about(request) if self._stated.has_any else ()
        # Not "in response.headers", which folds the case of the name each time.
        if not response.headers.keys().isdisjoint(_HEADERS):
            fields = _fields(response.headers)
        if stated or fields is not _NO_FIELDS:
            usage = self._without_metas(request, stated, fields)
        if may_have_metas(response):
            usage = self._with_metas(response, request, stated, fields)
        if self._reads_metas:
            self._count(usage)
            # A callback may write to its meta: what is decided by is kept apart.
            self._found[response] = usage
            if unfit := self._unfit_for(request, usage):
                self._unfit[response] = unfit
        request.meta[USAGE] = usage

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Pass on requests without the usage of this page, and items that it may serve."""
        usage, unfit = self._nothing, None
        if self._reads_metas:  # else nothing is filled or dropped
            usage, unfit = self._found.get(response, usage), self._unfit.get(response)
        async for output in result:
            if isinstance(output, Request):
                # People pass meta=response.meta on: it is another page's there, and in no queue.
                output.meta.pop(USAGE, None)
            elif output is not None:
                if unfit is not None and await self._drops(output, response, *unfit):
                    continue
                if self._choice.field is not None:
                    _fill(output, self._choice.field, usage)
            yield output

    def _without_metas(
        self, request: Request, stated: tuple[Statement, ...], fields: HeaderFields
    ) -> Usage:
        read = partial(header_statements, fields, labels=self._labels)
        statements = stated + _to_each(tokens_of(request, self._token), read)
        usage = Usage(statements, labels=self._labels)
        if not self._reads_metas:
            self._count(usage)  # what it takes no parsing of the page to know
        return usage

    def _with_metas(
        self,
        response: Response,
        request: Request,
        stated: tuple[Statement, ...],
        fields: HeaderFields,
    ) -> Usage:
        # It must not hold the response, whose request holds it. Few callbacks ask for it: what
        # can be found then is not looked for here.
        page, said = octets_of(response), request.meta.get("robotstxt_user_agent")
        tokens = partial(tokens_said, said, request.headers, self._token)
        syntax = partial(syntax_of, type(response), response.headers)
        read = partial(_statements, page, stated, fields, tokens, syntax, labels=self._labels)
        return Usage(labels=self._labels, read=read)

    def _count(self, usage: Usage) -> None:
        for label, preference in usage.preferences().items():
            self._stats.usage_stated(label, preference)

    def _unfit_for(self, request: Request, usage: Usage) -> _Unfit | None:
        """Return the purpose that items of the page may not serve, None if they may be kept."""
        if not self._choice.drops or request.meta.get("dont_obey_robotstxt"):
            return None
        return self._choice.unfit(usage)

    async def _drops(
        self, item: Any, response: Response, purpose: str, statement: Statement | None
    ) -> bool:
        """Count, log and drop an item; return False in a dry run, which drops nothing."""
        self._stats.usage_dropped()
        self._events.send(
            robots_signals.output_dropped, response=response, output=item, reason="usage_dropped"
        )
        first = not self._dropped[purpose]
        self._dropped[purpose] += 1
        because = f"{purpose} is unknown (KOSTER_USAGE_UNKNOWN)"
        if statement is not None:
            because = f"{purpose} is disallowed by {statement}"
        log = self._log.info if first else self._log.debug
        log(
            "%(dropped)s an item (%(item)s) of %(page)s: %(because)s.%(more)s",
            dropped="Would drop" if self._dry_run else "Dropped",
            item=type(item).__name__,
            page=response.url,
            because=because,
            more=_HOW_TO_KEEP if first else "",
        )
        if self._dry_run:
            return False
        await self._crawler.signals.send_catch_log_async(
            signal=signals.item_dropped,
            item=item,
            response=response,
            spider=self._crawler.spider,
            exception=DropItem(f"The page may not be used: {because}"),
        )
        return True

    # The start and the end of the crawl.

    def _begin(self) -> None:
        if self._reads_metas:
            prepare_for(self._crawler, self._token, TDM_NAMES)
        purposes = self._choice.purposes
        if not purposes:
            return
        self._log.info(
            "KOSTER_USAGE_PURPOSES is set: copies of robots.txt expire after %(secs)d s at most,"
            " whatever KOSTER_EXPIRY_SECS and the sites say",
            secs=DAY_SECS,
        )
        if unknown := [purpose for purpose in purposes if purpose not in KNOWN_LABELS]:
            self._log.warning(
                "KOSTER_USAGE_PURPOSES: no standard that is read defines %(unknown)s. Known labels"
                " are %(known)s. Sites that disallow your purpose may do so by one of these.",
                unknown=", ".join(unknown),
                known=", ".join(sorted(KNOWN_LABELS)),
            )

    def _sum_up(self) -> None:
        if self._dropped:
            self._log.info(
                "%(dropped)s because their pages may not be used for it: items (%(purposes)s)."
                ' KOSTER_USAGE_ACTION = "report" keeps them.',
                dropped="Would be dropped" if self._dry_run else "Dropped",
                purposes=", ".join(f"{name}: {count}" for name, count in self._dropped.items()),
            )


_HOW_TO_KEEP = (
    ' Further ones are logged at DEBUG. KOSTER_USAGE_ACTION = "report" keeps all items,'
    " dont_obey_robotstxt in the meta of the page's request those of that page."
)


def _fields(headers: Headers) -> HeaderFields:
    """Return the fields that may state preferences."""
    usage, robots_tag, reservation, policy = (dict.get(headers, name) or () for name in _HEADERS)
    return HeaderFields(
        content_usage=usage,
        x_robots_tag=robots_tag,
        tdm_reservation=reservation,
        tdm_policy=policy,
    )


def _statements(
    page: bytes,
    of_robots_txt: tuple[Statement, ...],
    fields: HeaderFields,
    tokens: Callable[[], tuple[str, ...]],
    syntax: Callable[[], Syntax],
    *,
    labels: frozenset[str],
) -> tuple[Statement, ...]:
    """Return all statements about *page*, which is read for META tags."""
    written = syntax()

    def read(token: str) -> tuple[Statement, ...]:
        part = part_to_read(page, token, TDM_NAMES)
        return page_statements(fields, part, token, syntax=written, labels=labels)

    return of_robots_txt + _to_each(tokens(), read)


def _to_each(
    tokens: tuple[str, ...], read: Callable[[str], tuple[Statement, ...]]
) -> tuple[Statement, ...]:
    """Return what is stated to a robot of several names; to all of them: once."""
    return tuple(dict.fromkeys(each for token in tokens for each in read(token)))


def _fill(item: Any, field: str, usage: Usage) -> None:
    """Set *field* of *item* if the item can hold it and it has no value."""
    try:
        adapter = ItemAdapter(item)
        value = adapter.get(field)
        if value is None or (isinstance(value, (str, dict, list, tuple)) and not value):
            adapter[field] = usage.to_dict()
    except Exception:  # noqa: BLE001  # it cannot hold it: items may be of anybody's class
        return
