"""``scrapy robots history``: the versions of a site's robots.txt in an archive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from scrapy_koster.archive.history import Version, changes, versions
from scrapy_koster.commands.archive_lookup import folder_named
from scrapy_koster.commands.style import bold, dim, green, red, table
from scrapy_koster.commands.subcommand import ARCHIVE, JSON, Run, Subcommand, argument, sites_named
from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.protocol.line import lines, narrow
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.wording import shown, utc

if TYPE_CHECKING:
    from scrapy_koster.archive.folder import Folder, Outcome
    from scrapy_koster.commands.style import Line


_NOTHING = 1
_LINE_CHARS = 1000
_COLUMNS = ("FIRST SEEN", "LAST SEEN", "SEEN", "HTTP", "BYTES", "DIGEST")


class History(Subcommand):
    """Show the versions of a site's robots.txt in an archive.

    The archive is that of a crawl with KOSTER_ARCHIVE. You see when each version was first and
    last seen, its HTTP status, its size and its digest, which names its records in the archive.
    """

    name = "history"
    example = "scrapy robots history --archive evidence --diff https://example.com"
    answers = "0 done, 1 the archive has nothing about the site"
    extra = "archive"
    arguments = (
        argument("site", metavar="SITE", help="URL of the site, or its host"),
        ARCHIVE,
        argument("--diff", action="store_true", help="show the lines that changed"),
        JSON,
    )

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the versions."""
        folder = folder_named(run.opts.archive, run.config)
        found = {site: folder.outcomes(site) for site in sites_named(run.opts.site)}
        if not any(found.values()):
            run.warn(f"the archive has nothing about {printable(run.opts.site)}", _NOTHING)
        for site, outcomes in found.items():
            if outcomes:
                yield from _history(run, site, folder, outcomes)


def _history(run: Run, site: Site, folder: Folder, outcomes: list[Outcome]) -> Iterator[Line]:
    found = versions(outcomes)
    bodies = [_body(folder, version) for version in found] if run.opts.diff else []
    failures = [outcome for outcome in outcomes if isinstance(outcome.known, Failure)]
    if run.opts.json:
        for number, version in enumerate(found):
            yield json.dumps(_as_dict(site, version) | _changes_as_dict(bodies, number))
        return
    yield bold(str(site))
    yield from table(_COLUMNS, [_row(version) for version in found])
    if failures:
        last = failures[-1]
        assert isinstance(last.known, Failure)
        reason = printable(last.known.reason)
        yield f"failures: {len(failures)}, the last at {utc(last.at)}: {reason}"
    for number, (old, new) in enumerate(pairwise(bodies)):
        yield ""
        yield from _diff(found[number : number + 2], old, new)


def _row(version: Version) -> tuple[str | int, ...]:
    copy, size = version.copy, version.first.body_bytes
    seen = utc(copy.fetched), utc(version.last_seen), version.seen
    return *seen, copy.status, size, printable(copy.digest)


def _as_dict(site: Site, version: Version) -> dict[str, Any]:
    copy = version.copy
    return {
        "site": str(site),
        "first_seen": utc(version.copy.fetched),
        "last_seen": utc(version.last_seen),
        "seen": version.seen,
        "robots_url": printable(copy.url),
        "status": copy.status,
        "bytes": version.first.body_bytes,
        "digest": printable(copy.digest),
        "record_id": printable(copy.record_id or ""),
    }


def _changes_as_dict(bodies: list[list[bytes]], number: int) -> dict[str, Any]:
    """Return the lines that the version *number* has changed; nothing without --diff."""
    if not bodies:
        return {}
    changed = changes(bodies[number - 1] if number else [], bodies[number])
    return {
        "changes": [
            {"removed" if old else "added": old or new, "text": shown(line, _LINE_CHARS)}
            for old, new, line in changed
        ]
    }


def _body(folder: Folder, version: Version) -> list[bytes]:
    known = folder.whole(version.first)
    assert isinstance(known, Copy)
    return lines(narrow(known.body).rstrip(b"\r\n")) if known.body else []


def _diff(pair: list[Version], old: list[bytes], new: list[bytes]) -> Iterator[Line]:
    """Yield the changed lines, with their numbers in the old and in the new file."""
    yield dim(f"--- {utc(pair[0].last_seen)} HTTP {pair[0].copy.status}")
    yield dim(f"+++ {utc(pair[1].copy.fetched)} HTTP {pair[1].copy.status}")
    for was, now, line in changes(old, new):
        text = shown(line, _LINE_CHARS)
        yield red(f"-{was:>6}  {text}") if was else green(f"+{now:>6}  {text}")
