"""The spider middleware for usage preferences of pages."""

from contextlib import suppress
from typing import Any

from itemadapter import ItemAdapter
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.http import Response

from scrapy_koster.crawl.components.spidermiddleware import PageMiddleware, headers_of, html_of
from scrapy_koster.crawl.config import DAY_SECS, Config
from scrapy_koster.protocol.nametoken import names_of
from scrapy_koster.protocol.usage import KNOWN_LABELS, Statement, Usage
from scrapy_koster.protocol.usage_statements import FIELDS, page_statements

USAGE = "koster_usage"
"""The key of response.meta with the Usage of the page."""


class UsageMiddleware(PageMiddleware):
    """Sets ``response.meta["koster_usage"]`` and a field of items, and can drop items.

    If KOSTER_USAGE_ACTION is "drop" or "refuse", the items of a page that disallows a purpose are
    dropped. With KOSTER_USAGE_UNKNOWN = "drop", unknown preferences drop items, too. Enabled by
    KOSTER_USAGE_PURPOSES or KOSTER_USAGE_FIELD.
    """

    settings = "KOSTER_USAGE_PURPOSES and KOSTER_USAGE_FIELD"
    why_dropped = "disallow a purpose"
    how_to_keep = 'KOSTER_USAGE_ACTION = "report" keeps all items.'

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if purposes := self._config.usage.purposes:
            self._log.info(
                "KOSTER_USAGE_PURPOSES is set: copies of robots.txt expire after %(secs)d s at"
                " most, whatever KOSTER_EXPIRY_SECS and the sites say",
                secs=DAY_SECS,
            )
        if unknown := [purpose for purpose in purposes if purpose not in KNOWN_LABELS]:
            self._log.warning(
                "KOSTER_USAGE_PURPOSES: no standard that is read defines %(unknown)s. Known labels"
                " are %(known)s. Sites that disallow your purpose may do so by one of these.",
                unknown=", ".join(unknown),
                known=", ".join(sorted(KNOWN_LABELS)),
            )

    @staticmethod
    def is_on(config: Config) -> bool:
        """Return whether KOSTER_USAGE_PURPOSES or KOSTER_USAGE_FIELD is set."""
        return config.usage.is_on

    def process_spider_input(self, response: Response) -> None:
        """Set the usage of the page in the meta of its request, for the callback."""
        request = response.request
        assert request is not None  # the engine sets it
        choice = self._config.usage
        usage = Usage(self._statements(response, request), labels=choice.labels)
        for label, preference in usage.preferences().items():
            self._crawler.stats.inc_value(f"koster/usage/{label}/{preference.name.lower()}")
        decides = choice.drops and not request.meta.get("dont_obey_robotstxt")
        self._found[response] = usage, choice.unfit(usage) if decides else None
        request.meta[USAGE] = usage

    async def _passes(self, output: Any, response: Response) -> bool:
        """Return whether *output* is not dropped.

        If KOSTER_USAGE_FIELD of an item that passes is empty, it is set to the usage as a dict.
        """
        usage, unfit = self._found.get(response, (None, None))
        if isinstance(output, Request):
            # A request with meta=response.meta has the usage of this page: remove the usage.
            output.meta.pop(USAGE, None)
        elif output is not None:
            if unfit is not None and await self._drops_item(output, response, *unfit):
                return False
            if (field := self._config.usage.field) is not None and usage is not None:
                with suppress(Exception):  # items of any class: some have no such field
                    adapter = ItemAdapter(output)
                    if adapter.get(field) in (None, "", {}, [], ()):
                        adapter[field] = usage.to_dict()
        return True

    def _statements(self, response: Response, request: Request) -> tuple[Statement, ...]:
        """Return the statements about the page in its robots.txt, headers and META tags."""
        headers = headers_of(response, FIELDS)
        page, labels = html_of(response), self._config.usage.labels
        # A statement for several names of the robot counts once.
        of_page = dict.fromkeys(
            each
            for token in names_of(self._parts.robot.name_of(request))
            for each in page_statements(headers, page, token, labels=labels)
        )
        return self.enforcement.stated.get(request, ()) + tuple(of_page)

    async def _drops_item(
        self, item: Any, response: Response, purpose: str, statement: Statement | None
    ) -> bool:
        """Count and log an item to drop. Return whether the item is dropped: False in a dry run."""
        self._crawler.stats.inc_value("koster/usage/dropped")
        why = f"disallowed by {statement}" if statement else "unknown (KOSTER_USAGE_UNKNOWN)"
        because = f"{purpose} is {why}"
        if not self._drops(item, response, purpose, "usage_dropped", f"where {because}"):
            return False
        await self._crawler.signals.send_catch_log_async(
            signal=signals.item_dropped,
            item=item,
            response=response,
            spider=self._crawler.spider,
            exception=DropItem(f"The page may not be used: {because}"),
        )
        return True
