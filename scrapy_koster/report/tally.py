"""The rows of a report's file, and those that are not written yet."""

from __future__ import annotations

from typing import Any, NamedTuple

from scrapy_koster.protocol.standing import Ground, Standing

START, OVERRIDDEN, HAZARD, USAGE = "start", "overridden", "hazard", "usage_dropped"
"""What URLs are samples of, besides the grounds of refusals, nofollow, noindex and
exempt_forbidden: refused start requests, what an override of the user has allowed, pages that were
let through and that RFC 9309 forbids, and pages that may not be used for a purpose of the crawl."""

ALLOWED = {
    Standing.OBEYED: "allowed_rule",
    Standing.WITHOUT_RULES: "allowed_without_rules",
    Standing.WITHOUT_ROBOTS_TXT: "allowed_none",
    Standing.HTML: "allowed_html",
    Standing.LET_THROUGH: "allowed_unavailable",
}
"""Columns that count the requests that were allowed, by what their site is."""

REFUSED = {
    ground.value: f"refused_{ground.value}"
    for ground in Ground
    if ground is not Ground.UNRESTRICTED
}
"""Columns that count the requests that were refused, by the name of the ground."""

FACTS = (
    "outcome",
    "status",  # of the last answer; 0: there was none
    "fetched",
    "expires",
    "bytes",
    "digest",  # of the body as it was received: what its record in an archive has
    "record_line",  # of the record that is obeyed; 0: there is none
    "record",
    "delay",  # Crawl-delay of that record
    "redirect",
    "reason",  # of the last failure
    "deferred",  # when that last began
    "resumed",  # when it ended; 0: it has not
)
"""Columns of a site that hold what was last known; times in seconds since the epoch."""

COUNTS = (
    "asked",
    "answered",
    "fetches",
    "from_storage",
    "renewed",
    *ALLOWED.values(),
    *REFUSED.values(),
    "start_refused",
    "overridden",  # of the requests that were allowed: by an override
    "deferrals",
    "given_up",
    "nofollow",
    "noindex",
    "exempt",  # dont_obey_robotstxt
    "exempt_forbidden",  # of these, as far as the rules were known
    "looser",  # let through, and RFC 9309 forbids it
    USAGE,
    "cut",
)
"""Columns of a site that are added up."""


class Columns(NamedTuple):
    """The columns of a table."""

    keys: tuple[str, ...]
    facts: tuple[str, ...] = ()
    """Columns in which a new value replaces the old one."""
    counts: tuple[str, ...] = ()
    """Columns to which a new value is added."""


TABLES = {
    "site": Columns(("site",), FACTS, COUNTS),
    "rule": Columns(("site", "line", "text", "ground"), counts=("refused",)),
    "hazard": Columns(("site", "cause", "line", "text", "allows"), counts=("pages",)),
    "usage": Columns(("site", "line", "text", "label"), ("preference",)),
    "sample": Columns(("site", "kind", "line", "number"), ("url",)),
    "override": Columns(("site", "text"), counts=("allowed", "refused")),
    "failure": Columns(("reason",), counts=("attempts",)),
    "minute": Columns(("minute",), counts=("asked", "answered", "deferred")),
    "compared": Columns(("result",), counts=("decisions",)),
    "about": Columns(("name",), ("value",)),
}

_MOST = 10_000


class Tally:
    """Rows since the last batch was written, by table and key.

    It holds 10,000 of a table at most: where batches cannot be written, what is
    beyond that is counted as ``lost``. Texts have been made printable and cut.
    """

    def __init__(self) -> None:
        self.lost = 0
        self.clear()

    def clear(self) -> None:
        """Forget all rows: they are written."""
        self.rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {name: {} for name in TABLES}

    def put(self, table: str, *key: object, **facts: object) -> None:
        """Replace facts of a row."""
        self._row(table, key).update(facts)

    def add(self, table: str, *key: object, **counts: int) -> None:
        """Add to counts of a row."""
        row = self._row(table, key)
        for column, count in counts.items():
            row[column] = row.get(column, 0) + count

    def _row(self, table: str, key: tuple[object, ...]) -> dict[str, Any]:
        rows = self.rows[table]
        if key not in rows and len(rows) >= _MOST:
            self.lost += 1
            return {}
        return rows.setdefault(key, {})
