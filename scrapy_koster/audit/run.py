"""An audit from its logs to its result."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy_koster.audit.access_log import AccessLog, Opened, names_of
from scrapy_koster.audit.auditor import Auditor
from scrapy_koster.audit.merged_logs import merged_logs
from scrapy_koster.audit.naming import Namer

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
    """Return the findings in *logs*, each a name and a function that opens it.

    *given* is the format of their lines, if it is not to be detected. With *site*, requests to
    other hosts are skipped, if the log names hosts. Requests from outside of the *ranges* of a
    robot are counted as another robot.
    """
    namer = Namer(version.body for version in files.versions)
    names = names_of(namer)
    found = [AccessLog(name, opened, names, given=given, site=site) for name, opened in logs]
    auditor = Auditor(files, namer, show)
    began: int | None = None
    with _no_collections():
        for batch in merged_logs(found):
            visits, late = batch if ranges is None else map(ranges.marked, batch)
            if began is None:
                began = min((log.first for log in found if log.first is not None), default=None)
                auditor.unseen_until = float("-inf") if began is None else began
            auditor.take(late, late=True)
            auditor.take(visits)
    auditor.end()
    return auditor, found


@contextmanager
def _no_collections() -> Iterator[None]:
    """Disable garbage collection: visits have no cycles, and it takes half of the time for JSON."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
