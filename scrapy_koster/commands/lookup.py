"""The basis of a decision: a stored, fetched or archived robots.txt, or a given file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.robotstxt import RobotParser
from scrapy.settings import Settings
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.spider import DefaultSpider

from scrapy_koster.archive.record import Outcome
from scrapy_koster.crawl.config import Config, config_of
from scrapy_koster.crawl.context import CrawlContext, Parts
from scrapy_koster.crawl.fetching.archiver import decisive
from scrapy_koster.crawl.robot import user_agent
from scrapy_koster.crawl.storage_calls import StorageCalls
from scrapy_koster.protocol.access import Answer, CachedRobots, CacheEntry, NoAnswer, status_of_copy
from scrapy_koster.protocol.delay import CrawlDelay
from scrapy_koster.protocol.policy import Unavailable
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.site_status import Ground
from scrapy_koster.protocol.step import Ask, Obey, Pass, Refuse, next_step, waits
from scrapy_koster.protocol.usage_statements import UsageLines, usage_lines
from scrapy_koster.protocol.verdict import Source
from scrapy_koster.signals import robots_retrieved
from scrapy_koster.storage.port import GRANTED, Claimed

if TYPE_CHECKING:  # needs the extra "archive"
    from scrapy_koster.archive.folder import Folder

QUIET: dict[str, Any] = {
    # A crawl of this project may be running. A command must not overwrite files of that crawl.
    "FEEDS": {},
    "ITEM_PIPELINES": {},
    "JOBDIR": None,
    "KOSTER_REPORT": None,
    "LOG_STDOUT": False,  # the answer is on standard output
    "TELNETCONSOLE_ENABLED": False,
}

NO_ANSWER = "the crawl ended before robots.txt was fetched"

_TRUSTED = ("scrapy_koster.", "scrapy.robotstxt.")
"""Prefixes of paths of parsers. An archive can choose these parsers. Any other parser is used only
if your own KOSTER_PARSER is the same parser."""


@dataclass(frozen=True, slots=True)
class Basis:
    """The basis of a crawl's decisions: a copy or a failure, settings, a robot and a time."""

    step: Obey | Pass | Refuse
    source: Source
    parser: RobotParser | None
    """The parser of the copy, or None if rules do not decide, for example after HTTP 404."""
    config: Config
    robot: str
    """Name or User-Agent header of the robot, from the settings or the archive."""
    time: float
    content_type: str | None = None
    """The Content-Type of the response, "" if missing. None if no response was received."""
    outcome: Outcome | None = None
    """The archived result that decides, with ``--at`` only."""
    is_current: bool = True
    """False if a crawl would have fetched the robots.txt again before a decision at ``time``."""

    def usage(self) -> UsageLines | None:
        """Return the usage statements of the obeyed copy, or None if no rules are obeyed."""
        if self.parser is None or not isinstance(self.step, Obey):
            return None
        copy, labels = self.step.copy, self.config.usage.labels
        return usage_lines(copy.in_utf8, self.parser, labels=labels, digest=copy.digest)


def basis_of(
    site: Site, known: CacheEntry, source: Source, *, at: float, config: Config, crawler: Crawler
) -> Basis:
    """Return the basis of decisions on *site* by *known* at the time *at*.

    A copy is obeyed, even if expired. A failure refuses requests if a crawl would wait for a retry,
    or would fetch the robots.txt first.
    """
    step = next_step(known, now=at, policy=config.policy.at(site, at))
    if waits(step):
        step = (
            Obey(known, known.expires)
            if isinstance(known, CachedRobots)
            else Refuse(known, known.retry)
        )
    parser = None
    if isinstance(step, Obey) and status_of_copy(step.copy, config.policy).ground is Ground.RULE:
        parser = build_from_crawler(config.parser, crawler, step.copy.in_utf8)
    return Basis(step, source, parser, config, config.robot or user_agent(crawler), at)


