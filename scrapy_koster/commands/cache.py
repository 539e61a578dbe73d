"""``scrapy robots cache``: what the configured storage knows of sites."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_koster.protocol.access import Copy, Failure, Known
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.robotstxt import lines
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.verdict import shown, utc
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.sqlite import SQLiteStorage

if TYPE_CHECKING:
    from scrapy_koster.commands.ink import Ink
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.storage import Storage

_URL_CHARS = 200
_LINE_CHARS = 1000
_COLUMNS = ("SITE", "ANSWER", "SIZE", "FETCHED", "FRESH UNTIL")


def open_storage(config: Config) -> closing[Storage]:
    """Return the configured storage, to be used in a ``with`` statement.

    A crawl makes the file of a storage; to look at it does not.
    """
    in_file = issubclass(config.storage, SQLiteStorage)
    if in_file and not Path(config.sqlite_path).exists():
        return closing(MemoryStorage(1))
    return closing(config.storage.from_config(config))


def sites_named(text: str) -> list[Site]:
    """Return the sites that *text* may mean: a URL of one, or a host (and port).

    Raises ValueError, with what to write, where it is neither.
    """
    if "://" in text:
        site = site_of(text)
        if site is None:
            raise ValueError(f"no http or https URL: {text!r}")
        return [site]
    sites = [site_of(f"{scheme}://{text}/") for scheme in ("https", "http")]
    return [site for site in sites if site is not None]


def list_as_text(known: list[tuple[Site, Known]], ink: Ink, *, now: float) -> Iterator[str]:
    """Yield a table of sites."""
    if not known:
        yield "nothing is stored"
        return
    rows = [_row(site, about, now) for site, about in known]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    yield ink.bold(_aligned(_COLUMNS, widths))
    for row, (_, about) in zip(rows, known, strict=True):
        line = _aligned(row, widths)
        yield ink.yellow(line) if isinstance(about, Failure) else line


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(site: Site, known: Known, now: float) -> tuple[str, ...]:
    match known:
        case Copy(status=status, body=body, fetched=fetched, expires=expires):
            until = utc(expires) if now < expires else f"{utc(expires)} (stale)"
            return printable(str(site)), f"HTTP {status}", str(len(body)), utc(fetched), until
        case Failure(reason=reason, asked=asked):  # pragma: no branch
            return printable(str(site)), printable(reason, 40), "-", utc(asked), "-"


def list_as_json(known: list[tuple[Site, Known]]) -> Iterator[str]:
    """Yield one JSON object a line for each site."""
    for site, about in known:
        yield json.dumps(_as_dict(site, about))


def show_as_text(site: Site, known: Known, ink: Ink, *, now: float) -> Iterator[str]:
    """Yield what is known of one site, and the file."""
    yield ink.bold(printable(str(site)))
    for name, value in _facts(known, now):
        yield f"  {ink.dim(f'{name:<9}')} {value}"
    copy = known.stale if isinstance(known, Failure) else known
    if copy is None or not copy.body:
        return
    yield ""
    for number, line in enumerate(lines(copy.body), 1):
        yield f"  {ink.dim(f'{number:>7}')}  {shown(line, _LINE_CHARS)}".rstrip()


def show_as_json(site: Site, known: Known) -> str:
    """Return one JSON object in one line, with the file."""
    copy = known.stale if isinstance(known, Failure) else known
    body = copy.body.decode(errors="backslashreplace") if copy else None
    return json.dumps({**_as_dict(site, known), "body": body})


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
