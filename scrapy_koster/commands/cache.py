"""``scrapy robots cache``: the copies in the configured storage."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_koster.commands.style import joined
from scrapy_koster.commands.subcommand import Run, Subcommand, argument, json_option, sites_named
from scrapy_koster.crawl.robot import copies_of
from scrapy_koster.protocol.access import Failure, Known, last_copy
from scrapy_koster.protocol.line import lines
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.sitemap import sitemaps_in
from scrapy_koster.protocol.wording import shown, utc
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.sqlite import SQLiteStorage

if TYPE_CHECKING:
    from typing import TypeAlias

    from scrapy_koster.commands.style import Line, Style
    from scrapy_koster.storage import Storage

    _Storages: TypeAlias = dict[str, Storage]
    """By the name of the robot."""

_STATUSES = """\
exit status: 0 done, 1 a site is not stored, 2 wrong usage, 3 the storage failed,
4 the command failed"""

_SITE = "URL of the site, or its host; a host without a port means all its sites"

_NOT_STORED = 1
_LINE_CHARS = 1000
_COLUMNS = ("SITE", "ANSWER", "SIZE", "FETCHED", "FRESH UNTIL", "ROBOT")


class Action(Subcommand):
    """A command of ``scrapy robots cache``."""

    statuses = _STATUSES

    def run(self, run: Run) -> Iterator[Line]:
        """Open the storage and yield the answer."""
        with ExitStack() as opened:
            yield from self.answer(run, dict(_opened(run, opened)))

    @abstractmethod
    def answer(self, run: Run, storages: _Storages) -> Iterator[Line]:
        """Yield the lines of the answer."""


class List(Action):
    """``scrapy robots cache list``."""

    name = "list"
    brief = "list the stored sites"
    about = "List the stored sites."
    example = "scrapy robots cache list"
    arguments = (json_option("one JSON object for each site"),)

    def answer(self, run: Run, storages: _Storages) -> Iterator[Line]:
        """Yield a line for each site and robot."""
        known = [(*each, robot) for robot, storage in storages.items() for each in storage.sites()]
        known.sort(key=lambda each: (str(each[0]), each[2]))
        if run.opts.json:
            yield from (json.dumps(_as_dict(*each)) for each in known)
        elif known:
            now = time()
            yield from run.style.table(_COLUMNS, [_row(*each, now) for each in known])
        else:
            yield "nothing is stored"


class Show(Action):
    """``scrapy robots cache show SITE``."""

    name = "show"
    brief = "show the copy of a site"
    about = "Show the stored copy of a site."
    example = "scrapy robots cache show https://example.com"
    arguments = (argument("site", metavar="SITE", help=_SITE), json_option("one JSON object"))

    def answer(self, run: Run, storages: _Storages) -> Iterator[Line]:
        """Yield the copies of the site."""
        name = run.opts.site
        found = [
            (site, known, robot)
            for robot, storage in storages.items()
            for site in _sites_named(name, storage)
            if (known := storage.get(site))
        ]
        if not found:
            run.warn(f"nothing is stored of {printable(name)}", _NOT_STORED)
        for site, known, robot in found:
            if run.opts.json:
                yield _show_as_json(site, known, robot)
            else:
                yield from _show_as_text(site, known, robot, run.style)


class Forget(Action):
    """``scrapy robots cache forget SITE...``."""

    name = "forget"
    brief = "delete copies"
    about = "Delete stored copies. The next crawl fetches these files again."
    example = "scrapy robots cache forget example.com"
    arguments = (
        argument("sites", nargs="*", metavar="SITE", help=_SITE),
        argument("--all", action="store_true", help="delete the copies of all sites"),
    )

    def answer(self, run: Run, storages: _Storages) -> Iterator[Line]:
        """Delete copies, and yield their sites."""
        opts = run.opts
        if opts.all == bool(opts.sites):
            raise UsageError("name the sites to forget, or give --all")
        every = {str(site) for storage in storages.values() for site, _ in storage.sites()}
        for name in sorted(every) if opts.all else opts.sites:
            forgotten = {
                str(site): None
                for storage in storages.values()
                for site in _sites_named(name, storage)
                if storage.forget(site)
            }
            for site in forgotten:
                yield f"forgotten: {printable(site)}"
            if not forgotten:
                run.warn(f"nothing is stored of {printable(name)}", _NOT_STORED)


_ACTIONS: dict[str, Action] = {action.name: action for action in (List(), Show(), Forget())}


class Cache(Subcommand):
    """``scrapy robots cache list | show SITE | forget SITE``."""

    name = "cache"
    brief = "list, show or delete stored copies"
    about = "List, show or delete the copies in your storage (KOSTER_STORAGE)."
    example = List.example
    statuses = _STATUSES

    def add_to(self, subparsers: Any) -> None:
        """Add its parser, with one for each of its actions."""
        actions = self.add_parser(subparsers).add_subparsers(
            title="actions", dest="action", metavar="|".join(_ACTIONS), required=True
        )
        for action in _ACTIONS.values():
            action.add_to(actions)

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the answer of the action."""
        return _ACTIONS[run.opts.action].run(run)