def archived_basis(folder: Folder, site: Site, time: float, *, settings: Settings) -> Basis | None:
    """Return the basis of decisions at *time*, or None if *site* has no result by that time.

    Archived settings that affect decisions replace *settings*. Raises UsageError if the archive has
    no settings or names an untrusted parser, ValueError for an invalid setting, and ArchiveError.
    """
    before = [outcome for outcome in folder.outcomes(site) if outcome.at <= time]
    if not before:
        return None
    outcome = before[-1]
    info, known = folder.info(outcome.warc), folder.whole(outcome)
    crawler = Crawler(DefaultSpider, _archived_settings(settings, info, outcome.warc))
    config = config_of(crawler)
    policy = config.policy.at(site, time)
    is_current = not isinstance(next_step(known, now=time, policy=policy), Ask)
    at = time if is_current else outcome.at
    source = next((each for each in Source if each.value == outcome.source), Source.FETCHED)
    basis = basis_of(site, known, source, at=at, config=config, crawler=crawler)
    robot = info.get("koster-robot", "")
    return replace(basis, robot=robot, time=time, outcome=outcome, is_current=is_current)


def _archived_settings(settings: Settings, info: Mapping[str, str], warc: Path) -> Settings:
    """Return *settings*, updated with the settings of the archived crawl. Raises UsageError.

    *info* has the fields of the warcinfo record.
    """
    try:
        stored: Any = json.loads(info["koster-settings"])
        known = {name: stored[name] for name in decisive(settings) if name in stored}
    except (KeyError, TypeError, ValueError, RecursionError):
        raise UsageError(
            f"{str(warc)!r} does not have the settings of its crawl: scrapy-koster did not write it"
        ) from None
    parser = known.get("KOSTER_PARSER")
    if not str(parser).startswith(_TRUSTED) and parser != settings.get("KOSTER_PARSER"):
        raise UsageError(
            f"{str(warc)!r} names a parser that is not one of scrapy-koster:"
            f" {printable(str(parser))}. If you trust it, add -s KOSTER_PARSER={parser}"
        )
    archived = settings.copy()
    archived.setdict({**known, "ROBOTSTXT_USER_AGENT": None}, priority="cmdline")
    return archived


class LookupSpider(Spider):
    """Fetches the robots.txt of ``urls``, and requests no page.

    Scrapy sets the arguments of the crawl as attributes.
    """

    name = "scrapy-koster"
    urls: Iterable[str]
    found: dict[str, Basis]
    """The bases of decisions by URL, which the spider adds."""
    refresh: bool
    """Whether stored copies are not used."""

    async def start(self) -> AsyncIterator[Any]:
        """Fetch each robots.txt. The loop over the empty start_urls makes this a generator."""
        crawler, config = self.crawler, config_of(self.crawler)
        self._types: dict[Site, str] = {}
        crawler.signals.connect(self._retrieved, robots_retrieved)
        robot = config.robot or user_agent(crawler)
        once = replace(config, pace=replace(config.pace, choice=CrawlDelay.IGNORE))
        if config.policy.defers:  # report a failure at once, instead of after retries
            once = replace(once, policy=replace(config.policy, unavailable=Unavailable.DISALLOW))
        # Not ``context_of``: an enabled KosterMiddleware has its context there, with other parts.
        store = _Refreshed if self.refresh else StorageCalls
        sites = CrawlContext(crawler, Parts(config=once, store=store)).sites
        try:
            for url in self.urls:
                state = sites.records.state_of(url)
                assert state is not None  # None only if the URL is not http or https
                step = await sites.wait(state, Request(url))
                if waits(state.step):
                    return  # the crawl was stopped before the answer
                facts, kind = state.facts, self._types.get(state.site)
                basis = Basis(step, facts.source, facts.parser, config, robot, time(), kind)
                self.found[url] = basis
        finally:
            await sites.close()
        for request in self.start_urls:
            yield request

    def _retrieved(self, site: Site, result: Answer | NoAnswer | None) -> None:
        if isinstance(result, Answer):
            self._types[site] = result.headers.get("content-type", "")


class _Refreshed(StorageCalls):
    """Storage calls that find no copy, so each robots.txt is fetched.

    A fetched copy is stored. A failure is not stored, because it would replace a stored copy.
    """

    async def claim(self, site: Site, *, secs: float, unless_known: bool) -> Claimed:  # noqa: ARG002
        return GRANTED

    async def put(self, site: Site, known: CacheEntry) -> None:
        if isinstance(known, CachedRobots):
            await super().put(site, known)
