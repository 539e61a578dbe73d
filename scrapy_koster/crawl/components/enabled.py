"""Whether the settings enable what a crawl needs, and nothing that is in its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.utils.misc import load_object

from scrapy_koster.crawl.components.usagemiddleware import UsageMiddleware
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.defect import checked_parser

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.config import Config


def check_enabled(crawler: Crawler, config: Config) -> None:
    """Raise ValueError or TypeError if a setting can have no effect; warn of what is in the way."""
    log = Log(__name__, crawler)
    _check_parser(crawler, config, log)
    _check_not_twice(crawler, log)
    _check_usage(crawler, config)


def _check_parser(crawler: Crawler, config: Config, log: Log) -> None:
    checked_parser(config.parser, config.parser.from_crawler(crawler, b""))
    settings = crawler.settings
    if settings.getpriority("ROBOTSTXT_PARSER") and settings.get("KOSTER_PARSER") is None:
        log.warning(
            "ROBOTSTXT_PARSER = %(parser)s has no effect: KOSTER_PARSER reads robots.txt, by"
            " default by the draft. Set KOSTER_PARSER to your parser, or remove ROBOTSTXT_PARSER.",
            parser=repr(settings["ROBOTSTXT_PARSER"]),
        )


def _check_usage(crawler: Crawler, config: Config) -> None:
    enabled = crawler.settings.get_component_priority_dict_with_base("SPIDER_MIDDLEWARES")
    if config.usage.is_on and not any(
        issubclass(load_object(path), UsageMiddleware) for path in enabled
    ):
        raise ValueError(
            "KOSTER_USAGE_PURPOSES and KOSTER_USAGE_FIELD have no effect without UsageMiddleware."
            ' Add "scrapy_koster.UsageMiddleware": 90 to SPIDER_MIDDLEWARES, or use the add-on.'
        )


def _check_not_twice(crawler: Crawler, log: Log) -> None:
    enabled = crawler.settings.get_component_priority_dict_with_base("DOWNLOADER_MIDDLEWARES")
    if any(load_object(path) is RobotsTxtMiddleware for path in enabled):
        log.warning(
            "Scrapy's RobotsTxtMiddleware is enabled too: robots.txt is fetched and"
            " read twice, by two standards. Disable it with DOWNLOADER_MIDDLEWARES"
            ' = {"scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,'
            " ...}, or use the add-on."
        )
