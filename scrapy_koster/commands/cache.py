"""``scrapy robots cache``: the copies in the configured storage."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from time import time
from typing import Any

from scrapy.exceptions import UsageError

from scrapy_koster.commands.output import Line, dim, table
from scrapy_koster.commands.subcommand import JSON, Run, Subcommand, argument, choose, sites_named
from scrapy_koster.crawl.robot import copies_of
from scrapy_koster.protocol.access import CacheEntry, FetchFailure, last_copy
from scrapy_koster.protocol.line import lines
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.sitemap import sitemaps_in
from scrapy_koster.protocol.wording import TEXT_CHARS, shown, utc
from scrapy_koster.storage import Storage
from scrapy_koster.storage.sqlite import SQLiteStorage

_NOT_STORED = 1
_COLUMNS = ("SITE", "ANSWER", "SIZE", "FETCHED", "FRESH UNTIL", "ROBOT")
_SITE = "URL of the site, or its host; a host without a port means all its sites"
_ANSWERS = "0 done, 1 a site is not stored"


class List(Subcommand):
    """List the stored sites."""

    example = "scrapy robots cache list"
    answers = _ANSWERS
    arguments = (JSON,)

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the stored sites of all robots."""
        with _storages(run) as storages:
            known = [(*each, name) for name, kept in storages.items() for each in kept.sites()]
        known.sort(key=lambda each: (str(each[0]), each[2]))
        if run.opts.json:
            yield from (json.dumps(_as_dict(*each)) for each in known)
        elif known:
            now = time()
            yield from table(_COLUMNS, [_row(*each, now) for each in known])
        else:
            yield "nothing is stored"


class Show(Subcommand):
    """Show the copy of a site."""

    example = "scrapy robots cache show https://example.com"
    answers = _ANSWERS
    arguments = (argument("site", metavar="SITE", help=_SITE), JSON)

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the copies and failures of the named sites, by robot."""
        name = run.opts.site
        with _storages(run) as storages:
            found = [
                (site, known, robot)
                for robot, storage in storages.items()
                for site in _sites_named(name, storage)
                if (known := storage.get(site))
            ]
        if not found:
            run.warn(f"nothing is stored of {printable(name)}", _NOT_STORED)
        for site, known, robot in found:
            facts, copy = _as_dict(site, known, robot), last_copy(known)
            sitemaps = sitemaps_in(copy.body) if copy else []
            file = copy.in_utf8.decode(errors="backslashreplace") if copy else None
            whole = {**facts, "sitemaps": sitemaps, "body": file}
            named = [*facts.items(), *(("sitemap", each) for each in sitemaps)]
            yield from run.answer(whole, _as_text(named, copy.body if copy else b""))


class Forget(Subcommand):
    """Delete copies.

    The next crawl fetches these files again.
    """

    example = "scrapy robots cache forget example.com"
    answers = _ANSWERS
    arguments = (
        argument("sites", nargs="*", metavar="SITE", help=_SITE),
        argument("--all", action="store_true", help="delete the copies of all sites"),
    )

    def run(self, run: Run) -> Iterator[Line]:
        """Delete copies, and yield a line for each site."""
        opts = run.opts
        if opts.all == bool(opts.sites):
            raise UsageError("give --all, or the sites to forget")
        with _storages(run) as storages:
            for name in opts.sites or [None]:
                forgotten = {
                    str(site)
                    for storage in storages.values()
                    for site in _sites_named(name, storage)
                    if storage.forget(site)
                }
                for site in sorted(forgotten):
                    yield f"forgotten: {printable(site)}"
                if name is not None and not forgotten:
                    run.warn(f"nothing is stored of {printable(name)}", _NOT_STORED)


class Cache(Subcommand):
    """List, show or delete stored copies.

    The copies are in your storage (KOSTER_STORAGE).
    """

    example = List.example
    answers = _ANSWERS

    def add_to(self, subparsers: Any) -> ArgumentParser:
        """Add a parser to *subparsers*, with a subparser for each action. Return the parser."""
        parser = super().add_to(subparsers)
        choose(parser, _ACTIONS, title="actions", dest="action")
        return parser

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the answer of the action."""
        return _ACTIONS[run.opts.action].run(run)


_ACTIONS = {action.name: action for action in (List(), Show(), Forget())}


@contextmanager
def _storages(run: Run) -> Iterator[dict[str, Storage]]:
    """Yield the open storages of your robot and of robots with copies, by the name of the robot.

    No file is created: without a SQLite file, there is no storage.
    """
    config, own = run.config, copies_of(run.crawler, run.config)
    if issubclass(config.storage, SQLiteStorage) and not Path(config.sqlite_path).exists():
        yield {}
        return
    with ExitStack() as stack:
        storage = stack.enter_context(closing(config.open_storage(own)))
        storages = {own: storage}
        for robot in storage.robots():
            if robot != own:
                storages[robot] = stack.enter_context(closing(config.open_storage(robot)))
        yield storages


def _sites_named(text: str | None, storage: Storage) -> list[Site]:
    """Return the site of a URL, the https and http sites of a host:port, or a host's stored sites.

    For None, return all stored sites. Raises UsageError for other text.
    """
    sites = [] if text is None else sites_named(text)
    if len({site.port for site in sites}) == 1:
        return sites
    return [site for site, _ in storage.sites() if text is None or site.host == sites[0].host]


def _row(site: Site, known: CacheEntry, robot: str, now: float) -> tuple[str | int, ...]:
    name = printable(str(site))
    if isinstance(known, FetchFailure):
        return name, printable(known.reason, 40), "-", utc(known.asked), "-", printable(robot)
    until = utc(known.expires) + ("" if now < known.expires else " (stale)")
    facts = f"HTTP {known.status}", len(known.body), utc(known.fetched), until
    return name, *facts, printable(robot)


def _as_text(facts: Iterable[tuple[str, Any]], body: bytes) -> Iterator[Line]:
    """Yield the facts about a copy or failure, and the lines of the last copy."""
    for name, value in facts:
        if value is not None:
            yield "  ", dim(f"{name:<13}"), f" {printable(str(value), TEXT_CHARS)}"
    if not body:
        return
    yield ""
    for number, line in enumerate(lines(body), 1):
        text = f"  {shown(line, TEXT_CHARS)}".rstrip()
        yield "  ", dim(f"{number:>7}"), text


def _as_dict(site: Site, known: CacheEntry, robot: str) -> dict[str, Any]:
    if isinstance(known, FetchFailure):
        facts = {
            "reason": printable(known.reason),
            "attempts": known.attempts,
            "since": utc(known.since),
            "asked": utc(known.asked),
            "retry": utc(known.retry),
            "stale": known.stale is not None,
        }
    else:
        facts = {
            "url": printable(known.url, TEXT_CHARS),
            "status": known.status,
            "size": len(known.body),
            "etag": known.etag,
            "last_modified": known.last_modified,
            "fetched": utc(known.fetched),
            "expires": utc(known.expires),
        }
    return {"site": str(site), **facts, "robot": robot}
