"""Finds the archived result that decided about a site at a given time: for ``explain --at``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.utils.spider import DefaultSpider

from scrapy_koster.commands.lookup import Basis, basis_of
from scrapy_koster.crawl.config import Config, config_of
from scrapy_koster.crawl.fetching.archiver import decisive
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.step import next_step, waits
from scrapy_koster.protocol.verdict import Source

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from scrapy_koster.archive.folder import Folder

_TRUSTED = ("scrapy_koster.", "scrapy.robotstxt.")
"""Prefixes of paths of parsers. An archive can choose these parsers. Any other parser is used only
if your own KOSTER_PARSER is the same parser."""


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
    crawler = Crawler(DefaultSpider, _settings(settings, info, outcome.warc))
    config = config_of(crawler)
    is_current = not waits(next_step(known, now=time, policy=config.policy))
    at = time if is_current else outcome.at
    source = next((each for each in Source if each.value == outcome.source), Source.FETCHED)
    basis = basis_of(known, source, at=at, config=config, crawler=crawler)
    robot = info.get("koster-robot", "")
    return replace(basis, robot=robot, time=time, outcome=outcome, is_current=is_current)


def folder_named(name: str | None, config: Config) -> Folder:
    """Return the archive in the folder *name* (default: KOSTER_ARCHIVE).

    Raises ArchiveError if there is no archive, and UsageError if no folder is named.
    """
    path = name or config.archive
    if path is None:
        raise UsageError(
            "No archive is named. Use --archive FOLDER, or set KOSTER_ARCHIVE to a folder: the"
            " crawls after that write an archive into it"
        )
    from scrapy_koster.archive.folder import Folder  # noqa: PLC0415  # needs an extra

    return Folder(path)


def _settings(settings: Settings, info: Mapping[str, str], warc: Path) -> Settings:
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
    ours = settings.get("KOSTER_PARSER")
    if not str(parser).startswith(_TRUSTED) and parser != ours:
        raise UsageError(
            f"{str(warc)!r} names a parser that is not one of scrapy-koster:"
            f" {printable(str(parser))}. If you trust it, add -s KOSTER_PARSER={parser}"
        )
    archived = settings.copy()
    archived.setdict(known, priority="cmdline")
    archived.set("ROBOTSTXT_USER_AGENT", None, priority="cmdline")
    return archived