def _opened(run: Run, opened: ExitStack) -> Iterator[tuple[str, Storage]]:
    """Yield each robot that has copies, with its storage. A look at the storage makes no file."""
    config, own = run.config, copies_of(run.crawler, run.config)
    in_file = issubclass(config.storage, SQLiteStorage)
    if in_file and not Path(config.sqlite_path).exists():
        yield own, MemoryStorage(1)
        return
    storage = opened.enter_context(closing(config.open_storage(own)))
    yield own, storage
    for robot in getattr(storage, "robots", list)():
        if robot != own:
            yield robot, opened.enter_context(closing(config.open_storage(robot)))


def _sites_named(text: str, storage: Storage) -> list[Site]:
    """Return the sites of a URL, or of a host and port, or all stored sites of a host."""
    sites = sites_named(text)
    if len({site.port for site in sites}) == 1:
        return sites
    return [site for site, _ in storage.sites() if site.host == sites[0].host]


def _row(site: Site, known: Known, robot: str, now: float) -> tuple[str | int, ...]:
    name = printable(str(site))
    if isinstance(known, Failure):
        return name, printable(known.reason, 40), "-", utc(known.asked), "-", printable(robot)
    until = utc(known.expires) + ("" if now < known.expires else " (stale)")
    facts = f"HTTP {known.status}", len(known.body), utc(known.fetched), until
    return name, *facts, printable(robot)


def _show_as_text(site: Site, known: Known, robot: str, style: Style) -> Iterator[Line]:
    """Yield a copy or failure, and the file."""
    copy = last_copy(known)
    body = copy.body if copy else b""
    facts = list(_as_dict(site, known, robot).items())
    facts += [("sitemap", sitemap) for sitemap in sitemaps_in(body)]
    for name, value in facts:
        if value is not None:
            yield joined("  ", style.dim(f"{name:<13}"), f" {printable(str(value), _LINE_CHARS)}")
    if not body:
        return
    yield ""
    for number, line in enumerate(lines(body), 1):
        text = f"  {shown(line, _LINE_CHARS)}".rstrip()
        yield joined("  ", style.dim(f"{number:>7}"), text)


def _show_as_json(site: Site, known: Known, robot: str) -> str:
    """Return a JSON object in one line, with the file."""
    copy = last_copy(known)
    body = copy.in_utf8.decode(errors="backslashreplace") if copy else None
    sitemaps = sitemaps_in(copy.body) if copy else []
    return json.dumps({**_as_dict(site, known, robot), "sitemaps": sitemaps, "body": body})


def _as_dict(site: Site, known: Known, robot: str) -> dict[str, Any]:
    if isinstance(known, Failure):
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
            "url": printable(known.url, _LINE_CHARS),
            "status": known.status,
            "size": len(known.body),
            "etag": known.etag,
            "last_modified": known.last_modified,
            "fetched": utc(known.fetched),
            "expires": utc(known.expires),
        }
    return {"site": str(site), **facts, "robot": robot}
