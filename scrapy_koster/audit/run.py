"""An audit from its logs to its result."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy_koster.audit.access_log import AccessLog, Names, Opened
from scrapy_koster.audit.auditor import Auditor
from scrapy_koster.audit.naming import Namer
from scrapy_koster.audit.order import Ordered

if TYPE_CHECKING:
    from scrapy_koster.audit.access_log import Format
    from scrapy_koster.audit.clients import Shown
    from scrapy_koster.audit.judging import Files
    from scrapy_koster.audit.ranges import Ranges
    from scrapy_koster.protocol.site import Site


def audit(
    files: Files,
    logs: Sequence[tuple[str, Opened]],
    show: Shown,
    *,
    given: Format | None = None,
    site: Site | None = None,
    ranges: Ranges | None = None,
) -> tuple[Auditor, list[AccessLog]]:
    """Read *logs*, each a name and what opens it, and return what was found.

    *given* is the format of their lines, where that is not to be found out. With *site*
    what another host was asked for is left out, where the log names hosts. What comes from
    outside of the *ranges* of a robot is counted as another robot.
    """
    namer = Namer(version.body for version in files.versions)
    names = Names(namer)
    found = [AccessLog(name, opened, names, given=given, site=site) for name, opened in logs]
    auditor = Auditor(files, namer, show)
    ordered = Ordered(found)
    with _no_collections():
        for batch in ordered.visits():
            visits, late = batch if ranges is None else map(ranges.marked, batch)
            auditor.unseen_until = max(auditor.unseen_until, ordered.began)
            auditor.take(late, late=True)
            auditor.take(visits)
    auditor.end()
    return auditor, found


@contextmanager
def _no_collections() -> Iterator[None]:
    """No circles are made of a log, and to look for them takes half of the time for JSON."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
