"""``scrapy robots cache``: what the configured storage knows of sites."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_koster.commands.subcommand import Run, Subcommand, add_global_options, add_parser
from scrapy_koster.crawl.robot import copies_of
from scrapy_koster.protocol.access import Copy, Failure, Known, last_copy
from scrapy_koster.protocol.line import lines
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.sitemap import sitemaps_in
from scrapy_koster.protocol.wording import shown, utc
from scrapy_koster.storage import StorageError
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.sqlite import SQLiteStorage

if TYPE_CHECKING:
    from typing import TypeAlias

    from scrapy_koster.commands.style import Line, Style
    from scrapy_koster.storage import Storage

    _Storages: TypeAlias = dict[str, Storage]
    """By the name of the robot."""

_ABOUT = """\
List, show or delete the copies in your storage (KOSTER_STORAGE)."""
_EXAMPLES = {
    "list": "scrapy robots cache list",
    "show": "scrapy robots cache show https://example.com",
    "forget": "scrapy robots cache forget example.com",
}
_PAGE = "commands.md#scrapy-robots-cache-listshowforget"
_STATUSES = """\
exit status: 0 done, 1 a site is not stored, 2 wrong usage, 3 the storage failed,
4 the command failed"""

_SITE = "URL of the site, or its host; a host without a port means all its sites"

_NOT_STORED = 1
_STORAGE_FAILED = 3
_URL_CHARS = 200
_LINE_CHARS = 1000
_COLUMNS = ("SITE", "ANSWER", "SIZE", "FETCHED", "FRESH UNTIL", "ROBOT")


class Cache(Subcommand):
    """``scrapy robots cache list | show SITE | forget SITE``."""

    name = "cache"

    def add_to(self, subparsers: Any) -> None:
        """Add its parser, with one for each of its actions."""
        brief = "list, show or delete stored copies"
        parser = add_parser(
            subparsers,
            self.name,
            brief=brief,
            about=_ABOUT,
            example=_EXAMPLES["list"],
            statuses=_STATUSES,
            page=_PAGE,
        )
        actions = parser.add_subparsers(
            title="actions", dest="action", metavar="|".join(_ACTIONS), required=True
        )

        def action(name: str, brief: str, about: str) -> Any:
            return add_parser(
                actions,
                name,
                brief=brief,
                about=about,
                example=_EXAMPLES[name],
                statuses=_STATUSES,
                page=_PAGE,
            )

        listing = action("list", "list the stored sites", "List the stored sites.")
        listing.add_argument("--json", action="store_true", help="one JSON object for each site")
        show = action("show", "show the copy of a site", "Show the stored copy of a site.")
        show.add_argument("site", metavar="SITE", help=_SITE)
        show.add_argument("--json", action="store_true", help="one JSON object")
        forget = action(
            "forget",
            "delete copies",
            "Delete stored copies. The next crawl fetches these files again.",
        )
        forget.add_argument("sites", nargs="*", metavar="SITE", help=_SITE)
        forget.add_argument("--all", action="store_true", help="delete the copies of all sites")
        for each in (listing, show, forget):
            add_global_options(each)

    def run(self, run: Run) -> Iterator[Line]:
        """Yield what the action answers."""
        try:
            with ExitStack() as opened:
                storages = dict(_opened(run, opened))
                yield from _ACTIONS[run.opts.action](run, storages)
        except StorageError as error:
            run.warn(printable(str(error), 1000), _STORAGE_FAILED)


def _list(run: Run, storages: _Storages) -> Iterator[Line]:
    known = [(*each, robot) for robot, storage in storages.items() for each in storage.sites()]
    known.sort(key=lambda each: (str(each[0]), each[2]))
    return _list_as_json(known) if run.opts.json else _list_as_text(known, run.style, now=time())


def _show(run: Run, storages: _Storages) -> Iterator[Line]:
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
            yield from _show_as_text(site, known, robot, run.style, now=time())


def _forget(run: Run, storages: _Storages) -> Iterator[Line]:
    opts = run.opts
    if opts.all == bool(opts.sites):
        raise UsageError("name the sites to forget, or give --all")
    if opts.all:
        named = sorted({str(site) for each in storages.values() for site, _ in each.sites()})
    else:
        named = opts.sites
    for name in named:
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


_ACTIONS: dict[str, Callable[[Run, _Storages], Iterator[Line]]] = {
    "list": _list,
    "show": _show,
    "forget": _forget,
}


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
    """Return the sites that *text* may mean: a URL of one, or a host and port; or all of a host.

    UsageError where it is none of these.
    """
    urls = [text] if "://" in text else [f"{scheme}://{text}/" for scheme in ("https", "http")]
    try:
        sites = [site for url in urls if (site := site_of(url))]
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not sites:
        raise UsageError(f"no http or https URL: {text!r}")
    if len({site.port for site in sites}) == 1:
        return sites
    return [site for site, _ in storage.sites() if site.host == sites[0].host]


def _list_as_text(
    known: list[tuple[Site, Known, str]], style: Style, *, now: float
) -> Iterator[Line]:
    """Yield a table of sites."""
    if not known:
        yield "nothing is stored"
        return
    rows = [(*_row(site, about, now), printable(robot)) for site, about, robot in known]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    yield style.bold(_aligned(_COLUMNS, widths))
    for row, (_, about, _) in zip(rows, known, strict=True):
        line = _aligned(row, widths)
        yield style.yellow(line) if isinstance(about, Failure) else line


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(site: Site, known: Known, now: float) -> tuple[str, ...]:
    match known:
        case Copy(status=status, body=body, fetched=fetched, expires=expires):
            until = utc(expires) if now < expires else f"{utc(expires)} (stale)"
            return printable(str(site)), f"HTTP {status}", str(len(body)), utc(fetched), until
        case Failure(reason=reason, asked=asked):  # pragma: no branch
            return printable(str(site)), printable(reason, 40), "-", utc(asked), "-"


def _list_as_json(known: list[tuple[Site, Known, str]]) -> Iterator[str]:
    """Yield one JSON object a line for each site and robot."""
    for site, about, robot in known:
        yield json.dumps({**_as_dict(site, about), "robot": robot})


def _show_as_text(
    site: Site, known: Known, robot: str, style: Style, *, now: float
) -> Iterator[Line]:
    """Yield what is known of one site, and the file."""
    yield style.bold(printable(str(site)))
    for name, value in (("robot", printable(robot) or "-"), *_facts(known, now)):
        yield style.line("  ", style.dim(f"{name:<9}"), f" {value}")
    copy = last_copy(known)
    if copy is None or not copy.body:
        return
    for sitemap in sitemaps_in(copy.body):
        yield style.line("  ", style.dim("sitemap  "), f" {sitemap}")
    yield ""
    for number, line in enumerate(lines(copy.body), 1):
        text = f"  {shown(line, _LINE_CHARS)}".rstrip()
        yield style.line("  ", style.dim(f"{number:>7}"), text)


def _show_as_json(site: Site, known: Known, robot: str) -> str:
    """Return one JSON object in one line, with the file."""
    copy = last_copy(known)
    body = copy.in_utf8.decode(errors="backslashreplace") if copy else None
    sitemaps = sitemaps_in(copy.body) if copy else []
    facts = {**_as_dict(site, known), "robot": robot}
    return json.dumps({**facts, "sitemaps": sitemaps, "body": body})


def _facts(known: Known, now: float) -> Iterator[tuple[str, str]]:
    match known:
        case Copy(expires=expires):
            yield "answer", f"{printable(known.url, _URL_CHARS)}, HTTP {known.status}"
            yield "size", f"{len(known.body)} octets"
            yield "fetched", utc(known.fetched)
            yield "fresh", f"until {utc(expires)}" + ("" if now < expires else " (stale)")
            yield "validate", " ".join(_validators(known)) or "-"
        case Failure():  # pragma: no branch
            yield "failed", printable(known.reason)
            yield "attempts", str(known.attempts)
            yield "since", utc(known.since)
            yield "asked", utc(known.asked)
            yield "retry", utc(known.retry)
            if known.stale is not None:
                yield "stale", f"the copy of {utc(known.stale.fetched)}"


def _validators(copy: Copy) -> Iterator[str]:
    if copy.etag is not None:
        yield f"ETag {printable(copy.etag)}"
    if copy.last_modified is not None:
        yield f"Last-Modified {printable(copy.last_modified)}"


def _as_dict(site: Site, known: Known) -> dict[str, Any]:
    match known:
        case Copy():
            return {
                "site": str(site),
                "url": printable(known.url, _LINE_CHARS),
                "status": known.status,
                "size": len(known.body),
                "etag": known.etag,
                "last_modified": known.last_modified,
                "fetched": utc(known.fetched),
                "expires": utc(known.expires),
            }
        case Failure():  # pragma: no branch
            return {
                "site": str(site),
                "reason": printable(known.reason),
                "attempts": known.attempts,
                "since": utc(known.since),
                "asked": utc(known.asked),
                "retry": utc(known.retry),
                "stale": known.stale is not None,
            }
