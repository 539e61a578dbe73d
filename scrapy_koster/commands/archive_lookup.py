"""The copy of a site that was in force at a given time, from an archive: for ``explain --at``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.spider import DefaultSpider

from scrapy_koster.commands.lookup import Learnt
from scrapy_koster.crawl.config import Config, config_of
from scrapy_koster.crawl.fetching.archiver import decisive
from scrapy_koster.protocol.access import Copy, Known, standing_of
from scrapy_koster.protocol.policy import Policy
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.standing import Access
from scrapy_koster.protocol.step import Obey, Refuse, Settled, next_step, waits
from scrapy_koster.protocol.verdict import Source

if TYPE_CHECKING:
    from scrapy.robotstxt import RobotParser
    from scrapy.settings import Settings

    from scrapy_koster.archive.folder import Folder, Outcome

_PARSERS = {
    *(f"scrapy_koster.{name}RobotParser" for name in ("Koster", "Strictest", "Rfc9309")),
    *(f"scrapy.robotstxt.{name}RobotParser" for name in ("Protego", "Python", "Rerp")),
    "scrapy_koster.parsers.koster.KosterRobotParser",
    "scrapy_koster.parsers.strictest.StrictestRobotParser",
    "scrapy_koster.parsers.rfc9309.Rfc9309RobotParser",
}
"""Classes that are imported because an archive names them; any other must be in the settings."""


@dataclass(frozen=True, slots=True)
class Archived:
    """The copy that was in force at a given time, and the settings of its crawl."""

    learnt: Learnt
    config: Config
    robot: str
    time: float
    outcome: Outcome
    is_current: bool
    """False if a crawl would have fetched the robots.txt again before it decided."""


def archived_copy(
    folder: Folder, site: Site, time: float, *, settings: Settings
) -> Archived | None:
    """Return the copy in force at *time*; None if no crawl had asked *site* by then.

    *settings* are those at hand. Raises ArchiveError, and UsageError if the settings in the archive
    cannot be used.
    """
    before = [outcome for outcome in folder.outcomes(site) if outcome.at <= time]
    if not before:
        return None
    outcome = before[-1]
    info, known = folder.info(outcome.warc), folder.whole(outcome)
    crawler = Crawler(DefaultSpider, _settings(settings, info, outcome.warc))
    config = config_of(crawler)
    is_current = not waits(next_step(known, now=time, policy=config.policy))
    step = settled(known, time if is_current else outcome.at, config.policy)
    source = next((each for each in Source if each.value == outcome.source), Source.FETCHED)
    learnt = Learnt(step, source, _parser(step, config, crawler))
    return Archived(learnt, config, info.get("koster-robot", ""), time, outcome, is_current)


def folder_named(name: str | None, config: Config) -> Folder:
    """Return the archive in a folder, by itself that of KOSTER_ARCHIVE. Raises ArchiveError."""
    path = name or config.archive
    if path is None:
        raise UsageError(
            "No archive is named. Use --archive FOLDER, or set KOSTER_ARCHIVE to a folder: the"
            " crawls after that write an archive into it"
        )
    from scrapy_koster.archive.folder import Folder  # noqa: PLC0415  # an extra

    return Folder(path)


def settled(known: Known, learnt: float, policy: Policy) -> Settled:
    """Return what a request was decided by that had waited for what is *known*."""
    step = next_step(known, now=learnt, policy=policy)
    if not waits(step):
        return step
    return Obey(known, known.expires) if isinstance(known, Copy) else Refuse(known, known.retry)


def _settings(settings: Settings, info: Mapping[str, str], warc: Path) -> Settings:
    """Return *settings* with those that *info* has: the ones by which the crawl has decided."""
    try:
        told: Any = json.loads(info["koster-settings"])
        known = {name: told[name] for name in decisive(settings) if name in told}
    except (KeyError, TypeError, ValueError, RecursionError):
        raise UsageError(
            f"{str(warc)!r} does not have the settings of its crawl: scrapy-koster did not write it"
        ) from None
    parser = known.get("KOSTER_PARSER")
    ours = settings.get("KOSTER_PARSER")
    if parser not in _PARSERS and parser != ours:
        raise UsageError(
            f"{str(warc)!r} names a parser that is not one of scrapy-koster:"
            f" {printable(str(parser))}. If you trust it, add -s KOSTER_PARSER={parser}"
        )
    archived = settings.copy()
    archived.setdict(known, priority="cmdline")
    archived.set("ROBOTSTXT_USER_AGENT", None, priority="cmdline")
    return archived


def _parser(step: Settled, config: Config, crawler: Crawler) -> RobotParser | None:
    if isinstance(step, Obey) and standing_of(step.copy, config.policy).access is Access.BY_RULES:
        return build_from_crawler(config.parser, crawler, step.copy.in_utf8)
    return None
