"""``scrapy robots history``: the versions of a site's robots.txt in an archive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from scrapy_koster.archive.history import Version, changes, versions
from scrapy_koster.archive.record import Outcome
from scrapy_koster.commands.output import Line, bold, dim, green, red, table
from scrapy_koster.commands.subcommand import ARCHIVE, JSON, Run, Subcommand, argument, sites_named
from scrapy_koster.protocol.access import CachedRobots, FetchFailure
from scrapy_koster.protocol.line import lines, narrow
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.wording import TEXT_CHARS, shown, utc

if TYPE_CHECKING:  # needs the extra "archive"
    from scrapy_koster.archive.folder import Folder

_NOTHING = 1
_COLUMNS = ("FIRST SEEN", "LAST SEEN", "SEEN", "HTTP", "BYTES", "DIGEST")
_KEYS = ("first_seen", "last_seen", "seen", "status", "bytes", "digest")


class History(Subcommand):
    """Show the versions of a site's robots.txt in an archive.

    A crawl with KOSTER_ARCHIVE writes an archive. You see when a version was first and last seen,
    the HTTP status, the size, and the digest, by which you find the records in the archive.
    """

    example = "scrapy robots history --archive evidence --diff https://example.com"
    answers = "0 done, 1 the archive has nothing about the site"
    arguments = (
        argument("site", metavar="SITE", help="URL of the site, or its host"),
        ARCHIVE,
        argument("--diff", action="store_true", help="show the lines that changed"),
        JSON,
    )

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the versions."""
        folder = run.archive("scrapy robots history")
        sites = sites_named(run.opts.site)
        found = {site: outcomes for site in sites if (outcomes := folder.outcomes(site))}
        if not found:
            run.warn(f"the archive has nothing about {printable(run.opts.site)}", _NOTHING)
        for site, outcomes in found.items():
            yield from _history(run, site, folder, outcomes)


def _history(run: Run, site: Site, folder: Folder, outcomes: list[Outcome]) -> Iterator[Line]:
    found = versions(outcomes)
    facts = [_as_dict(site, version) for version in found]
    if run.opts.diff:
        bodies = [[], *(_body(folder, version) for version in found)]
        for each, (before, after) in zip(facts, pairwise(bodies), strict=True):
            each["changes"] = [_change_as_dict(*change) for change in changes(before, after)]
    if run.opts.json:
        yield from map(json.dumps, facts)
        return
    yield bold(str(site))
    yield from table(_COLUMNS, [[each[key] for key in _KEYS] for each in facts])
    known = (outcome.known for outcome in outcomes)
    if failures := {each.asked: each.reason for each in known if isinstance(each, FetchFailure)}:
        at, reason = max(failures.items())
        yield f"failures: {len(failures)}, the last at {utc(at)}: {printable(reason)}"
    for old, new in pairwise(facts if run.opts.diff else ()):
        yield ""
        yield dim(f"--- {old['last_seen']} HTTP {old['status']}")
        yield dim(f"+++ {new['first_seen']} HTTP {new['status']}")
        for edit in new["changes"]:
            was, now, text = edit.get("removed"), edit.get("added"), edit["text"]
            yield red(f"-{was:>6}  {text}") if was else green(f"+{now:>6}  {text}")


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


def _change_as_dict(was: int, now: int, line: bytes) -> dict[str, Any]:
    return {"removed" if was else "added": was or now, "text": shown(line, TEXT_CHARS)}


def _body(folder: Folder, version: Version) -> list[bytes]:
    known = folder.whole(version.first)
    assert isinstance(known, CachedRobots)
    return lines(narrow(known.body).rstrip(b"\r\n")) if known.body else []
